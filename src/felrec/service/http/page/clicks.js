// Clicks: click rates by place of the lists of each arm, and the test of the model against trending items.
import { lines } from "./chart.js";
import { byId, count, h } from "./dom.js";

const NAMES = { model: "Model", trending: "Trending items", outside: "Outside a test" };

export function drawClicks({ arms, difference, trending_share: share, since }) {
  const tested = arms.filter(({ arm }) => arm !== "outside");
  byId("clicks-over").textContent = since && tested.length ? `test since ${new Date(since * 1000).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" })}` : "";
  if (!arms.length) {
    byId("clicks-chart").replaceChildren();
    byId("clicks").replaceChildren(h("dd", { class: "muted" }, "No reports yet. Clients report impressions and clicks to POST /v1/feedback, with the ticket of an answer."));
    return;
  }
  lines(byId("clicks-chart"), {
    label: "Click rate by place in the list, with 95 % intervals", xLabel: "place in the list", yLabel: "click rate, with 95 % intervals",
    height: 240, yFormat: (rate) => percent(rate), xTicks: places(arms),
    series: (tested.length ? tested : arms).map(({ arm, places: rates }) => ({
      name: NAMES[arm].toLowerCase(), className: arm === "trending" ? "series-1" : "series-0",
      points: rates.map(({ place, share: rate }) => [place + 1, rate]),
      band: rates.map(({ place, low, high }) => [place + 1, low, high]),
    })),
  });
  byId("clicks").replaceChildren(...(difference ? compared(difference) : []), ...arms.flatMap(rate), ...(difference ? [] : [h("dd", { class: "muted small" }, advice(share))]));
}

const percent = (rate) => `${(rate * 100).toFixed(rate && Math.abs(rate) < 0.1 ? 1 : 0)} %`;

/** Ticks at every place, or at every fifth of many. */
function places(arms) {
  const last = Math.max(...arms.flatMap(({ places: rates }) => rates.map(({ place }) => place + 1)), 1);
  return Array.from({ length: last }, (_, index) => index + 1).filter((place) => last <= 10 || place === 1 || place % 5 === 0);
}

function rate({ arm, lists }) {
  const note = `${count(lists.clicked)} of ${count(lists.of)} lists with a click; 95 % interval ${percent(lists.low)} to ${percent(lists.high)}`;
  return fact(NAMES[arm], percent(lists.share), note);
}

function compared({ value, low, high }) {
  const points = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(share * 100).toFixed(1)}`;
  const verdict = low > 0 ? "the model's lists are clicked more often" : high < 0 ? "trending items are clicked more often" : "no difference shown yet";
  return fact("Model minus trending items", `${points(value)} percentage points`, `95 % interval ${points(low)} to ${points(high)}: ${verdict}`);
}

const advice = (share) => (share
  ? "The comparison appears once both arms have reports."
  : "To compare with trending items, start the service with --ab-trending 0.05.");

const fact = (name, value, note) => [h("dt", {}, name), h("dd", {}, h("strong", {}, value), h("span", { class: "muted small" }, note))];
