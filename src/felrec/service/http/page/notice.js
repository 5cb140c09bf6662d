// One place for what went wrong, and for it to go away again.
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
  if (error.code === undefined) console.error(error); // not the service's: a fault of the page
}

/** The whole page begins anew with it. */
async function enterKey(error) {
  if (await reconsider(error.message)) location.reload();
}

export function clear() {
  byId("notice").hidden = true;
}

/** Run something that may fail, and say so if it does. */
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
