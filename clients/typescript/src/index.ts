// A typed client of a felrec service. `schema.ts` is generated from the service's OpenAPI document.
import createClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./schema.js";

/** What requests and answers are made of, such as `Schemas["Receipt"]`. */
export type Schemas = components["schemas"];

/** Every path of the service, with its parameters, bodies and answers. */
export type Felrec = Client<paths>;

/** A client of the service at `url`, with an API key if the service needs one. */
export function felrec(url: string, key?: string): Felrec {
  return createClient<paths>({ baseUrl: url, headers: key ? { Authorization: `Bearer ${key}` } : {} });
}
