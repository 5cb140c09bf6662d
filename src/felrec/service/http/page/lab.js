// The cold-start lab: similar users interact with a new item; its rank for held-out users is measured after each event.
import { get, interact, part, put, randomKey } from "./api.js";
import { lines } from "./chart.js";
import { byId, count, h, many, named, short } from "./dom.js";
import { attempt } from "./notice.js";
import { picker } from "./picker.js";

const PACE = 220; // milliseconds between the events of a run, slow enough to watch

let anchor = null; // {kind, id, title}
let trial = null;
const SHELF = "felrec-lab"; // storage key: lab items that are still available
const shelf = [];
let running = false;
let working = Promise.resolve(); // the operation in progress

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
  byId("lab-name").value = "A brand-new item";
  remember();
  draw();
}

/** Load the items of earlier sessions, so that they can still be made unavailable. */
function remember() {
  try {
    shelf.push(...JSON.parse(localStorage.getItem(SHELF) ?? "[]"));
  } catch {
    // Storage is unavailable: only items of this session are known.
  }
  byId("lab-clear").disabled = shelf.length === 0;
}

function keep() {
  byId("lab-clear").disabled = shelf.length === 0;
  try {
    localStorage.setItem(SHELF, JSON.stringify(shelf));
  } catch {
    // Storage is unavailable: the list lasts until the page is closed.
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
    kind: `${kind}s`, label: kind === "item" ? "Anchor item" : "Anchor user",
    chosen: (thing) => { anchor = { kind, ...thing }; forget(); },
  });
  field.addEventListener("input", () => { anchor = null; }); // typed text is not a choice yet
  forget();
}

/** Suggest an anchor: the first recommendation of a random user. */
async function suggest() {
  const asked = field; // the user may switch the kind of anchor in the meantime
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
  byId("lab-step").disabled = true; // a second click would run concurrently
  working = attempt(step);
  await working;
  byId("lab-step").disabled = running;
}

/** Record one event; true if there are more to come. */
async function step() {
  const current = trial?.takers.length ? trial : await begin(); // editing a field in the meantime clears `trial`
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
  if (users.length < 2) throw complaint("Too few similar users to compare. Import more events, or choose another anchor.");
  const group = deal(users, takers);
  const title = byId("lab-name").value.trim() || "A brand-new item";
  const item = { id: `lab-${randomKey().slice(0, 8)}`, title };
  await put(`v1/items/${part(item.id)}`, { title, tags: ["lab"] });
  shelf.push(item);
  keep();
  const begun = { item, ...group, points: [], total: group.takers.length };
  trial = begun;
  await measure(begun, null, performance.now());
  return begun;
}

/** Alternate users between the groups, so that both are equally similar to the anchor. */
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

/** The item has no rank before its first event. */
async function unranked(trial) {
  const { items } = await get("v1/stats");
  return { catalogue: items, users: trial.watchers.map(() => ({ rank: null })), decayed_popularity: null };
}

/** Ranks are shown from 1; an item without a rank is placed last. */
const place = (rank, { catalogue }) => (rank === null ? catalogue + 1 : rank + 1);

async function clear() {
  running = false;
  await working; // a run in progress could create another item
  const names = [];
  while (shelf.length) {
    const { id, title } = shelf[0];
    await put(`v1/items/${part(id)}`, { title, tags: ["lab"], available: false });
    shelf.shift();
    keep();
    names.push(title);
  }
  byId("lab-told").textContent = `No longer recommended: ${names.join(", ")}.`;
  trial = null;
}

function draw() {
  const points = trial?.points ?? [];
  const total = trial?.total ?? (Number(byId("lab-takers").value) || 1);
  byId("lab-catalogue").textContent = trial?.catalogue ? `among ${count(trial.catalogue)} items` : "";
  lines(byId("lab-chart"), {
    label: "Rank of the new item for held-out users and by decayed popularity, after each event",
    xLabel: "events of the new item", yLabel: "rank, 1 is best", log: true, height: 320,
    x: { from: 0, to: total }, y: { to: trial?.catalogue ?? 10_000 },
    xTicks: ticks(total), xFormat: String, yFormat: count,
    series: [
      { name: points.length ? "decayed popularity" : "", className: "series-1", points: points.map(({ event, popularity }) => [event, popularity]) },
      { name: points.length ? "held-out median" : "", className: "series-0", points: points.map(({ event, median }) => [event, median]),
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
    byId("lab-told").textContent = "No measurements yet. Run the experiment, or add one event at a time.";
  } else if (last.event === 0) {
    byId("lab-told").textContent = "No events yet: the item cannot be recommended.";
  } else {
    byId("lab-told").replaceChildren(
      `After ${many(last.event, "event")}: median rank `, h("strong", {}, count(last.median)), " for held-out users, rank ",
      h("strong", {}, count(last.popularity)), " by decayed popularity. ",
      `Recording the last event and updating the ranks took ${short(last.milliseconds)} ms.`,
    );
  }
}

function table(points) {
  const body = byId("lab-table").tBodies[0];
  byId("lab-table").hidden = points.length === 0;
  body.replaceChildren(...points.toReversed().map(({ event, user, median, low, popularity, milliseconds }) => h("tr", {},
    ...[String(event), user ? named(user) : "–", count(median), `${count(low)} or better`, count(popularity), user ? short(milliseconds) : ""]
      .map((cell) => h("td", {}, cell)))));
}
