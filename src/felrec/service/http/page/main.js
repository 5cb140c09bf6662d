// The frame: routing between views, the theme, and the status line at the top.
import { get } from "./api.js";
import { byId, many } from "./dom.js";
import * as data from "./data.js";
import * as health from "./health.js";
import * as lab from "./lab.js";
import * as live from "./live.js";
import * as map from "./map.js";
import { clear } from "./notice.js";
import * as trending from "./trending.js";

const views = { live, lab, map, trending, data, health };
const LOOK = 5000; // milliseconds between two status requests
const mounted = new Set();
let current = null;

/** Show the view that the address names: #/view, #/live/user, #/map/users/user or #/map/items/item. */
function route() {
  const [name, ...rest] = location.hash.slice(2).split("/");
  const wanted = Object.hasOwn(views, name) ? name : "live";
  if (current && current !== wanted) {
    views[current].hide();
    clear();
  }
  for (const view of Object.keys(views)) byId(`view-${view}`).hidden = view !== wanted;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${byId(`${wanted}-title`).textContent} · felrec`;
  if (!mounted.has(wanted)) views[wanted].mount();
  mounted.add(wanted);
  current = wanted;
  views[wanted].show(decode(rest.join("/")));
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // a malformed address
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function nameTheme() {
  byId("theme").textContent = isDark() ? "Light" : "Dark";
  document.dispatchEvent(new Event("felrec-theme"));
}

function switchTheme() {
  const chosen = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = chosen;
  try {
    localStorage.setItem("felrec-theme", chosen);
  } catch {
    // Storage is unavailable: the choice lasts until the page is closed.
  }
  nameTheme();
}

async function look() {
  const dot = document.querySelector("#status .dot");
  try {
    const { model, events, users, items, ready } = await get("v1/stats");
    const back = dot.dataset.state === "gone";
    dot.dataset.state = ready ? "ready" : "waiting";
    byId("status-text").textContent = [model, many(events, "event"), many(users, "user"), many(items, "item")].join(" · ");
    if (back) {
      clear();
      views[current].show();
    }
  } catch (error) {
    dot.dataset.state = "gone";
    byId("status-text").textContent = error.status === 401 || error.status === 403 ? "key required" : "no response";
  }
  setTimeout(look, LOOK);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the view and the user, so it must not change
  byId("main").focus();
});
byId("theme").addEventListener("click", switchTheme);
dark.addEventListener("change", nameTheme);
addEventListener("hashchange", route);
nameTheme();
route();
look();
