// Data: import a file of events or items, and see which rows were rejected and why.
import { post } from "./api.js";
import { byId, count, h, many } from "./dom.js";
import { clear, complain } from "./notice.js";
import { rowsOf } from "./rows.js";

const TOGETHER = 2000; // rows in a post
const LISTED = 200; // rejected rows that are shown
const PATIENCE = 30; // times that a busy service is asked again
const KINDS = {
  events: { path: "v1/interactions", columns: "user, item and timestamp, or names such as user_id, product_id and ts" },
  items: { path: "v1/items", columns: "id and any of title, tags (with | between them), available, available_from, expires, variant_of" },
};
let stopped = false;
let busy = false;

export function mount() {
  const zone = byId("data-drop");
  byId("data-file").addEventListener("change", ({ target }) => target.files[0] && start(target.files[0]));
  byId("data-stop").addEventListener("click", () => { stopped = true; });
  for (const choice of document.querySelectorAll("input[name=data-kind]")) choice.addEventListener("change", describe);
  for (const name of ["dragenter", "dragover"]) {
    zone.addEventListener(name, (event) => {
      event.preventDefault(); // else the browser would open the file
      zone.classList.add("over");
    });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files[0]) start(event.dataTransfer.files[0]);
  });
  describe();
}

export function show() {}

export function hide() {} // an import goes on

const chosen = () => document.querySelector("input[name=data-kind]:checked").value;

function describe() {
  byId("data-columns").textContent = `Columns: ${KINDS[chosen()].columns}. Others are ignored.`;
}

async function start(file) {
  if (busy) return;
  [busy, stopped] = [true, false];
  clear();
  const done = { file, kind: chosen(), rows: 0, accepted: 0, late: 0, rejected: [], ignored: {} };
  controls(true);
  try {
    await send(done);
    tell(done, stopped ? "Stopped." : "Done.");
  } catch (error) {
    tell(done, "Not all rows were sent. Import the file again to go on: what was stored counts once.");
    complain(error);
  }
  controls(false);
  busy = false;
}

function controls(running) {
  byId("data-stop").hidden = !running;
  byId("data-progress").hidden = !running;
  byId("data-file").disabled = running;
  if (!running) byId("data-file").value = ""; // so that the same file can be chosen again
}

/** Read and send the file, post by post; a row is rejected here if it cannot be read, and else by the service. */
async function send(done) {
  let rows = [];
  let numbers = [];
  const flush = async () => {
    if (rows.length) take(done, await posted(done, rows, numbers), numbers);
    [rows, numbers] = [[], []];
    tell(done, `Importing ${done.file.name}:`);
  };
  for await (const { row, problem } of rowsOf(done.file, (bytes) => { byId("data-progress").value = bytes / done.file.size; })) {
    done.rows++;
    if (problem) done.rejected.push({ row: done.rows, reason: problem });
    else {
      rows.push(row);
      numbers.push(done.rows);
    }
    if (rows.length === TOGETHER) await flush();
    if (stopped) return;
  }
  await flush();
}

/** Post rows until the service has time for them. The key makes a file that is imported again count once. */
async function posted(done, rows, numbers) {
  const { name, size, lastModified } = done.file;
  const key = `page-${encodeURIComponent(name).slice(0, 150)}-${size}-${lastModified}-${numbers[0]}`;
  for (let attempt = 1; ; attempt++) {
    try {
      return await post(KINDS[done.kind].path, rows, done.kind === "events" ? { "Idempotency-Key": key } : {});
    } catch (error) {
      if (error.rejected) return { accepted: 0, rejected: error.rejected }; // no row of this post is good
      if (error.status !== 429 || attempt === PATIENCE) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * (error.wait || 1)));
    }
  }
}

function take(done, answer, numbers) {
  done.accepted += answer.accepted;
  done.late += answer.late ?? 0;
  done.rejected.push(...answer.rejected.map(({ row, reason }) => ({ row: numbers[row], reason })));
  for (const [name, rows] of Object.entries(answer.ignored ?? {})) done.ignored[name] = (done.ignored[name] ?? 0) + rows;
}

function tell(done, what) {
  const ignored = Object.keys(done.ignored);
  byId("data-told").replaceChildren(h("strong", {}, what), " ", [
    `${many(done.rows, "row")} read`, `${count(done.accepted)} accepted`,
    done.late ? `${count(done.late)} of them late, that is older than the newest event` : "",
    `${count(done.rejected.length)} rejected`, ignored.length ? `ignored columns: ${ignored.join(", ")}` : "",
  ].filter(Boolean).join(", "), ".");
  const rejected = done.rejected.toSorted((a, b) => a.row - b.row).slice(0, LISTED);
  byId("data-rejected").hidden = !rejected.length;
  byId("data-rejected-count").textContent = done.rejected.length > LISTED ? `the first ${LISTED} of ${count(done.rejected.length)}` : "";
  byId("data-rejected").querySelector("tbody").replaceChildren(
    ...rejected.map(({ row, reason }) => h("tr", {}, h("td", {}, count(row)), h("td", {}, reason))));
}
