// One plot of the map: points on a canvas, with hover, selection, zoom, and arrow keys to move between points.
import { h, named, nameOf, short } from "./dom.js";

const MARGIN = 14;
const EMPHASIS = 1.6; // above 1, few points get strong colours
const REACH = 12; // pixels within which the pointer hits a point

/** Where to draw a user or item that is newer than the map: the mean of its most similar points. */
const middle = (points) => ({
  x: points.reduce((sum, { x }) => sum + x, 0) / points.length,
  y: points.reduce((sum, { y }) => sum + y, 0) / points.length,
});

export class Plot {
  constructor(canvas, chosen) {
    this.canvas = canvas;
    this.chosen = chosen;
    this.points = [];
    this.shades = [];
    this.view = { zoom: 1, x: 0, y: 0 };
    this.hovered = -1;
    this.selected = -1;
    this.selectedId = null;
    this.ghost = null; // where the selection is drawn if it is not on the map
    this.tip = h("div", { class: "tip", hidden: true });
    canvas.parentElement.append(this.tip);
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /** Points are {id, title, x, y}; x and y are scaled to the unit square here. */
  place(points) {
    const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    const [wide, high] = [Math.max(...xs) - left || 1, Math.max(...ys) - top || 1];
    this.points = points.map((point) => ({ ...point, x: (point.x - left) / wide, y: (point.y - top) / high }));
    this.heat = points.map(() => 0);
    this.scores = points.map(() => null);
    this.order = points.map((_, index) => index);
    this.hovered = -1;
    this.mark(this.selectedId);
  }

  /** Set the scores. Colour is by rank, because score scales differ between models; the best are drawn on top. */
  colour(scores) {
    const place = new Map([...scores].sort((a, b) => a - b).map((score, index) => [score, index])); // ties get the last rank
    this.scores = scores;
    this.heat = scores.map((score) => (place.get(score) / Math.max(1, scores.length - 1)) ** EMPHASIS);
    this.order = this.points.map((_, index) => index).sort((a, b) => this.heat[a] - this.heat[b]);
    this.ghost = this.selectedId !== null && this.selected < 0 ? middle(this.order.slice(-3).map((index) => this.points[index])) : null;
    this.draw();
  }

  paintWith(shades, ink) {
    this.shades = shades.map((shade) => shade.match(/[\d.]+/g).slice(0, 3).map(Number));
    this.ink = ink;
    this.draw();
  }

  mark(id) {
    this.selectedId = id;
    this.selected = this.points.findIndex((point) => point.id === id);
    this.ghost = null;
    this.draw();
  }

  /** Highlight a point without selecting it. */
  point(id) {
    this.hover(this.points.findIndex((point) => point.id === id));
  }

  shade(heat) {
    if (this.shades.length === 0) return "transparent";
    const at = heat * (this.shades.length - 1);
    const [from, to] = [this.shades[Math.floor(at)], this.shades[Math.ceil(at)]];
    return `rgb(${from.map((value, channel) => Math.round(value + (to[channel] - value) * (at % 1))).join(" ")})`;
  }

  size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  /** The canvas coordinates of a point. */
  where({ x, y }) {
    const { width, height } = this.size();
    const { zoom, x: shiftX, y: shiftY } = this.view;
    return [
      width / 2 + (x - 0.5) * (width - 2 * MARGIN) * zoom + shiftX,
      height / 2 + (y - 0.5) * (height - 2 * MARGIN) * zoom + shiftY,
    ];
  }

  draw() {
    const { width, height } = this.size();
    if (!width || !this.ink) return;
    const sharp = devicePixelRatio || 1;
    this.canvas.width = width * sharp;
    this.canvas.height = height * sharp;
    const pen = this.canvas.getContext("2d");
    pen.scale(sharp, sharp);
    const dot = Math.min(4.5, Math.max(2, 90 / Math.sqrt(this.points.length || 1))) * Math.min(2, Math.sqrt(this.view.zoom));
    for (const index of this.order ?? []) {
      const [x, y] = this.where(this.points[index]);
      if (x < -9 || y < -9 || x > width + 9 || y > height + 9) continue;
      pen.fillStyle = this.shade(this.heat[index]);
      pen.beginPath();
      pen.arc(x, y, dot, 0, 2 * Math.PI);
      pen.fill();
    }
    if (this.hovered >= 0) this.ring(pen, this.points[this.hovered], dot + 3, this.ink.text, 1.5);
    if (this.selected >= 0) this.ring(pen, this.points[this.selected], dot + 4, this.ink.mark, 3);
    if (this.ghost) this.ring(pen, this.ghost, dot + 4, this.ink.mark, 3);
  }

  ring(pen, point, radius, colour, thick) {
    const [x, y] = this.where(point);
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.lineWidth = thick + 2;
    pen.strokeStyle = this.ink.paper;
    pen.stroke();
    pen.lineWidth = thick;
    pen.strokeStyle = colour;
    pen.stroke();
  }

  hover(index) {
    this.hovered = index;
    this.draw();
    this.tip.hidden = index < 0;
    if (index < 0) return;
    const point = this.points[index];
    const [x, y] = this.where(point);
    const score = this.scores[index];
    const id = point.title ? h("span", { class: "id" }, ` ${point.id}`) : "";
    this.tip.replaceChildren(named(point), id, score === null ? "" : h("b", {}, short(score)));
    const half = this.tip.offsetWidth / 2;
    this.tip.style.left = `${Math.min(Math.max(x, half), this.canvas.clientWidth - half)}px`;
    this.tip.style.top = `${y}px`;
    this.tip.classList.toggle("below", y < 48);
    this.canvas.setAttribute("aria-description", `${nameOf(point)}${score === null ? "" : `, match ${short(score)}`}`);
  }

  nearest(x, y) {
    let best = -1;
    let least = REACH * REACH;
    this.points.forEach((point, index) => {
      const [px, py] = this.where(point);
      const apart = (px - x) ** 2 + (py - y) ** 2;
      if (apart < least) [least, best] = [apart, index];
    });
    return best;
  }

  /** The nearest point in the direction of an arrow key; sideways distance counts twice. */
  towards(dx, dy) {
    const from = this.hovered >= 0 ? this.hovered : this.selected;
    if (from < 0) return this.points.length ? 0 : -1;
    const [x, y] = this.where(this.points[from]);
    let best = from;
    let least = Infinity;
    this.points.forEach((point, index) => {
      const [px, py] = this.where(point);
      const along = (px - x) * dx + (py - y) * dy;
      const across = Math.abs((px - x) * dy) + Math.abs((py - y) * dx);
      if (index !== from && along > 1 && along + 2 * across < least) [least, best] = [along + 2 * across, index];
    });
    return best;
  }

  zoomBy(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const zoom = Math.min(20, Math.max(1, this.view.zoom * factor));
    const change = zoom / this.view.zoom;
    const { width, height } = this.size();
    const hold = (shift, at, length) => (at - length / 2) * (1 - change) + shift * change;
    this.view = zoom === 1 ? { zoom, x: 0, y: 0 } : { zoom, x: hold(this.view.x, x, width), y: hold(this.view.y, y, height) };
    this.hover(-1);
  }

  listen() {
    const { canvas } = this;
    let grip = null; // where a drag started
    canvas.addEventListener("pointerdown", (event) => {
      grip = { x: event.offsetX, y: event.offsetY, view: this.view, moved: false };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (grip && event.buttons) {
        const [dx, dy] = [event.offsetX - grip.x, event.offsetY - grip.y];
        grip.moved ||= Math.hypot(dx, dy) > 4;
        if (grip.moved && this.view.zoom > 1) this.view = { ...grip.view, x: grip.view.x + dx, y: grip.view.y + dy };
      }
      this.hover(grip?.moved ? -1 : this.nearest(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("click", (event) => {
      const found = grip?.moved ? -1 : this.nearest(event.offsetX, event.offsetY);
      grip = null;
      if (found >= 0) this.chosen(this.points[found]);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("blur", () => this.hover(-1));
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in ways) this.hover(this.towards(...ways[event.key]));
    else if (event.key === "Enter" && this.hovered >= 0) this.chosen(this.points[this.hovered]);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.5);
    else if (event.key === "-") this.zoomBy(1 / 1.5);
    else if (event.key === "0") this.zoomBy(0);
    else return;
    event.preventDefault();
  }
}
