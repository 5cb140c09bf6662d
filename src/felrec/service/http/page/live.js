// Live: a user's history and recommendations. Recording an event updates both; the page shows how long that took.
import { remember } from "./address.js";
import { get, interact, part, randomKey } from "./api.js";
import { ago, byId, count, h, many, named, nameOf, short, toldApart } from "./dom.js";
import { attempt } from "./notice.js";
import { picker } from "./picker.js";

const SHOWN = 10;
const still = matchMedia("(prefers-reduced-motion: reduce)");

let user = null;
let ranks = new Map(); // item -> position in the list shown
let busy = false;
let input;

export function mount() {
  input = picker(byId("live-user"), { kind: "users", label: "User", allowNew: true, chosen: ({ id }) => open(id) });
  picker(byId("live-item"), { kind: "items", label: "Item", clears: true, chosen: (item) => take(item, performance.now()) });
  byId("live-random").addEventListener("click", () => attempt(openRandomUser));
  byId("live-stranger").addEventListener("click", () => open(`visitor-${randomKey().slice(0, 6)}`));
  byId("live-seen").addEventListener("change", () => refresh());
  byId("live-tag").addEventListener("change", () => refresh());
}

/** Called when the view opens; `wanted` is the user in the address, if any. */
export function show(wanted) {
  if (wanted && wanted !== user) open(wanted);
  else if (!user) attempt(openRandomUser);
  else {
    remember("live", [user], true);
    refresh();
  }
}

export function hide() {}

async function openRandomUser() {
  const before = user;
  const { users } = await get("v1/users", { sample: true, limit: 12 });
  if (user !== before) return; // another user was chosen in the meantime
  const others = users.filter(({ id }) => id !== user);
  if (others.length) await open(others[Math.floor(Math.random() * others.length)].id);
  else byId("timing").textContent = "No events yet. Post some, or choose “New user”.";
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
    list.replaceChildren(h("li", { class: "none" }, "Loading …")); // never show one user's data under another user's name
  }
  if (!(await refresh()) && user === id) {
    for (const waiting of document.querySelectorAll(".live .none")) waiting.textContent = "No response.";
  }
}

/** Reload and draw recommendations and history; returns when the list was drawn and the service's own milliseconds. */
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
        h("strong", { id: "click-to-list" }, `${short(shown.drawn - clicked)} ms`), " from click to updated list: ",
        `${short(posted - clicked)} ms until the event was on disk, ${short(shown.drawn - posted)} ms for the list `,
        `(${short(shown.milliseconds)} ms in the service). Recorded `, h("em", {}, named(item)), ".",
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
  list.replaceChildren(...toldApart(answer.items).map((item, index) => row(item, index, before, (item.score - low) / span)));
  if (!answer.items.length) list.append(h("li", { class: "none" }, nothing()));
  const whose = answer.known ? "" : "for a user without history";
  byId("live-for").textContent = answer.arm === "trending" ? "trending items: this user is in the test group of --ab-trending" : whose;
  const now = new Set(answer.items.map(({ id }) => id));
  const left = before ? [...before.keys()].filter((id) => !now.has(id)) : [];
  byId("left-list").textContent = left.length ? `No longer listed: ${left.map((id) => titles.get(id) ?? id).join(" · ")}` : "";
  ranks = new Map(answer.items.map(({ id }, index) => [id, index]));
  if (focused >= 0) list.children[Math.min(focused, list.children.length - 1)]?.querySelector("button")?.focus();
  if (before) slide(list, places);
  learnTags(answer.items);
}

function nothing() {
  const filtered = byId("live-tag").value.trim() || byId("live-seen").value === "true";
  return filtered ? "No recommendations: no item matches these filters." : "No recommendations yet: no item has an event.";
}

const titles = new Map();

function row(item, index, before, share) {
  titles.set(item.id, nameOf(item));
  const bar = h("i", { class: "score-bar" });
  bar.style.setProperty("--share", (0.04 + 0.96 * share).toFixed(3));
  const reasons = (item.why ?? []).map((reason) => reason.text).join("; ");
  const sign = moved(before, item.id, index);
  const said = [`${index + 1}: ${nameOf(item)}`, sign.getAttribute("aria-label") ?? sign.textContent, `score ${short(item.score)}`,
    reasons].filter(Boolean).join(", ");
  return h("li", { "data-id": item.id },
    h("button", {
      type: "button", class: "item", title: `Record an event with ${item.id}`, "aria-label": said, onclick: () => take(item, performance.now()),
    },
      h("span", { class: "rank" }, String(index + 1)), sign,
      h("span", { class: "words" },
        h("span", { class: "name" }, named(item), ...(item.tags ?? []).slice(0, 2).map((tag) => h("span", { class: "tag" }, tag))),
        because(item.why)),
      h("span", { class: "score" }, bar, short(item.score))));
}

/** How far an item moved: a symbol, and a label for screen readers. */
function moved(before, id, index) {
  if (!before) return h("span", { class: "moved" });
  if (!before.has(id)) return h("span", { class: "moved new" }, "new");
  const up = before.get(id) - index;
  if (up === 0) return h("span", { class: "moved same", "aria-label": "unchanged" }, "·");
  return h("span", { class: `moved ${up > 0 ? "up" : "down"}`, "aria-label": `${up > 0 ? "up" : "down"} ${Math.abs(up)}` },
    `${up > 0 ? "▲" : "▼"} ${Math.abs(up)}`);
}

/** The reasons of an item, each with its share of what raises the score. */
function because(why) {
  const ids = (reason) => (reason.items.length ? ` (${reason.items.map((own) => own.id).join(", ")})` : "");
  const parts = (why ?? []).map((reason) => h("span", { title: reason.text + ids(reason) }, // the line may be cut
    reason.text, h("b", {}, `${Math.round(100 * reason.share)} %`)));
  return h("span", { class: "why" }, parts);
}

/** Animate rows from their old positions (FLIP: first, last, invert, play). */
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
  byId("history-count").textContent = many(person.events, "event") + (listed < person.events ? `, latest ${count(listed)} shown` : "");
  const newest = toldApart(person.history).map((event) => h("li", {}, h("span", { class: "name", title: event.id }, named(event)), moment(event.timestamp)));
  const none = h("li", { class: "none" }, "No events yet. The list shows what the model recommends to an unknown user.");
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
