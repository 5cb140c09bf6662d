// Live: a user's history and recommendations; taking an item changes both, and the page says how fast.
import { remember } from "./address.js";
import { get, interact, part, randomKey } from "./api.js";
import { ago, byId, count, h, many, named, nameOf, short } from "./dom.js";
import { attempt } from "./notice.js";
import { picker } from "./picker.js";

const SHOWN = 10;
const still = matchMedia("(prefers-reduced-motion: reduce)");

let user = null;
let ranks = new Map(); // item -> place in the list on the page
let busy = false;
let input;

export function mount() {
  input = picker(byId("live-user"), { kind: "users", label: "User", strangers: true, chosen: ({ id }) => open(id) });
  picker(byId("live-item"), { kind: "items", label: "Item", clears: true, chosen: (item) => take(item, performance.now()) });
  byId("live-random").addEventListener("click", () => attempt(someone));
  byId("live-stranger").addEventListener("click", () => open(`stranger-${randomKey().slice(0, 6)}`));
  byId("live-seen").addEventListener("change", () => refresh());
  byId("live-tag").addEventListener("change", () => refresh());
}

/** Called when the view comes up; `wanted` is a user named in the address. */
export function show(wanted) {
  if (wanted && wanted !== user) open(wanted);
  else if (!user) attempt(someone);
  else {
    remember("live", [user], true);
    refresh();
  }
}

export function hide() {}

async function someone() {
  const before = user;
  const { users } = await get("v1/users", { sample: true, limit: 12 });
  if (user !== before) return; // somebody was chosen meanwhile
  const others = users.filter(({ id }) => id !== user);
  if (others.length) await open(others[Math.floor(Math.random() * others.length)].id);
  else byId("timing").textContent = "Nobody has had anything yet: post events, or open “A stranger”.";
}

async function open(id) {
  remember("live", [id], user === null);
  user = id;
  ranks = new Map();
  input.show({ id });
  byId("timing").textContent = "";
  byId("left-list").textContent = "";
  byId("live-for").textContent = "";
  byId("history-count").textContent = "";
  for (const list of [byId("recommended"), byId("history")]) {
    list.replaceChildren(h("li", { class: "none" }, "Asking …")); // what is drawn must never be somebody else's
  }
  if (!(await refresh()) && user === id) {
    for (const waiting of document.querySelectorAll(".live .none")) waiting.textContent = "No answer.";
  }
}

/** Ask for the list and the history anew and draw both; returns the service's own milliseconds. */
function refresh(before = null) {
  return attempt(async () => {
    const query = { k: SHOWN, why: true, exclude_seen: byId("live-seen").value, tags: [byId("live-tag").value.trim()] };
    const whose = user;
    const answer = await get(`v1/users/${part(whose)}/recommendations`, query);
    if (whose !== user) return null;
    drawRecommended(answer, before);
    const drawn = performance.now();
    const person = answer.known ? await get(`v1/users/${part(whose)}`) : { events: 0, history: [] };
    if (whose !== user) return null;
    drawHistory(person);
    return { drawn, milliseconds: answer.milliseconds };
  });
}

async function take(item, clicked) {
  if (busy || !user) return;
  busy = true;
  byId("recommended").setAttribute("aria-busy", "true");
  const before = new Map(ranks);
  const posted = await attempt(async () => {
    await interact(user, item.id);
    return performance.now();
  });
  if (posted) {
    const shown = await refresh(before);
    if (shown) {
      byId("timing").replaceChildren(
        h("strong", { id: "click-to-list" }, `${short(shown.drawn - clicked)} ms`), " from click to new list: ",
        `${short(posted - clicked)} ms until the event was on disk, ${short(shown.drawn - posted)} ms for the list `,
        `(the service needed ${short(shown.milliseconds)} ms). They took `, h("em", {}, named(item)), ".",
      );
    }
  }
  byId("recommended").removeAttribute("aria-busy");
  busy = false;
}

