// What a view shows, in the address: it can be sent to somebody, and Back leads to what was shown before.
import { part } from "./api.js";
import { byId } from "./dom.js";

/** `first`: there is nothing to go back to, this is where we came in. */
export function remember(view, words, first) {
  const address = `#/${view}/${words.map(part).join("/")}`;
  if (byId(`view-${view}`).hidden || location.hash === address) return;
  if (first) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
}
