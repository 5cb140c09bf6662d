// Client for the HTTP API. Errors are messages that can be shown and say what to do.
import { byId } from "./dom.js";

const KEY = "felrec-key";
const IMPATIENCE = 15_000; // milliseconds until a request times out

/** A failed request; its message can be shown to the user. */
export class ApiError extends Error {
  constructor(message, status = 0, code = "unreachable", { wait, rejected } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.wait = wait; // seconds until it is worth trying again
    this.rejected = rejected; // rows of a post, with reasons
  }
}

export const get = (path, query = {}) => call("GET", path, { query });
export const post = (path, body, headers = {}) => call("POST", path, { body, headers });
export const put = (path, body) => call("PUT", path, { body });

/** An id as a path segment. */
export const part = encodeURIComponent;

/** Post one event with the current time. The idempotency key keeps a retried request from adding a second event. */
export function interact(user, item) {
  return post("v1/interactions", { user, item }, { "Idempotency-Key": randomKey() }).then((answer) => {
    if (answer.rejected?.length) throw new ApiError(`The event was rejected: ${answer.rejected[0].reason}`, 422, "rejected");
    return answer;
  });
}

/** 128 random bits. `crypto.randomUUID` is missing where the page is served over plain HTTP from another machine. */
export function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function call(method, path, { query = {}, body, headers = {} }) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? several(value) : [value]) {
      if (one !== undefined && one !== null && one !== "") url.searchParams.append(name, one);
    }
  }
  for (;;) {
    const answer = await send(method, url, body, headers);
    if (answer.ok) return answer.status === 204 ? null : answer.json();
    const error = await explained(answer);
    if (!lacksKey(error) || !(await askForKey(error.message))) throw error;
  }
}

/** Whether a different key could fix the error. */
export const lacksKey = ({ status }) => status === 401 || status === 403;

/** The service splits a single value at its commas; sending it twice marks it as a list, which is not split. */
const several = (values) => (values.length === 1 && values[0].includes(",") ? [values[0], values[0]] : values);

async function send(method, url, body, headers) {
  const key = sessionStorage.getItem(KEY);
  try {
    return await fetch(url, {
      method,
      headers: {
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(key ? { Authorization: `Bearer ${key}` } : {}),
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(IMPATIENCE),
      cache: "no-store",
    });
  } catch (error) {
    throw new ApiError(
      error.name === "TimeoutError"
        ? "The service did not respond within 15 seconds. Check Health for overload, then try again."
        : "The service is not responding. Is `felrec serve` still running? This page reconnects when it is back.",
    );
  }
}

/** The service's own message, plus advice that depends on the status code. */
async function explained(answer) {
  const told = await answer.json().catch(() => ({}));
  const message = told.error?.message || `The service returned ${answer.status} ${answer.statusText}.`;
  const wait = answer.headers.get("Retry-After");
  const advice = answer.status === 429 && wait ? ` Try again in ${wait} s.` : "";
  const asked = told.error?.request_id && answer.status >= 500 ? ` See request ${told.error.request_id} in the service log.` : "";
  return new ApiError(message + advice + asked, answer.status, told.error?.code, { wait: Number(wait), rejected: told.rejected });
}

let asking = null; // several requests can fail at once, but one dialog is enough
let declined = false; // once cancelled, the dialog stays closed until the user asks for it

/** Ask for a key again after the dialog was cancelled. */
export function reconsider(why) {
  declined = false;
  return askForKey(why);
}

function askForKey(why) {
  if (declined) return Promise.resolve(false);
  asking ??= new Promise((resolve) => {
    const dialog = byId("key-dialog");
    byId("key-why").textContent = why;
    dialog.addEventListener("close", () => {
      const key = byId("key").value.trim();
      const use = dialog.returnValue === "use" && key !== "";
      if (use) sessionStorage.setItem(KEY, key);
      byId("key").value = "";
      declined = !use;
      asking = null;
      resolve(use);
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
  });
  return asking;
}
