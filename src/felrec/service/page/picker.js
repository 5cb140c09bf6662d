// A text field that searches as you type: users or items, by mouse, touch or keyboard (the ARIA combobox pattern).
import { get } from "./api.js";
import { h } from "./dom.js";
import { complain } from "./notice.js";

const PAUSE = 120; // milliseconds of silence before a search
let made = 0;

/**
 * kind: "users" or "items". `chosen(thing)` is called with {id, title?}; a user who is not known may be typed too.
 * Returns the input, with `show(thing)` to put a choice in from outside.
 */
export function picker(place, { kind, label, chosen, clears = false }) {
  const list = h("ul", { role: "listbox", id: `options-${++made}`, hidden: true, "aria-label": label });
  const input = h("input", {
    type: "text", role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
    "aria-label": label, placeholder: label, autocomplete: "off", spellcheck: "false", maxlength: 256,
  });
  place.replaceChildren(input, list);
  let found = [];
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
    asked++; // an answer that is still on its way comes too late
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
    try {
      const answer = await get(`v1/${kind}`, { prefix: input.value.trim(), limit: 12 });
      if (mine !== asked || document.activeElement !== input) return;
      found = answer[kind];
      list.replaceChildren(...found.map((thing, index) => option(thing, `${list.id}-${index}`, () => choose(thing))));
      if (!found.length) list.replaceChildren(h("li", { class: "none", role: "presentation" }, nothing(kind)));
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
  input.addEventListener("blur", () => setTimeout(close, 150)); // after the click that took the focus
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (list.hidden) search();
      else if (found.length) mark(event.key === "ArrowDown" ? (at + 1) % found.length : (at <= 0 ? found.length : at) - 1);
    } else if (event.key === "Escape") {
      close();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const typed = input.value.trim();
      const thing = found[at] ?? found.find(({ id, title }) => id === typed || title === typed);
      if (thing && !list.hidden) choose(thing);
      else if (typed && kind === "users") choose({ id: typed });
      else if (found.length && !list.hidden) choose(found[0]);
    }
  });
  input.show = (thing) => {
    input.value = thing ? thing.title || thing.id : "";
  };
  return input;
}

const nothing = (kind) => (kind === "users" ? "No known user begins so. Enter takes it as a new one." : "No item is called so.");

function option(thing, id, choose) {
  const name = h("span", { class: "name" }, thing.title || thing.id);
  const about = thing.title ? thing.id : thing.events === undefined ? "" : `${thing.events} events`;
  return h("li", { role: "option", id, "aria-selected": "false", onmousedown: (event) => event.preventDefault(), onclick: choose },
    name, h("span", { class: "id" }, about));
}
