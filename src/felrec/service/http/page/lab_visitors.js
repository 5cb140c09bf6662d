// Background traffic of the lab: what real users had lately, once more, as events of visitors with names of their own.
import { get, part } from "./api.js";

const LONGEST = 10; // newest events of a user that a visitor repeats

const PREFIX = "lab-visitor-"; // of their names

export const isVisitor = (id) => id.startsWith(PREFIX);

export class Visitors {
  constructor(item, users) {
    this.item = item; // the new item: its takers are among the users, and visitors must not add events of it
    this.users = users;
    this.come = 0;
    this.waiting = [];
  }

  /** The next events {user, item}, as many as asked for. */
  async next(wanted) {
    while (this.waiting.length < wanted) {
      const { id } = this.users[Math.floor(Math.random() * this.users.length)];
      const { history } = await get(`v1/users/${part(id)}`, { limit: LONGEST });
      const user = `${PREFIX}${++this.come}-of-${this.item}`;
      this.waiting.push(...history.toReversed().filter(({ id }) => id !== this.item).map((past) => ({ user, item: past.id })));
    }
    return this.waiting.splice(0, wanted);
  }
}
