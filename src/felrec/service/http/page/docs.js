// Shows the service's own OpenAPI document: every path, and the bodies and answers that they refer to.
import { byId, h } from "./dom.js";

const METHODS = ["get", "post", "put", "delete"];

/** Text with `code` in it. */
const coded = (text) => text.split("`").map((part, place) => (place % 2 ? h("code", {}, part) : part));

/** A description: a paragraph for each block of lines. */
const described = (text = "") => text.split(/\n\s*\n/).map((block) => h("p", {}, coded(block)));

/** The name at the end of "#/components/schemas/Name". */
const nameIn = (reference) => reference.split("/").pop();

/** A link to a schema further down the page. */
const link = (name) => h("a", { href: `#${name}`, onclick: () => (byId(name).open = true) }, name);

/** A type in words: texts, and links to other schemas. */
function type(schema) {
  if (schema.$ref) return [link(nameIn(schema.$ref))];
  if (schema.anyOf) return schema.anyOf.flatMap((one, place) => [place ? " or " : "", ...type(one)]);
  if (schema.type === "array") return ["list of ", ...type(schema.items ?? {})];
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" or ")];
  return [schema.format ?? schema.type ?? "anything"];
}

/** What a value may be, apart from its type. */
function bounds({ minimum, maximum, exclusiveMaximum, maxLength, maxItems, default: value }) {
  return [
    minimum !== undefined && `from ${minimum}`,
    (maximum ?? exclusiveMaximum) !== undefined && `up to ${maximum ?? exclusiveMaximum}`,
    maxLength !== undefined && `at most ${maxLength} characters`,
    maxItems !== undefined && `at most ${maxItems}`,
    value !== undefined && value !== null && `default ${JSON.stringify(value)}`,
  ].filter(Boolean).join(", ");
}

function table(headings, rows) {
  return h("div", { class: "scroll" },
    h("table", {},
      h("thead", {}, h("tr", {}, headings.map((heading) => h("th", { scope: "col" }, heading)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
}

/** A row of a parameter or a field: name, type, what it is. */
const row = (name, required, schema, description) => [
  [h("code", {}, name), required ? h("span", { class: "muted" }, " required") : null],
  type(schema),
  [...coded(description ?? schema.description ?? ""), h("span", { class: "muted" }, ` ${bounds(schema)}`)],
];

const parameters = (list) => table(["parameter", "type", ""],
  list.map((one) => {
    const [name, ...others] = row(one.name, one.required, one.schema, one.description);
    return [[...name, h("span", { class: "muted" }, ` ${one.in}`)], ...others];
  }));

/** The types of a body or an answer by media type; nothing if it has none. */
const contents = (content = {}) =>
  Object.entries(content).flatMap(([media, { schema = {} }], place) => [place ? ", or " : "", ...type(schema), ` (${media})`]);

/** Good answers one by one; what all refusals share is said once. */
function answers(responses) {
  const [good, refused] = [true, false].map((wanted) => Object.entries(responses).filter(([status]) => (status < "4") === wanted));
  return h("ul", {},
    good.map(([status, { content }]) => h("li", {}, h("code", {}, status), " ", contents(content))),
    refused.length ? h("li", {}, h("code", {}, refused.map(([status]) => status).join(", ")), " ", contents(refused[0][1].content)) : null);
}

function operation(path, method, told) {
  return h("details", { id: told.operationId },
    h("summary", {}, h("code", { class: "method" }, method.toUpperCase()), " ", h("code", {}, path)),
    described(told.description ?? told.summary),
    told.parameters?.length ? parameters(told.parameters) : null,
    told.requestBody ? h("p", {}, h("em", {}, "Body: "), contents(told.requestBody.content)) : null,
    h("p", {}, h("em", {}, "Answers")), answers(told.responses),
    told.security ? h("p", { class: "muted" }, "Needs a key if the service was started with keys.") : null);
}

function schema(name, told) {
  const fields = Object.entries(told.properties ?? {});
  return h("details", { id: name },
    h("summary", {}, h("code", {}, name)),
    described(told.description),
    fields.length
      ? table(["field", "type", ""], fields.map(([field, one]) => row(field, told.required?.includes(field), one)))
      : h("p", {}, type(told)));
}

async function show() {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
  const { info, paths, components } = await answer.json();
  byId("version").textContent = info.version;
  byId("about").append(...described(info.description));
  byId("operations").append(...Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => operation(path, method, methods[method]))));
  byId("schemas").append(...Object.entries(components.schemas).map(([name, told]) => schema(name, told)));
  const asked = location.hash && byId(location.hash.slice(1));
  if (asked) {
    asked.open = true;
    asked.scrollIntoView();
  }
}

show().catch((error) => {
  byId("problem").textContent = `The OpenAPI document cannot be shown (${error.message}). Reload the page to try again.`;
  byId("problem").hidden = false;
});
