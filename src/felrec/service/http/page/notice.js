// The error notice: one place to show an error and to clear it.
import { lacksKey, reconsider } from "./api.js";
import { byId, h } from "./dom.js";

export function complain(error) {
  const box = byId("notice");
  box.replaceChildren(
    h("p", {}, error.message),
    ...(lacksKey(error) ? [h("button", { type: "button", onclick: () => enterKey(error) }, "Enter a key")] : []),
    h("button", { type: "button", class: "quiet", "aria-label": "Dismiss", onclick: clear }, "Dismiss"),
  );
  box.hidden = false;
  if (error.code === undefined) console.error(error); // not an error of the service: a bug in the page
}

/** Ask for a key; every view reloads with the new one. */
async function enterKey(error) {
  if (await reconsider(error.message)) location.reload();
}

export function clear() {
  byId("notice").hidden = true;
}

/** Run `work`; if it fails, show the error and return undefined. */
export async function attempt(work) {
  try {
    const result = await work();
    clear();
    return result;
  } catch (error) {
    complain(error);
    return undefined;
  }
}
