// Trending: lists for everybody, sorted by what happens now, by all events, or by arrival.
import { get, part } from "./api.js";
import { byId, count, h, many, named, short } from "./dom.js";
import { attempt } from "./notice.js";

const PAGE = 20;
const ABOUT = {
  trending: "Older events count less: the number is what is left of them.",
  popular: "All events of the time chosen count the same.",
  newest: "Items by their first event, the latest first.",
};
let listed = 0;
let asked = 0;

export function mount() {
  for (const id of ["trending-sort", "trending-hours", "trending-tag"]) byId(id).addEventListener("change", () => load());
  byId("trending-more").addEventListener("click", () => load(listed));
}

export function show() {
  load();
}

export function hide() {}

/** Load a page; the first one replaces the list. */
async function load(offset = 0) {
  const mine = ++asked;
  const sort = byId("trending-sort").value;
  const query = { sort, hours: byId("trending-hours").value, tags: [byId("trending-tag").value.trim()], limit: PAGE, offset };
  const answer = await attempt(() => get("v1/items", query));
  if (!answer || mine !== asked) return;
  const list = byId("trending-list");
  const most = offset ? Number(list.dataset.most) : answer.items[0]?.value ?? 1;
  list.dataset.most = most;
  const rows = answer.items.map((item, index) => row(item, offset + index, sort, most));
  if (offset) list.append(...rows);
  else list.replaceChildren(...rows);
  listed = offset + rows.length;
  if (!listed) list.append(h("li", { class: "none" }, nothing()));
  byId("trending-about").textContent = ABOUT[sort];
  byId("trending-more").hidden = rows.length < PAGE;
  if (offset) rows[0]?.querySelector("a").focus(); // the keyboard goes on where the list did
}

const nothing = () => (byId("trending-hours").value || byId("trending-tag").value.trim()
  ? "No item has an event in this time with this tag."
  : "No item has an event yet. Import some in the Data view.");

function row(item, index, sort, most) {
  const bar = h("i", { class: "score-bar" });
  bar.style.setProperty("--share", (item.value / most).toFixed(3));
  const value = { trending: short(item.value), popular: count(item.value), newest: "" }[sort];
  return h("li", {},
    h("span", { class: "rank" }, String(index + 1)),
    h("span", { class: "words" },
      h("span", { class: "name" }, h("a", { href: `#/map/items/${part(item.id)}`, title: "Show on the map" }, named(item)),
        ...(item.tags ?? []).slice(0, 2).map((tag) => h("span", { class: "tag" }, tag))),
      h("span", { class: "muted small" }, many(item.events, "event"), item.title ? h("span", { class: "id" }, ` ${item.id}`) : null)),
    h("span", { class: "score" }, sort === "newest" ? null : bar, value));
}
