// The service's HTTP interface, as the page uses it. Errors are said in words, with what to do.
import { byId } from "./dom.js";

const KEY = "felrec-key";
const IMPATIENCE = 15_000; // milliseconds until an answer is given up

/** What went wrong, in words that can be shown. */
export class ApiError extends Error {
  constructor(message, status = 0, code = "unreachable") {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export const get = (path, query = {}) => call("GET", path, { query });
export const post = (path, body, headers = {}) => call("POST", path, { body, headers });
export const put = (path, body) => call("PUT", path, { body });

/** An id as a part of a path. */
export const part = encodeURIComponent;

/** Post one event of now; `key` makes sure that a repeated request is not taken for a second event. */
export function interact(user, item) {
  return post("v1/interactions", { user, item }, { "Idempotency-Key": randomKey() }).then((answer) => {
    if (answer.rejected?.length) throw new ApiError(`The event was refused: ${answer.rejected[0].reason}`, 422, "rejected");
    return answer;
  });
}

/** 128 random bits; `crypto.randomUUID` is missing where the page is not served from this machine. */
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

/** Whether another key could help. */
export const lacksKey = ({ status }) => status === 401 || status === 403;

/** One parameter alone would be split at its commas; saying it twice says that it is a list already. */
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
        ? "The service took longer than 15 seconds to answer. See under Health whether it is overloaded, then try again."
        : "The service does not answer. Is `felrec serve` still running? This page goes on when it is back.",
    );
  }
}

/** The service's own words; what to do where they cannot know. */
async function explained(answer) {
  const told = await answer.json().catch(() => ({}));
  const message = told.error?.message || `The service answered ${answer.status} ${answer.statusText}.`;
  const wait = answer.headers.get("Retry-After");
  const advice = answer.status === 429 && wait ? ` Try again in ${wait} s.` : "";
  const asked = told.error?.request_id && answer.status >= 500 ? ` Its log says more under request ${told.error.request_id}.` : "";
  return new ApiError(message + advice + asked, answer.status, told.error?.code);
}

let asking = null; // several requests can be refused at once; one question is enough
let declined = false; // and so is one no, until somebody asks for the question

/** Ask for a key again after a no. */
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
