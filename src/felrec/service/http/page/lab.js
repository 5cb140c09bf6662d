// The cold-start lab: some neighbours take a new item while the traffic of others goes on. After each event its rank is
// measured for neighbours who did not take it, and for strangers.
import { get, interact, part, post, put, randomKey } from "./api.js";
import { lines } from "./chart.js";
import { byId, count, h, many, named, short } from "./dom.js";
import { group, widelyRanked } from "./lab_groups.js";
import { Visitors } from "./lab_visitors.js";
import { attempt } from "./notice.js";
import { picker } from "./picker.js";

const PACE = 220; // milliseconds between the events of a run, slow enough to watch
const SHELF = "felrec-lab"; // storage key: lab items that are still available
const NUMBERS = ["takers", "watchers", "strangers", "between"];

let anchor = null; // {id, title}
let trial = null;
let field;
const shelf = [];
let running = false;
let working = Promise.resolve(); // the operation in progress

export function mount() {
  field = picker(byId("lab-anchor"), {
    kind: "items", label: "Anchor item", chosen: (thing) => { anchor = thing; forget(); },
  });
  field.addEventListener("input", () => { anchor = null; }); // typed text is not a choice yet
  byId("lab-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running = false;
    else working = run();
  });
  byId("lab-step").addEventListener("click", stepOnce);
  byId("lab-clear").addEventListener("click", () => attempt(clear));
  for (const name of NUMBERS) byId(`lab-${name}`).addEventListener("change", forget);
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

async function suggest() {
  const item = await widelyRanked();
  if (!item || anchor || field.value) return; // something was chosen or typed in the meantime
  anchor = item;
  field.show(item);
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

/** Post the events of others, then one of the new item; true if there are more to come. */
async function step() {
  const current = trial?.takers.length ? trial : await begin(); // editing a field in the meantime clears `trial`
  if (current.between) await post("v1/interactions", await current.visitors.next(current.between));
  const user = current.takers[0];
  const clicked = performance.now();
  await interact(user.id, current.item.id);
  current.takers.shift();
  await measure(current, user, clicked);
  return current.takers.length > 0;
}

const complaint = (message) => Object.assign(new Error(message), { code: "page" });

async function begin() {
  if (!anchor) throw complaint("Choose an item first: type a few letters and pick one.");
  const [takers, watchers, strangers, between] = NUMBERS.map((name) => Number(byId(`lab-${name}`).value));
  byId("lab-told").textContent = "Looking for neighbours and strangers …";
  const groups = await group(anchor, { takers, watchers, strangers });
  if (groups.missing) {
    byId("lab-told").textContent = "";
    throw complaint(`This needs ${many(takers + watchers + strangers, "user")} with a history, ${count(groups.missing)} more than the lab can find here. Enter smaller numbers.`);
  }
  const title = byId("lab-name").value.trim() || "A brand-new item";
  const item = { id: `lab-${randomKey().slice(0, 8)}`, title };
  await put(`v1/items/${part(item.id)}`, { title, tags: ["lab"] });
  shelf.push(item);
  keep();
  const begun = { item, ...groups, between, visitors: new Visitors(item.id, groups.everyone), points: [], total: takers };
  trial = begun;
  await measure(begun, null, performance.now());
  return begun;
}

async function measure(trial, user, clicked) {
  const everyone = [...trial.watchers, ...trial.strangers];
  const answer = user ? await get(`v1/items/${part(trial.item.id)}/rank`, { users: everyone.map(({ id }) => id) }) : await unranked(everyone);
  const ranks = answer.users.map(({ rank }) => place(rank, answer));
  trial.catalogue = answer.catalogue;
  trial.points.push({
    event: trial.points.length, user, milliseconds: performance.now() - clicked,
    neighbours: quartiles(ranks.slice(0, trial.watchers.length)), strangers: quartiles(ranks.slice(trial.watchers.length)),
    popularity: place(answer.decayed_popularity, answer),
  });
  draw();
}

/** The item has no rank before its first event. */
async function unranked(users) {
  const { items } = await get("v1/stats");
  return { catalogue: items, users: users.map(() => ({ rank: null })), decayed_popularity: null };
}

/** Ranks are shown from 1; an item without a rank is placed last. */
const place = (rank, { catalogue }) => (rank === null ? catalogue + 1 : rank + 1);

function quartiles(ranks) {
  const sorted = ranks.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return { low: at(0.25), median: at(0.5), high: at(0.75) };
}

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
  const people = (who, className) => ({
    name: points.length ? who : "", className, points: points.map((point) => [point.event, point[who].median]),
    band: points.map((point) => [point.event, point[who].low, point[who].high]),
  });
  lines(byId("lab-chart"), {
    label: "Rank of the new item for neighbours, for strangers and by decayed popularity, after each event",
    xLabel: "events of the new item", yLabel: "rank, 1 is best", log: true, height: 320,
    x: { from: 0, to: total }, y: { to: trial?.catalogue ?? 10_000 },
    xTicks: ticks(total), xFormat: String, yFormat: count,
    series: [
      { name: points.length ? "popularity, for both" : "", className: "series-1", points: points.map(({ event, popularity }) => [event, popularity]) },
      people("strangers", "series-2"),
      people("neighbours", "series-0"),
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
    const rank = (number) => h("strong", {}, count(number));
    byId("lab-told").replaceChildren(
      `After ${many(last.event, "event")} of the item and ${count(last.event * trial.between)} of others: median rank `,
      rank(last.neighbours.median), ` for ${many(trial.watchers.length, "neighbour")} who did not take it, `,
      rank(last.strangers.median), ` for ${many(trial.strangers.length, "stranger")}. Decayed popularity ranks it `,
      rank(last.popularity), " for everyone. ",
      `Recording the last event and updating the ranks took ${short(last.milliseconds)} ms.`,
    );
  }
}

function table(points) {
  const body = byId("lab-table").tBodies[0];
  byId("lab-table").hidden = points.length === 0;
  const spread = ({ low, median, high }) => `${count(median)} (${count(low)}–${count(high)})`;
  body.replaceChildren(...points.toReversed().map(({ event, user, neighbours, strangers, popularity, milliseconds }) => h("tr", {},
    ...[String(event), user ? named(user) : "–", spread(neighbours), spread(strangers), count(popularity), user ? short(milliseconds) : ""]
      .map((cell) => h("td", {}, cell)))));
}
