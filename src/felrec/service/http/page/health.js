// Health: rates, latencies, the catalogue and popularity bias, asked every second while the view is open.
import { get } from "./api.js";
import { bars, lines, spark } from "./chart.js";
import { byId, count, h, many, short, span } from "./dom.js";
import { attempt } from "./notice.js";

const EVERY = 1000; // milliseconds
const KEPT = 180; // samples: three minutes

const samples = []; // {at, ...numbers}
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
      byId("tiles").firstChild.replaceWith(tile("State", "no answer", `for ${span(seconds)}`, null, true));
    }
    byId("tiles").classList.toggle("stale", !stats);
  }
  if (!byId("view-health").hidden) timer = setTimeout(tick, EVERY);
}

/** The numbers that are drawn over time. */
function numbers(stats) {
  const asked = stats.latencies.recommendations;
  return {
    rate: stats.events_per_second, queue: stats.queue_depth, commit: stats.last_commit_ms, items: stats.items,
    users: stats.users, cold: stats.cold_items, p50: asked?.p50 ?? NaN, p99: asked?.p99 ?? NaN,
  };
}

function draw(stats) {
  const now = samples.at(-1);
  const grown = now.items - samples[0].items;
  byId("tiles").replaceChildren(
    tile("State", state(stats), stats.problem ?? `up for ${span(stats.uptime_seconds)}`, null, state(stats) !== "ready"),
    tile("Events a second", short(now.rate), `${count(stats.events)} in all`, "rate"),
    tile("Waiting events", count(now.queue), `room for ${count(stats.queue_limit)}`, "queue"),
    tile("Last commit", `${short(now.commit)} ms`, `store of ${short(stats.store_bytes / 1e6)} MB`, "commit"),
    Number.isFinite(now.p50)
      ? tile("Recommendations", `${short(now.p50)} ms`, `99 of 100 within ${short(now.p99)} ms`, "p50")
      : tile("Recommendations", "none yet", "nobody has asked", null),
    tile("Users", count(now.users), `${short(stats.memory_bytes / 1e6)} MB of memory`, "users"),
    tile("Items", count(now.items), grown ? `${count(grown)} new since you look` : "none new since you look", "items"),
    tile("Cold items", count(now.cold), `${percent(now.items ? now.cold / now.items : 0)} have under 5 events`, "cold"),
  );
  const first = now.at - KEPT * (EVERY / 1000);
  const over = (name) => samples.map((sample) => [sample.at - now.at, sample[name]]);
  const shared = {
    x: { from: Math.max(first - now.at, Math.min(-10, samples[0].at - now.at)), to: 0 },
    xLabel: "seconds ago", xFormat: (x) => String(Math.round(-x)), height: 200,
  };
  lines(byId("latency-chart"), {
    ...shared, label: "Latency of recommendations over the last minutes", yLabel: "milliseconds",
    series: [
      { name: "99th percentile", className: "series-1", points: over("p99") },
      { name: "median", className: "series-0", points: over("p50") },
    ],
  });
  lines(byId("catalogue-chart"), {
    ...shared, label: "Items and cold items over the last minutes", yLabel: "items",
    series: [
      { name: "all items", className: "series-0", points: over("items") },
      { name: "cold items", className: "series-1", points: over("cold") },
    ],
  });
  drawBias(stats.bias);
}

const state = ({ ready, durable }) => (ready ? (durable ? "ready" : "reads only") : "not ready");

function tile(name, value, note, series, bad = false) {
  const values = series ? samples.map((sample) => sample[series]).filter(Number.isFinite) : [];
  return h("div", { class: `tile${bad ? " bad" : ""}` },
    h("h2", {}, name), h("p", { class: "value" }, value), h("p", { class: "muted small" }, note),
    values.length > 1 ? spark(values, `${name} over the last minutes`) : null);
}

const percent = (share) => `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;

/** Whether the lists only repeat what is popular anyway. Deciles of items, the most popular first. */
function drawBias(bias) {
  if (!bias?.requests) {
    byId("bias-over").textContent = "";
    byId("bias").replaceChildren(h("dd", {}, "Nobody has asked for recommendations yet. Open Live, then come back."));
    byId("bias-chart").replaceChildren();
    return;
  }
  byId("bias-over").textContent = `over the last ${many(bias.requests, "answer")}`;
  bars(byId("bias-chart"), {
    label: "Share of recommendations by popularity of the items", names: ["recommended"],
    xLabel: "tenths of the catalogue, the most popular items first", yLabel: "share of recommendations (dashed: even)", even: 0.1,
    groups: bias.deciles.map((decile, index) => ({ name: String(index + 1), values: [decile] })),
  });
  byId("bias").replaceChildren(
    ...fact("Gini of what was recommended", short(bias.gini), "0: every item equally often; 1: always the same one"),
    ...fact("Coverage", percent(bias.coverage), "share of the catalogue that was recommended at all"),
  );
}

const fact = (name, value, note) => [h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("span", { class: "muted small" }, note))];
