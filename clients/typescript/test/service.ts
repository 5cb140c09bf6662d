// Uses a running service, whose address is the argument, as a shop would. Any surprise ends it with an error.
import assert from "node:assert/strict";

import { felrec, type Schemas } from "../src/index.js";

const shop = felrec(process.argv[2] ?? "");

const events: Schemas["Event"][] = [
  { user: "ada of ts", item: "tea" },
  { user: "ada of ts", item: "ts/b", timestamp: 1767225600.5 },
  { user: "", item: "nothing" },
];
const posted = await shop.POST("/v1/interactions", { body: events, params: { header: { "idempotency-key": "ts-1" } } });
assert.equal(posted.data?.accepted, 2);
assert.equal(posted.data?.rejected[0]?.row, 2);

const put = await shop.PUT("/v1/items/{id}", { params: { path: { id: "ts/b" } }, body: { title: "Song", tags: ["ts-folk"] } });
assert.equal(put.data?.title, "Song");

const query = { k: 3, tags: ["ts-folk"], exclude_seen: false };
const found = await shop.GET("/v1/users/{id}/recommendations", { params: { path: { id: "ada of ts" }, query } });
assert.deepEqual(found.data?.items.map((item) => item.id), ["ts/b"]);

const missing = await shop.GET("/v1/users/{id}", { params: { path: { id: "nobody at all" } } });
assert.equal(missing.response.status, 404);
assert.equal(missing.error?.error.code, "not_found");

// @ts-expect-error: the types know every parameter, so a misspelt one does not compile, and the service refuses it
const misspelt = await shop.GET("/v1/users/{id}/recommendations", { params: { path: { id: "ada of ts" }, query: { K: 3 } } });
assert.equal(misspelt.response.status, 422);

const erased = await shop.DELETE("/v1/users/{id}", { params: { path: { id: "ada of ts" } } });
assert.equal(erased.data?.events, 2);

console.log("all good");
