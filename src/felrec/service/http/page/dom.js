// Helpers that every view needs: elements, and numbers as text.

/** An element with properties (class, aria-…, on…) and children; strings become text, never markup. */
export function h(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export const byId = (id) => document.getElementById(id);

const whole = new Intl.NumberFormat("en");

/** 1234567 as "1,234,567". */
export const count = (number) => whole.format(Math.round(number));

/** About three significant digits. */
export function short(number) {
  if (!Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1000) return count(number);
  if (size >= 100) return number.toFixed(0);
  if (size >= 10) return number.toFixed(1);
  return number.toFixed(size >= 1 ? 2 : 3);
}

/** "1 event", "2 events". */
export const many = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

const STEPS = [[60, "second"], [60, "minute"], [24, "hour"], [30.44, "day"], [12, "month"], [Infinity, "year"]];

/** A duration in its largest unit. */
export function span(seconds) {
  let amount = seconds;
  const [, name] = STEPS.find(([size]) => amount < size || ((amount /= size), false));
  return many(Math.floor(amount), name);
}

/** How long ago a time (seconds since 1970) was; empty if the time is unknown. */
export function ago(time) {
  if (time === null) return "";
  const seconds = Math.max(0, Date.now() / 1000 - time);
  return seconds < 10 ? "just now" : `${span(seconds)} ago`;
}

/** The display name of an item or a user: its title, or its id. */
export const nameOf = (thing) => thing.title || thing.id;

/** The same as an element; <bdi> keeps a right-to-left name from reordering the text around it. */
export const named = (thing) => h("bdi", {}, nameOf(thing));

/** The things of a list, with the id behind each title that another of them has too. */
export function toldApart(things) {
  const ids = Map.groupBy(things, nameOf);
  const unique = (thing) => new Set(ids.get(nameOf(thing)).map(({ id }) => id)).size === 1;
  return things.map((thing) => (!thing.title || unique(thing) ? thing : { ...thing, title: `${thing.title} (${thing.id})` }));
}
