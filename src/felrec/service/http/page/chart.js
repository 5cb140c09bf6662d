// Small SVG charts: lines with a band, on a linear or logarithmic axis, and bars.

const SPACE = "http://www.w3.org/2000/svg";
const EDGE = { top: 22, right: 12, bottom: 36, left: 46 };

function s(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const plain = (number) => number.toLocaleString("en", { maximumSignificantDigits: 4 });
const round = (number) => Math.round(number * 10) / 10;
const drawn = new WeakMap(); // how to draw a figure, to redraw it when its size changes
const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => drawn.get(target)?.()));

function keep(figure, draw) {
  if (!drawn.has(figure)) resized.observe(figure);
  drawn.set(figure, draw);
  draw();
}

/**
 * Lines over x. Each of `series`: {name, className, points: [[x, y], …], band: [[x, low, high], …]}; points without a
 * finite y are gaps. `log` is for ranks: 1 is at the bottom. Each line is labelled at its end.
 */
export function lines(figure, options) {
  keep(figure, () => drawLines(figure, options));
}

function drawLines(figure, options) {
  const { series, label, xLabel, yLabel, log = false, height = 300, x: range = {}, y: wanted = {} } = options;
  const { xTicks, xFormat = plain, yFormat = plain } = options;
  const width = Math.max(figure.clientWidth, 240);
  const named = series.some(({ name }) => name);
  const beside = named && width >= 520; // else the labels are drawn above the ends
  const edge = { ...EDGE, right: beside ? 156 : EDGE.right };
  const xs = series.flatMap(({ points }) => points.map(([x]) => x));
  const reach = ({ points, band = [] }) => [...points.map(([, y]) => y), ...band.flatMap(([, low, high]) => [low, high])];
  const ys = series.flatMap(reach).filter(Number.isFinite);
  const [left, right] = [range.from ?? Math.min(...xs, Infinity), range.to ?? Math.max(...xs, -Infinity)];
  const axis = log ? logAxis(wanted.to ?? Math.max(10, ...ys)) : plainAxis(wanted.from ?? 0, wanted.to ?? Math.max(...ys, 0));
  const x = (value) => edge.left + ((value - left) / (right - left || 1)) * (width - edge.left - edge.right);
  const y = (value) => height - edge.bottom - axis.share(value) * (height - edge.top - edge.bottom);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  for (const tick of axis.ticks) {
    svg.append(
      s("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: round(y(tick)), y2: round(y(tick)) }),
      s("text", { class: "tick", x: edge.left - 8, y: round(y(tick)) + 4, "text-anchor": "end" }, yFormat(tick)),
    );
  }
  if (Number.isFinite(left)) {
    for (const tick of xTicks ?? spread(left, right, width < 480 ? 4 : 7)) {
      svg.append(s("text", { class: "tick", x: round(x(tick)), y: height - edge.bottom + 16, "text-anchor": "middle" }, xFormat(tick)));
    }
  }
  const centre = (edge.left + width - edge.right) / 2;
  if (xLabel) svg.append(s("text", { class: "axis", x: centre, y: height - 4, "text-anchor": "middle" }, xLabel));
  if (yLabel) svg.append(s("text", { class: "axis", x: edge.left, y: 10, "text-anchor": "start" }, yLabel));
  for (const one of series) drawSeries(svg, one, x, y);
  if (named) nameLines(svg, series, x, y, height - edge.bottom, beside);
  figure.replaceChildren(svg);
}

function drawSeries(svg, { points, band = [], className }, x, y) {
  if (band.length > 1) {
    const there = band.map(([at, low]) => `${round(x(at))},${round(y(low))}`);
    const back = band.toReversed().map(([at, , high]) => `${round(x(at))},${round(y(high))}`);
    svg.append(s("polygon", { class: `band ${className}`, points: [...there, ...back].join(" ") }));
  }
  let path = "";
  let pen = "M";
  for (const [at, value] of points) {
    if (Number.isFinite(value)) path += `${pen}${round(x(at))} ${round(y(value))}`;
    pen = Number.isFinite(value) ? "L" : "M";
  }
  svg.append(s("path", { class: `line ${className}`, d: path }));
  const last = points.findLast(([, value]) => Number.isFinite(value));
  if (last) svg.append(s("circle", { class: `end ${className}`, cx: round(x(last[0])), cy: round(y(last[1])), r: 3 }));
}

/** Label the ends of the lines, pushed apart where they would overlap; above the lines only upwards, off all of them. */
function nameLines(svg, series, x, y, bottom, beside) {
  const ends = series
    .map(({ name, className, points }) => ({ name, className, last: points.findLast(([, value]) => Number.isFinite(value)) }))
    .filter(({ name, last }) => name && last)
    .map((end) => ({ ...end, at: x(end.last[0]) + (beside ? 8 : 0), height: y(end.last[1]) + (beside ? 4 : -8) }))
    .sort((a, b) => a.height - b.height);
  if (beside) ends.forEach((end, index) => {
    if (index) end.height = Math.max(end.height, ends[index - 1].height + 15);
  });
  else ends.toReversed().forEach((end, index, upwards) => {
    if (index) end.height = Math.min(end.height, upwards[index - 1].height - 15);
  });
  const over = ends.length ? Math.max(0, ends.at(-1).height - bottom) : 0;
  for (const { name, className, at, height } of ends) {
    const place = { x: round(Math.max(at, beside ? 0 : 190)), y: round(height - over), "text-anchor": beside ? "start" : "end" };
    svg.append(s("text", { class: `name ${className}`, ...place }, name));
  }
}

function logAxis(top) {
  const most = Math.log10(Math.max(top, 10));
  const ticks = Array.from({ length: Math.floor(most) + 1 }, (_, power) => 10 ** power);
  return { ticks, share: (value) => Math.log10(Math.max(1, value)) / most };
}

function plainAxis(from, to) {
  const ticks = spread(from, to > from ? to : from + 1, 4);
  const top = Math.max(ticks.at(-1), to);
  return { ticks, share: (value) => (value - from) / (top - from || 1) };
}

/** About `wanted` round numbers between `from` and `to`. */
function spread(from, to, wanted) {
  const rough = (to - from) / wanted;
  if (!(rough > 0)) return [from];
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * unit >= rough) * unit;
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to + step * 1e-6; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

/** Bars: `groups` of {name, values}, where values are shares of 1; a dashed line marks the uniform share. */
export function bars(figure, { groups, label, names, even, height = 240, xLabel, yLabel }) {
  keep(figure, () => {
    const width = Math.max(figure.clientWidth, 240);
    const axis = plainAxis(0, Math.max(0.1, ...groups.flatMap(({ values }) => values)));
    const slot = (width - EDGE.left - EDGE.right) / groups.length;
    const y = (value) => height - EDGE.bottom - axis.share(value) * (height - EDGE.top - EDGE.bottom);
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
    for (const tick of axis.ticks) {
      svg.append(
        s("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: round(y(tick)), y2: round(y(tick)) }),
        s("text", { class: "tick", x: EDGE.left - 8, y: round(y(tick)) + 4, "text-anchor": "end" }, `${Math.round(tick * 100)} %`),
      );
    }
    groups.forEach(({ name, values }, index) => {
      const left = EDGE.left + index * slot;
      const thick = (slot * 0.7) / values.length;
      values.forEach((value, which) => {
        const top = y(value);
        svg.append(s("rect", {
          class: `bar series-${which}`, x: round(left + slot * 0.15 + which * thick), width: round(Math.max(1, thick - 1)),
          y: round(top), height: round(Math.max(0, height - EDGE.bottom - top)),
        }, s("title", {}, `${names[which]}, ${name}: ${(value * 100).toFixed(1)} %`)));
      });
      svg.append(s("text", { class: "tick", x: round(left + slot / 2), y: height - EDGE.bottom + 16, "text-anchor": "middle" }, name));
    });
    svg.append(s("line", { class: "even", x1: EDGE.left, x2: width - EDGE.right, y1: round(y(even)), y2: round(y(even)) }));
    svg.append(s("text", { class: "axis", x: EDGE.left, y: 10 }, yLabel));
    if (xLabel) svg.append(s("text", { class: "axis", x: width / 2, y: height - 4, "text-anchor": "middle" }, xLabel));
    figure.replaceChildren(svg);
  });
}

/** A sparkline for a tile. */
export function spark(values, label) {
  const [width, height] = [120, 28];
  const top = Math.max(...values, 1e-9);
  const x = (index) => (values.length < 2 ? width : (index / (values.length - 1)) * width);
  const path = values.map((value, index) => `${index ? "L" : "M"}${round(x(index))} ${round(height - 2 - (value / top) * (height - 4))}`).join("");
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    s("path", { class: "line series-0", d: path }));
}
