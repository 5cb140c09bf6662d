// Keeps the address in step with what a view shows, so that links can be shared and Back works.
import { part } from "./api.js";
import { byId } from "./dom.js";

/** `first`: replace the history entry instead of adding one, because there is nothing to go back to. */
export function remember(view, words, first) {
  const address = `#/${view}/${words.map(part).join("/")}`;
  if (byId(`view-${view}`).hidden || location.hash === address) return;
  if (first) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
}
