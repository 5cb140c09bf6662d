// The map: t-SNE plots of users and items on two canvases, coloured by their match to the selection.
import { remember } from "./address.js";
import { get, part } from "./api.js";
import { byId, count, h, named, short, toldApart } from "./dom.js";
import { attempt, clear, complain } from "./notice.js";
import { picker } from "./picker.js";
import { Plot } from "./plot.js";

const AGAIN = 1500; // milliseconds between two requests while the map is being computed
const LIVE = 3000; // milliseconds between two updates of the match while the view is open
const LISTED = 8;

const plots = {};
const fields = {};
let selected = null; // {side: "users" | "items", id, title}
let version = null;
let timer;

export function mount() {
  for (const [side, place, label] of [["users", "map-user", "Select a user"], ["items", "map-item", "Select an item"]]) {
    plots[side] = new Plot(byId(`map-${side}`), (thing) => select(side, thing));
    byId(`map-${side}-zoom`).replaceChildren(
      ...[["−", 1 / 1.5, "Zoom out"], ["+", 1.5, "Zoom in"]].map(([sign, factor, words]) => h("button", {
        type: "button", class: "quiet", "aria-label": `${words}, map of ${side}`, onclick: () => plots[side].zoomBy(factor),
      }, sign)));
    fields[side] = picker(byId(place), { kind: side, label, chosen: (thing) => select(side, thing) });
  }
  document.addEventListener("felrec-theme", repaint);
}

/** `wanted` is users/ID or items/ID if the address has a selection. */
export async function show(wanted = "") {
  repaint();
  const [side, ...rest] = wanted.split("/");
  let unknown = null;
  if (rest.length && Object.hasOwn(plots, side)) await find(side, rest.join("/")).catch((error) => { unknown = error; });
  else if (selected) remember("map", [selected.side, selected.id], true);
  if (!open()) return;
  if (version === null) await keepLoading();
  else await attempt(match);
  if (unknown) complain(unknown); // last, because a successful request clears the notice
}

export function hide() {
  clearTimeout(timer);
}

const open = () => !byId("view-map").hidden;

/** Load the points; retry while the service is unreachable. */
async function keepLoading() {
  try {
    await load();
    clear();
  } catch (error) {
    complain(error);
    if (error.code === "unreachable" && open()) timer = setTimeout(keepLoading, AGAIN);
  }
}

/** Load the points; poll while the service is still computing them. */
async function load() {
  clearTimeout(timer);
  const answer = await get("v1/map");
  if (!answer.ready) {
    byId("map-told").textContent = answer.message;
    if (open()) timer = setTimeout(keepLoading, answer.working ? AGAIN : 10 * AGAIN);
    return;
  }
  version = answer.version;
  for (const side of ["users", "items"]) {
    plots[side].place(answer[side]);
    byId(`map-${side}-count`).textContent = `top ${count(answer[side].length)} by events`;
  }
  if (!selected && answer.users.length) await select("users", answer.users[0]);
  else await match();
}

/** Select the user or item in the address, unless it is already selected. */
async function find(side, id) {
  if (selected?.side === side && selected.id === id) return;
  await select(side, side === "items" ? await get(`v1/items/${part(id)}`) : { id });
}

async function select(side, thing) {
  remember("map", [side, thing.id], selected === null);
  selected = { side, ...thing };
  fields[side].show(thing);
  fields[side === "users" ? "items" : "users"].show(null);
  for (const name of ["users", "items"]) {
    plots[name].mark(name === side ? thing.id : null);
    plots[name].hover(-1);
  }
  await attempt(match);
}

/** Colour all points by their current match to the selection; repeats while the view is open. */
async function match() {
  clearTimeout(timer);
  if (!selected || version === null) return;
  const asked = selected;
  const answer = await get("v1/map/match", { [asked.side === "users" ? "user" : "item"]: asked.id });
  if (asked !== selected) return;
  if (answer.version !== version) { // the map was recomputed in the meantime
    version = null;
    await load();
    return;
  }
  for (const side of ["users", "items"]) {
    plots[side].colour(answer[side]);
    best(side, answer[side]);
  }
  byId("map-told").replaceChildren("Selected: ", h("strong", {}, named(asked)), asked.side === "users"
    ? ". Items are coloured by match with this user, users by similarity to this user."
    : ". Users are coloured by match with this item, items by similarity to this item.");
  if (open()) timer = setTimeout(again, LIVE);
}

/** Update the match unless the tab is hidden; retry while the service is unreachable. */
function again() {
  if (document.hidden) timer = setTimeout(again, LIVE);
  else match().catch(() => { timer = setTimeout(again, LIVE); });
}

function best(side, scores) {
  const list = byId(`map-best-${side}`);
  if (list.contains(document.activeElement) && list.dataset.of === selected.id) return; // do not replace a list that has the keyboard focus
  list.dataset.of = selected.id;
  const order = plots[side].points
    .map((point, index) => ({ ...point, score: scores[index] }))
    .filter(({ id }) => !(side === selected.side && id === selected.id))
    .sort((a, b) => b.score - a.score)
    .slice(0, LISTED);
  const show = (point) => plots[side].point(point.id);
  const away = () => plots[side].hover(-1);
  list.replaceChildren(...toldApart(order).map((point) => h("li", {},
    h("button", {
      type: "button", class: "match", onclick: () => select(side, point),
      onfocus: () => show(point), onmouseenter: () => show(point), onblur: away, onmouseleave: away,
    },
      h("span", { class: "name" }, named(point)), h("span", { class: "score" }, short(point.score))))));
}

/** Take the colours from the legend, which follows the theme. */
function repaint() {
  const shades = [...document.querySelectorAll("#map-legend .heat")].map((swatch) => getComputedStyle(swatch).backgroundColor);
  const ink = {
    text: getComputedStyle(document.body).color,
    paper: getComputedStyle(byId("map-users")).backgroundColor,
    mark: getComputedStyle(byId("map-legend")).outlineColor,
  };
  for (const plot of Object.values(plots)) plot.paintWith(shades, ink);
}
