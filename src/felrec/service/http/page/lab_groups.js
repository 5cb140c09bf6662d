// Who takes part in the lab: neighbours and strangers of an item, by the ranks it has for them.
import { get, part } from "./api.js";
import { isVisitor } from "./lab_visitors.js";

const SAMPLE = 400; // users who are looked at
const AT_ONCE = 100; // users of one request
const TRIED = 16; // items that may be suggested
const LOOKED_AT = 24; // users for whom these are ranked

/** Users with a history, evenly spread; not the visitors of earlier experiments. */
const sample = async (limit) => (await get("v1/users", { sample: true, limit })).users.filter(({ id }) => !isVisitor(id));

/** The rank of an item for each of the users, in their order. */
async function ranksOf(item, users) {
  const ranks = [];
  for (let first = 0; first < users.length; first += AT_ONCE) {
    const ids = users.slice(first, first + AT_ONCE).map(({ id }) => id);
    ranks.push(...(await get(`v1/items/${part(item.id)}/rank`, { users: ids })).users.map(({ rank }) => rank));
  }
  return ranks;
}

/**
 * Neighbours are the users in whose lists the anchor ranks best, strangers those where it ranks worst. Every other
 * neighbour takes the new item as far as there are enough, so that both halves are equally near. `missing`: users that
 * a store has too few of.
 */
export async function group(anchor, { takers, watchers, strangers }) {
  const users = await sample(SAMPLE);
  const missing = takers + watchers + strangers - users.length;
  if (missing > 0) return { missing };
  const ranks = await ranksOf(anchor, users);
  const order = users.map((user, index) => ({ user, rank: ranks[index] })).sort((a, b) => a.rank - b.rank).map(({ user }) => user);
  const near = order.slice(0, takers + watchers);
  const taking = near.map((_, index) => Math.floor((index + 1) * takers / near.length) > Math.floor(index * takers / near.length));
  return {
    takers: near.filter((_, index) => taking[index]), watchers: near.filter((_, index) => !taking[index]),
    strangers: order.slice(order.length - strangers), everyone: users,
  };
}

/**
 * An item with an audience of its own: of what is recommended to one of a few users alone, the item that a sixth of the
 * users have much higher in their lists than half of them.
 */
export async function widelyRanked() {
  const users = await sample(LOOKED_AT);
  const lists = await Promise.all(users.map(({ id }) => get(`v1/users/${part(id)}/recommendations`, { k: 10 })));
  const every = lists.flatMap(({ items }) => items);
  const uses = Map.groupBy(every, ({ id }) => id);
  const candidates = [...uses.values()].sort((a, b) => a.length - b.length).slice(0, TRIED);
  let widest = null;
  for (const [item] of candidates) {
    const ranks = (await ranksOf(item, users)).sort((a, b) => a - b);
    const at = (share) => 1 + ranks[Math.floor(share * ranks.length)];
    const spread = at(1 / 2) / at(1 / 6);
    if (!widest || spread > widest.spread) widest = { item, spread };
  }
  return widest?.item ?? null;
}
