// Runs before the first paint: a theme chosen earlier overrides the system theme.
(() => {
  try {
    const chosen = localStorage.getItem("felrec-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage can be disabled; fall back to the system theme.
  }
})();
