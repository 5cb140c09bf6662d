// The map: two t-SNE plots on canvases, users and items, coloured by the match to what is selected.
import { remember } from "./address.js";
import { get, part } from "./api.js";
import { byId, count, h, named, short } from "./dom.js";
import { attempt, clear, complain } from "./notice.js";
import { picker } from "./picker.js";
import { Plot } from "./plot.js";

const AGAIN = 1500; // milliseconds between two questions while the map is being made
const LIVE = 3000; // milliseconds between two looks at the match while the view is open
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

/** `wanted` is users/ID or items/ID if the address names one. */
export async function show(wanted = "") {
  repaint();
  const [side, ...rest] = wanted.split("/");
  let unknown = null;
  if (rest.length && Object.hasOwn(plots, side)) await find(side, rest.join("/")).catch((error) => { unknown = error; });
  else if (selected) remember("map", [selected.side, selected.id], true);
  if (!open()) return;
  if (version === null) await keepLoading();
  else await attempt(match);
  if (unknown) complain(unknown); // last, for what goes well takes complaints away
}

export function hide() {
  clearTimeout(timer);
}

const open = () => !byId("view-map").hidden;

/** Until there are points: a service that is away for a moment is no reason to stop. */
async function keepLoading() {
  try {
    await load();
    clear();
  } catch (error) {
    complain(error);
    if (error.code === "unreachable" && open()) timer = setTimeout(keepLoading, AGAIN);
  }
}

/** The points; asked again while the service is still placing them. */
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
    byId(`map-${side}-count`).textContent = `the ${count(answer[side].length)} with most events`;
  }
  if (!selected && answer.users.length) await select("users", answer.users[0]);
  else await match();
}

/** Select what the address names, unless it is selected already. */
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

/** Colours for what is selected, as the model sees it now; goes on while the view is open. */
async function match() {
  clearTimeout(timer);
  if (!selected || version === null) return;
  const asked = selected;
  const answer = await get("v1/map/match", { [asked.side === "users" ? "user" : "item"]: asked.id });
  if (asked !== selected) return;
  if (answer.version !== version) { // made anew in the meantime
    version = null;
    await load();
    return;
  }
  for (const side of ["users", "items"]) {
    plots[side].colour(answer[side]);
    best(side, answer[side]);
  }
  byId("map-told").replaceChildren("Selected: ", h("strong", {}, named(asked)), asked.side === "users"
    ? ". Items by how well they match this user, users by how alike they are."
    : ". Users by how well they match this item, items by how alike they are.");
  if (open()) timer = setTimeout(again, LIVE);
}

/** Look again unless nobody looks; a service that is away for a moment is no reason to stop. */
function again() {
  if (document.hidden) timer = setTimeout(again, LIVE);
  else match().catch(() => { timer = setTimeout(again, LIVE); });
}

function best(side, scores) {
  const list = byId(`map-best-${side}`);
  if (list.contains(document.activeElement) && list.dataset.of === selected.id) return; // somebody is reading it
  list.dataset.of = selected.id;
  const order = plots[side].points
    .map((point, index) => ({ ...point, score: scores[index] }))
    .filter(({ id }) => !(side === selected.side && id === selected.id))
    .sort((a, b) => b.score - a.score)
    .slice(0, LISTED);
  const show = (point) => plots[side].point(point.id);
  const away = () => plots[side].hover(-1);
  list.replaceChildren(...order.map((point) => h("li", {},
    h("button", {
      type: "button", class: "match", onclick: () => select(side, point),
      onfocus: () => show(point), onmouseenter: () => show(point), onblur: away, onmouseleave: away,
    },
      h("span", { class: "name" }, named(point)), h("span", { class: "score" }, short(point.score))))));
}

/** The colours are those of the legend, which follow the theme. */
function repaint() {
  const shades = [...document.querySelectorAll("#map-legend .heat")].map((swatch) => getComputedStyle(swatch).backgroundColor);
  const ink = {
    text: getComputedStyle(document.body).color,
    paper: getComputedStyle(byId("map-users")).backgroundColor,
    mark: getComputedStyle(byId("map-legend")).outlineColor,
  };
  for (const plot of Object.values(plots)) plot.paintWith(shades, ink);
}
