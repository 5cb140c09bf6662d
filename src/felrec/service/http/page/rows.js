// Reads a file of rows piece by piece: JSON lines, a JSON list, or separated text whose first line names the columns.

const SEPARATORS = [",", ";", "\t", "|"];

/** A file that cannot be read at all; its message can be shown. */
export class Unreadable extends Error {
  code = "unreadable";
}

/**
 * Rows of a file: {row} with an object, or {problem} with the reason why there is none. `read(bytes)` is told how far the
 * file is read. Blank lines are no rows.
 */
export async function* rowsOf(file, read = () => {}) {
  let reader = null;
  for await (const text of textOf(file, read)) {
    reader ??= readerFor(text);
    yield* reader.push(text);
  }
  if (reader) yield* reader.end();
}

async function* textOf(file, read) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const pieces = file.stream().getReader();
  let bytes = 0;
  for (let first = true; ; first = false) {
    const { done, value } = await pieces.read();
    if (first && value?.[0] === 80 && value[1] === 65 && value[2] === 82 && value[3] === 49) {
      throw new Unreadable("A browser cannot read Parquet. Use felrec import or felrec items import, or save the file as CSV.");
    }
    try {
      const text = decoder.decode(value, { stream: !done });
      if (text) yield text;
    } catch (error) {
      if (error instanceof TypeError) throw new Unreadable("The file is not UTF-8 text. Save it as UTF-8, as CSV or JSON lines.");
      throw error;
    }
    if (done) return;
    bytes += value.length;
    read(bytes);
  }
}

function readerFor(text) {
  const start = text.trimStart()[0];
  if (start === "[") return new JsonList();
  return start === "{" ? new JsonLines() : new Separated();
}

class JsonLines {
  rest = "";

  *push(text) {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop();
    for (const line of lines) if (line.trim()) yield object(line);
  }

  *end() {
    if (this.rest.trim()) yield object(this.rest);
  }
}

function object(line) {
  try {
    const row = JSON.parse(line);
    if (row !== null && typeof row === "object" && !Array.isArray(row)) return { row };
  } catch {
    // said below
  }
  return { problem: "not a JSON object" };
}

class JsonList {
  text = "";

  *push(text) {
    this.text += text;
  }

  *end() {
    let rows;
    try {
      rows = JSON.parse(this.text);
    } catch (error) {
      throw new Unreadable(`The file is not valid JSON: ${error.message}`);
    }
    for (const row of rows) yield object(JSON.stringify(row));
  }
}

/** Separated text: fields may be quoted, and then hold separators, line breaks and doubled quotes. */
class Separated {
  separator = null;
  names = null;
  head = ""; // the text before the separator is known
  fields = [];
  field = "";
  quoted = false;
  closing = false; // after a quote in a quoted field: it ends, unless another quote follows

  *push(text) {
    if (this.separator === null) {
      this.head += text;
      if (!this.head.includes("\n")) return;
      [text, this.head] = [this.head, ""];
      this.separator = separatorOf(text.slice(0, text.indexOf("\n")));
    }
    for (const letter of text) {
      if (this.closing) {
        this.closing = false;
        if (letter === '"') {
          this.field += '"';
          continue;
        }
        this.quoted = false;
      }
      if (this.quoted) {
        if (letter === '"') this.closing = true;
        else this.field += letter;
      } else if (letter === '"' && this.field === "") this.quoted = true;
      else if (letter === this.separator) this.endField();
      else if (letter === "\n") yield* this.endRecord();
      else this.field += letter;
    }
  }

  *end() {
    if (this.separator === null) yield* this.push("\n");
    if (this.quoted && !this.closing) yield { problem: "a quote is not closed" };
    else if (this.field || this.fields.length) yield* this.endRecord();
  }

  endField() {
    this.fields.push(this.field.trim());
    this.field = "";
  }

  *endRecord() {
    this.endField();
    const { fields } = this;
    this.fields = [];
    if (fields.every((field) => field === "")) return;
    if (this.names === null) this.names = fields;
    else if (fields.length > this.names.length) yield { problem: `more fields than the first line; quote fields that hold “${this.separator}”` };
    else yield { row: Object.fromEntries(fields.map((field, index) => [this.names[index], field]).filter(([, field]) => field !== "")) };
  }
}

/** The separator that is most frequent in the first line, outside quotes. */
function separatorOf(line) {
  const unquoted = line.split('"').filter((_, index) => index % 2 === 0).join("");
  const frequency = (mark) => unquoted.split(mark).length;
  return SEPARATORS.reduce((best, mark) => (frequency(mark) > frequency(best) ? mark : best));
}
