// The cold-start lab: a new item, similar users who take it, and its rank for their neighbours after each event.
import { get, interact, part, put, randomKey } from "./api.js";
import { lines } from "./chart.js";
import { byId, count, h, many, named, short } from "./dom.js";
import { attempt } from "./notice.js";
import { picker } from "./picker.js";

const PACE = 220; // milliseconds between events of a run, so that the eye can follow

let anchor = null; // {kind, id, title}
let trial = null;
const SHELF = "felrec-lab"; // where the browser keeps what was put and not taken off again
const shelf = [];
let running = false;
let working = Promise.resolve(); // what is under way

export function mount() {
  choose("item");
  for (const radio of document.querySelectorAll("input[name=anchor]")) {
    radio.addEventListener("change", () => choose(radio.value));
  }
  byId("lab-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running = false;
    else working = run();
  });
  byId("lab-step").addEventListener("click", stepOnce);
  byId("lab-clear").addEventListener("click", () => attempt(clear));
  for (const id of ["lab-takers", "lab-watchers"]) byId(id).addEventListener("change", forget);
  byId("lab-name").value = "A brand-new thing";
  remember();
  draw();
}

/** What an earlier page left on the shelf can still be taken off. */
function remember() {
  try {
    shelf.push(...JSON.parse(localStorage.getItem(SHELF) ?? "[]"));
  } catch {
    // Then only this page's own.
  }
  byId("lab-clear").disabled = shelf.length === 0;
}

function keep() {
  byId("lab-clear").disabled = shelf.length === 0;
  try {
    localStorage.setItem(SHELF, JSON.stringify(shelf));
  } catch {
    // Then it lasts until the page is closed.
  }
}

export async function show() {
  if (!anchor) await attempt(suggest);
}

export function hide() {
  running = false;
}

let field;

function choose(kind) {
  anchor = null;
  field = picker(byId("lab-anchor"), {
    kind: `${kind}s`, label: kind === "item" ? "Item to be close to" : "User to be close to",
    chosen: (thing) => { anchor = { kind, ...thing }; forget(); },
  });
  field.addEventListener("input", () => { anchor = null; }); // what is typed is not chosen yet
  forget();
}

/** Something to begin with: the first item of somebody's list. */
async function suggest() {
  const asked = field; // somebody may choose another kind of anchor meanwhile
  const { users } = await get("v1/users", { sample: true, limit: 1 });
  if (!users.length) return;
  const { items } = await get(`v1/users/${part(users[0].id)}/recommendations`, { k: 1 });
  if (!items.length || anchor || field !== asked) return;
  anchor = { kind: "item", ...items[0] };
  field.show(items[0]);
}

function forget() {
  if (!running) trial = null;
  draw();
}

async function run() {
  running = true;
  byId("lab-run").textContent = "Stop";
  byId("lab-step").disabled = true;
  if (trial && !trial.takers.length) trial = null;
  while (running && (await attempt(step))) await new Promise((resolve) => setTimeout(resolve, PACE));
  running = false;
  byId("lab-run").textContent = "Run";
  byId("lab-step").disabled = false;
}

async function stepOnce() {
  if (!byId("lab-form").reportValidity()) return;
  byId("lab-step").disabled = true; // a second click would run beside the first
  working = attempt(step);
  await working;
  byId("lab-step").disabled = running;
}

/** One more event; true if there are more to come. */
async function step() {
  const current = trial?.takers.length ? trial : await begin(); // a field that is changed meanwhile forgets `trial`
  const user = current.takers[0];
  const clicked = performance.now();
  await interact(user.id, current.item.id);
  current.takers.shift();
  await measure(current, user, clicked);
  return current.takers.length > 0;
}

const complaint = (message) => Object.assign(new Error(message), { code: "page" });

async function begin() {
  if (!anchor) throw complaint("Choose an item or a user first: type a few letters and pick one.");
  const takers = Number(byId("lab-takers").value);
  const wanted = takers + Number(byId("lab-watchers").value);
  const where = anchor.kind === "item" ? `v1/items/${part(anchor.id)}/audience` : `v1/users/${part(anchor.id)}/neighbours`;
  const { users } = await get(where, { k: wanted });
  if (users.length < 2) throw complaint("There are too few users to compare. Import a log, or choose another anchor.");
  const group = deal(users, takers);
  const title = byId("lab-name").value.trim() || "A brand-new thing";
  const item = { id: `lab-${randomKey().slice(0, 8)}`, title };
  await put(`v1/items/${part(item.id)}`, { title, tags: ["lab"] });
  shelf.push(item);
  keep();
  const begun = { item, ...group, points: [], total: group.takers.length };
  trial = begun;
  await measure(begun, null, performance.now());
  return begun;
}

