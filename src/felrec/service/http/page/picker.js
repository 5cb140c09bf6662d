// A search field for users or items that can be used by mouse, touch or keyboard (the ARIA combobox pattern).
import { get } from "./api.js";
import { h, many, named } from "./dom.js";
import { complain } from "./notice.js";

const PAUSE = 120; // milliseconds without typing before a search
let made = 0;

/**
 * kind: "users" or "items". `chosen(thing)` is called with {id, title?}; with `allowNew` also for an unknown id.
 * Returns the input, with `show(thing)` to set the choice from outside.
 */
export function picker(place, { kind, label, chosen, clears = false, allowNew = false }) {
  const list = h("ul", { role: "listbox", id: `options-${++made}`, hidden: true, "aria-label": label });
  const input = h("input", {
    type: "text", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
    "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false", maxlength: 256,
  });
  place.replaceChildren(h("span", { class: "of", "aria-hidden": "true" }, label), input, list);
  let found = [];
  let foundFor = null; // the text of the last search
  let at = -1;
  let asked = 0;
  let timer;

  const close = () => {
    list.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (thing) => {
    close();
    clearTimeout(timer);
    asked++; // discards the result of a search in progress
    input.value = clears ? "" : thing.title || thing.id;
    chosen(thing);
  };
  const mark = (index) => {
    at = index;
    [...list.children].forEach((option, place) => option.setAttribute("aria-selected", String(place === at)));
    const option = list.children[at];
    if (option) {
      input.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
  };
  const search = async () => {
    const mine = ++asked;
    const typed = input.value.trim();
    try {
      const answer = await get(`v1/${kind}`, { prefix: typed, limit: 12 });
      if (mine !== asked || document.activeElement !== input) return;
      found = answer[kind];
      foundFor = typed;
      list.replaceChildren(...found.map((thing, index) => option(thing, `${list.id}-${index}`, () => choose(thing))));
      if (!found.length) list.replaceChildren(h("li", { class: "none", role: "presentation" }, nothing(kind, allowNew)));
      at = -1;
      list.hidden = false;
      input.setAttribute("aria-expanded", "true");
    } catch (error) {
      complain(error);
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  input.addEventListener("focus", () => {
    input.select();
    search();
  });
  input.addEventListener("blur", () => setTimeout(close, 150)); // after a click on an option, which moves the focus
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) search();
      else if (found.length) mark(event.key === "ArrowDown" ? (at + 1) % found.length : (at <= 0 ? found.length : at) - 1);
    } else if (event.key === "Escape") {
      close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      enter();
    }
  });
  /** Choose the marked option or an exact match; never just the first option that happened to be listed. */
  const enter = async () => {
    const typed = input.value.trim();
    if (typed !== foundFor || list.hidden) {
      clearTimeout(timer);
      await search();
      if (typed !== foundFor || typed !== input.value.trim()) return; // the text changed, or the search failed
    }
    const thing = found[at] ?? found.find(({ id, title }) => id === typed || title === typed);
    if (thing) choose(thing);
    else if (typed && allowNew) choose({ id: typed });
    else if (typed && found.length === 1) choose(found[0]);
    else if (found.length) mark(0); // the next Enter chooses it
  };
  input.show = (thing) => {
    input.value = thing ? thing.title || thing.id : "";
  };
  return input;
}

function nothing(kind, allowNew) {
  if (kind === "items") return "No matching item.";
  return allowNew ? "No matching user. Press Enter to use this id for a new user." : "No matching user.";
}

function option(thing, id, choose) {
  const name = h("span", { class: "name" }, named(thing));
  const about = thing.title ? thing.id : thing.events === undefined ? "" : many(thing.events, "event");
  return h("li", { role: "option", id, "aria-selected": "false", onmousedown: (event) => event.preventDefault(), onclick: choose },
    name, h("span", { class: "id" }, about));
}
