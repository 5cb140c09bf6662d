// Health: rates, latencies, the catalogue and popularity bias, updated every second while the view is open.
import { get } from "./api.js";
import { bars, lines, spark } from "./chart.js";
import { drawClicks } from "./clicks.js";
import { byId, count, h, many, short, span } from "./dom.js";
import { attempt } from "./notice.js";

const EVERY = 1000; // milliseconds
const KEPT = 180; // samples: three minutes

const samples = []; // {at, ...numbers}
let itemsAtFirst; // when the first sample came
let timer;

export function mount() {}

export function show() {
  tick();
}

export function hide() {
  clearTimeout(timer);
}

async function tick() {
  clearTimeout(timer);
  if (!document.hidden) {
    const stats = await attempt(() => get("v1/stats"));
    if (stats) {
      samples.push({ at: performance.now() / 1000, ...numbers(stats) });
      if (samples.length > KEPT) samples.shift();
      draw(stats);
    } else if (samples.length) {
      const seconds = performance.now() / 1000 - samples.at(-1).at;
      byId("tiles").firstChild.replaceWith(tile("State", "no response", `for ${span(seconds)}`, null, true));
    }
    byId("tiles").classList.toggle("stale", !stats);
  }
  if (!byId("view-health").hidden) timer = setTimeout(tick, EVERY);
}

/** The numbers that are plotted over time. */
function numbers(stats) {
  const asked = stats.latencies.recommendations;
  return {
    rate: stats.events_per_second, queue: stats.queue_depth, commit: stats.last_commit_ms, items: stats.items,
    users: stats.users, cold: stats.cold_items, p50: asked?.p50 ?? NaN, p99: asked?.p99 ?? NaN,
  };
}

function draw(stats) {
  const now = samples.at(-1);
  itemsAtFirst ??= now.items;
  const grown = now.items - itemsAtFirst;
  byId("tiles").replaceChildren(
    tile("State", state(stats), stats.problem ?? stats.clock_problem ?? `up for ${span(stats.uptime_seconds)}`, null, state(stats) !== "ready"),
    tile("Events per second", short(now.rate), `${count(stats.events)} in total`, "rate"),
    tile("Queued events", count(now.queue), `limit ${count(stats.queue_limit)}`, "queue"),
    tile("Last commit", `${short(now.commit)} ms`, `store size ${short(stats.store_bytes / 1e6)} MB`, "commit"),
    Number.isFinite(now.p50)
      ? tile("Latency", `${short(now.p50)} ms`, `median; p99 ${short(now.p99)} ms`, "p50")
      : tile("Latency", "–", "no recommendation requests yet", null),
    tile("Users", count(now.users), `process memory ${short(stats.memory_bytes / 1e6)} MB`, "users"),
    tile("Items", count(now.items), `${grown ? many(grown, "new item") : "no new items"} since you opened this page`, "items"),
    tile("Cold items", count(now.cold), `${percent(now.items ? now.cold / now.items : 0)} have fewer than 5 events`, "cold"),
  );
  const first = now.at - KEPT * (EVERY / 1000);
  const over = (name) => samples.map((sample) => [sample.at - now.at, sample[name]]);
  const shared = {
    x: { from: Math.max(first - now.at, Math.min(-10, samples[0].at - now.at)), to: 0 },
    xLabel: "seconds ago", xFormat: (x) => String(Math.round(-x)), height: 200,
  };
  lines(byId("latency-chart"), {
    ...shared, label: "Recommendation latency over the last three minutes", yLabel: "milliseconds",
    series: [
      { name: "99th percentile", className: "series-1", points: over("p99") },
      { name: "median", className: "series-0", points: over("p50") },
    ],
  });
  lines(byId("catalogue-chart"), {
    ...shared, label: "Items and cold items over the last three minutes", yLabel: "items",
    series: [
      { name: "all items", className: "series-0", points: over("items") },
      { name: "cold items", className: "series-1", points: over("cold") },
    ],
  });
  drawBias(stats.bias);
  drawClicks(stats.feedback);
}

const state = ({ ready, durable }) => (ready ? (durable ? "ready" : "read-only") : "not ready");

function tile(name, value, note, series, bad = false) {
  const values = series ? samples.map((sample) => sample[series]).filter(Number.isFinite) : [];
  return h("div", { class: `tile${bad ? " bad" : ""}` },
    h("h2", {}, name), h("p", { class: "value" }, value), h("p", { class: "muted small" }, note),
    values.length > 1 ? spark(values, `${name} over the last three minutes`) : null);
}

const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

/** Popularity bias: recommendations by popularity decile (most popular first), Gini coefficient and coverage. */
function drawBias(bias) {
  if (!bias?.requests) {
    byId("bias-over").textContent = "";
    byId("bias").replaceChildren(h("dd", {}, "No recommendation requests yet. Open Live, then come back."));
    byId("bias-chart").replaceChildren();
    return;
  }
  byId("bias-over").textContent = `over the last ${many(bias.requests, "request")}`;
  bars(byId("bias-chart"), {
    label: "Share of recommendations by item popularity", names: ["recommended"],
    xLabel: "popularity decile, most popular items first", yLabel: "share of recommendations (dashed: uniform)", even: 0.1,
    groups: bias.deciles.map((decile, index) => ({ name: String(index + 1), values: [decile] })),
  });
  byId("bias").replaceChildren(
    ...fact("Gini coefficient", short(bias.gini), "0: all items recommended equally often; 1: always the same item"),
    ...fact("Coverage", percent(bias.coverage), "share of the catalogue recommended at least once"),
  );
}

const fact = (name, value, note) => [h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("span", { class: "muted small" }, note))];