function drawRecommended(answer, before) {
  const list = byId("recommended");
  const places = new Map([...list.children].map((row) => [row.dataset.id, row.getBoundingClientRect().top]));
  const focused = list.contains(document.activeElement) ? [...list.children].findIndex((row) => row.contains(document.activeElement)) : -1;
  const scores = answer.items.map(({ score }) => score);
  const low = Math.min(...scores);
  const span = Math.max(...scores) - low || 1;
  list.replaceChildren(...answer.items.map((item, index) => row(item, index, before, (item.score - low) / span)));
  if (!answer.items.length) list.append(h("li", { class: "none" }, nothing()));
  byId("live-for").textContent = answer.known ? "" : "for someone without a history";
  const now = new Set(answer.items.map(({ id }) => id));
  const left = before ? [...before.keys()].filter((id) => !now.has(id)) : [];
  byId("left-list").textContent = left.length ? `Left the list: ${left.map((id) => titles.get(id) ?? id).join(" · ")}` : "";
  ranks = new Map(answer.items.map(({ id }, index) => [id, index]));
  if (focused >= 0) list.children[Math.min(focused, list.children.length - 1)]?.querySelector("button")?.focus();
  if (before) slide(list, places);
  learnTags(answer.items);
}

function nothing() {
  const filtered = byId("live-tag").value.trim() || byId("live-seen").value === "true";
  return filtered ? "Nothing to recommend: no item fits these filters." : "Nothing to recommend yet: no item has had an event.";
}

const titles = new Map();

function row(item, index, before, share) {
  titles.set(item.id, nameOf(item));
  const bar = h("i", { class: "score-bar" });
  bar.style.setProperty("--share", (0.04 + 0.96 * share).toFixed(3));
  const reasons = (item.why ?? []).slice(0, 3).map(nameOf).join(", ");
  const sign = moved(before, item.id, index);
  const said = [`${index + 1}: ${nameOf(item)}`, sign.getAttribute("aria-label") ?? sign.textContent, `score ${short(item.score)}`,
    reasons && `because of ${reasons}`].filter(Boolean).join(", ");
  return h("li", { "data-id": item.id },
    h("button", {
      type: "button", class: "item", title: `Let them take ${item.id}`, "aria-label": said, onclick: () => take(item, performance.now()),
    },
      h("span", { class: "rank" }, String(index + 1)), sign,
      h("span", { class: "words" },
        h("span", { class: "name" }, named(item), ...(item.tags ?? []).slice(0, 2).map((tag) => h("span", { class: "tag" }, tag))),
        because(item.why)),
      h("span", { class: "score" }, bar, short(item.score))));
}

/** How far an item moved, in a sign and in words. */
function moved(before, id, index) {
  if (!before) return h("span", { class: "moved" });
  if (!before.has(id)) return h("span", { class: "moved new" }, "new");
  const up = before.get(id) - index;
  if (up === 0) return h("span", { class: "moved same", "aria-label": "unmoved" }, "·");
  return h("span", { class: `moved ${up > 0 ? "up" : "down"}`, "aria-label": `${up > 0 ? "up" : "down"} ${Math.abs(up)}` },
    `${up > 0 ? "▲" : "▼"} ${Math.abs(up)}`);
}

function because(why) {
  if (!why?.length) return h("span", { class: "why" });
  const parts = why.slice(0, 3).map((own) => h("span", { title: own.id }, named(own), h("b", {}, own.weight.toFixed(2))));
  return h("span", { class: "why" }, "because of ", parts);
}

/** Rows slide from where they were (first, last, invert, play). */
function slide(list, places) {
  if (still.matches) return;
  for (const row of list.children) {
    const from = places.get(row.dataset.id);
    const shift = from === undefined ? null : from - row.getBoundingClientRect().top;
    if (shift === null) row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 350, easing: "ease-out" });
    else if (shift) row.animate([{ transform: `translateY(${shift}px)` }, { transform: "none" }], { duration: 350, easing: "ease-out" });
  }
}

function drawHistory(person) {
  const listed = person.history.length;
  byId("history-count").textContent = many(person.events, "event") + (listed < person.events ? `, ${count(listed)} of them listed` : "");
  const newest = person.history.map((event) => h("li", {}, h("span", { class: "name", title: event.id }, named(event)), moment(event.timestamp)));
  const none = h("li", { class: "none" }, "Nothing yet. The list is what the model offers someone it knows nothing about.");
  byId("history").replaceChildren(...(newest.length ? newest : [none]));
}

function moment(seconds) {
  if (seconds === null) return null;
  const date = new Date(seconds * 1000);
  return h("time", { datetime: date.toISOString(), title: date.toLocaleString() }, ago(seconds));
}

function learnTags(items) {
  const known = byId("live-tags");
  const have = new Set([...known.children].map(({ value }) => value));
  for (const tag of new Set(items.flatMap(({ tags }) => tags ?? []))) if (!have.has(tag)) known.append(h("option", { value: tag }));
}