/** Every other user takes it, the others watch: both groups are equally close to the anchor. */
function deal(users, wanted) {
  const takers = [];
  const watchers = [];
  const share = Math.min(wanted, Math.ceil(users.length / 2));
  users.forEach((user, index) => (index % 2 === 0 && takers.length < share ? takers : watchers).push(user));
  while (takers.length < share) takers.push(watchers.pop());
  return { takers, watchers };
}

async function measure(trial, user, clicked) {
  const answer = user ? await get(`v1/items/${part(trial.item.id)}/rank`, { users: trial.watchers.map(({ id }) => id) }) : await unranked(trial);
  const ranks = answer.users.map(({ rank }) => place(rank, answer)).sort((a, b) => a - b);
  const at = (share) => ranks[Math.min(ranks.length - 1, Math.floor(share * ranks.length))];
  trial.catalogue = answer.catalogue;
  trial.points.push({
    event: trial.points.length, user, milliseconds: performance.now() - clicked,
    median: at(0.5), low: at(0.25), high: at(0.75), popularity: place(answer.decayed_popularity, answer),
  });
  draw();
}

/** Before its first event the item has no rank. */
async function unranked(trial) {
  const { items } = await get("v1/stats");
  return { catalogue: items, users: trial.watchers.map(() => ({ rank: null })), decayed_popularity: null };
}

/** People count from 1; what has no rank yet comes after everything. */
const place = (rank, { catalogue }) => (rank === null ? catalogue + 1 : rank + 1);

async function clear() {
  running = false;
  await working; // a run that is under way would put the next one
  const names = [];
  while (shelf.length) {
    const { id, title } = shelf[0];
    await put(`v1/items/${part(id)}`, { title, tags: ["lab"], available: false });
    shelf.shift();
    keep();
    names.push(title);
  }
  byId("lab-told").textContent = `Off the shelf, and not recommended any more: ${names.join(", ")}.`;
  trial = null;
}

function draw() {
  const points = trial?.points ?? [];
  const total = trial?.total ?? (Number(byId("lab-takers").value) || 1);
  byId("lab-catalogue").textContent = trial?.catalogue ? `among ${count(trial.catalogue)} items` : "";
  lines(byId("lab-chart"), {
    label: "Rank of the new item for the neighbours and by decayed popularity, after each event",
    xLabel: "events of the new item", yLabel: "rank, 1 is best", log: true, height: 320,
    x: { from: 0, to: total }, y: { to: trial?.catalogue ?? 10_000 },
    xTicks: ticks(total), xFormat: String, yFormat: count,
    series: [
      { name: points.length ? "decayed popularity" : "", className: "series-1", points: points.map(({ event, popularity }) => [event, popularity]) },
      { name: points.length ? "neighbours, median" : "", className: "series-0", points: points.map(({ event, median }) => [event, median]),
        band: points.map(({ event, low, high }) => [event, low, high]) },
    ],
  });
  tell(points);
  table(points);
}

const ticks = (total) => Array.from({ length: total + 1 }, (_, index) => index).filter((index) => index % Math.ceil(total / 12) === 0);

function tell(points) {
  const last = points.at(-1);
  if (!last) {
    byId("lab-told").textContent = "Nothing measured yet. Run, or go one event at a time.";
  } else if (last.event === 0) {
    byId("lab-told").textContent = "No event yet: nobody can be shown the item.";
  } else {
    byId("lab-told").replaceChildren(
      `After ${many(last.event, "event")}: place `, h("strong", {}, count(last.median)), " for half of the neighbours or better, ",
      h("strong", {}, count(last.popularity)), " by decayed popularity. ",
      `The last event took ${short(last.milliseconds)} ms until all ranks were new.`,
    );
  }
}

function table(points) {
  const body = byId("lab-table").tBodies[0];
  byId("lab-table").hidden = points.length === 0;
  body.replaceChildren(...points.toReversed().map(({ event, user, median, low, popularity, milliseconds }) => h("tr", {},
    ...[String(event), user ? named(user) : "nobody", count(median), `${count(low)} or better`, count(popularity), user ? short(milliseconds) : ""]
      .map((cell) => h("td", {}, cell)))));
}
