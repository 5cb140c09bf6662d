// Before the first paint: a theme that was chosen earlier wins over the system's.
(() => {
  try {
    const chosen = localStorage.getItem("felrec-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Storage can be switched off; the system's theme will do.
  }
})();
