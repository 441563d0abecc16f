// The OpenAPI description as a page, with nothing from outside.

import { byId, make } from "./dom.js";

const description = await (await fetch("/openapi.json")).json();
const resolved = (schema) => (schema?.$ref ? description.components.schemas[schema.$ref.split("/").pop()] : schema) ?? {};

function kind(schema) {
  if (schema?.$ref) return schema.$ref.split("/").pop();
  if (schema?.anyOf) return schema.anyOf.map(kind).join(" or ");
  if (schema?.type === "array") return `list of ${kind(schema.items)}`;
  if (schema?.const !== undefined) return JSON.stringify(schema.const);
  if (schema?.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  return schema?.format === "binary" ? "file" : (schema?.type ?? "anything");
}

function range(schema) {
  const parts = schema.anyOf ?? [schema];
  const low = parts.find((part) => part.minimum !== undefined)?.minimum;
  const high = parts.find((part) => part.maximum !== undefined)?.maximum;
  return low === undefined ? "" : ` from ${low} to ${high}`;
}

function fields(schema, required = schema.required ?? []) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", textContent: name }),
      make("td", { textContent: `${kind(field)}${range(field)}${required.includes(name) ? "" : field.default === undefined ? "" : `, else ${JSON.stringify(field.default)}`}` }),
      make("td", { textContent: field.description ?? "" }),
    ),
  );
  return make("table", {}, make("tbody", {}, ...rows));
}

function operation(path, verb, said) {
  const section = make("section", { class: "card" }, make("h2", { textContent: `${verb.toUpperCase()} ${path}` }), make("p", { textContent: said.description ?? said.summary }));
  if (said.parameters?.length)
    section.append(make("p", { class: "hint", textContent: "In the address:" }), fields({ properties: Object.fromEntries(said.parameters.map((one) => [one.name, { ...one.schema, description: one.description }])) }));
  for (const [type, { schema }] of Object.entries(said.requestBody?.content ?? {})) {
    const detail = make("details", {}, make("summary", { textContent: `Body as ${type}` }), fields(resolved(schema)));
    section.append(detail);
  }
  for (const [status, response] of Object.entries(said.responses)) {
    const [type, body] = Object.entries(response.content ?? {})[0] ?? [];
    const schema = body?.schema;
    const shape = schema?.type === "array" ? resolved(schema.items) : resolved(schema);
    section.append(make("details", {}, make("summary", { textContent: `${status}: ${response.description} ${schema ? `(${type}, ${kind(schema)})` : ""}` }), fields(shape)));
  }
  return section;
}

byId("about").textContent = description.info.description.split("\n\n")[0];
byId("operations").replaceChildren(
  make("section", { class: "card" }, make("h2", { textContent: "In one line" }), make("pre", { textContent: `curl -F image=@digit.png -F angle=30 '${location.origin}/api/explain?model=mnist'` })),
  ...Object.entries(description.paths).flatMap(([path, verbs]) => Object.entries(verbs).map(([verb, said]) => operation(path, verb, said))),
  make("section", { class: "card" }, make("h2", { textContent: "Shapes of answers" }), ...Object.entries(description.components.schemas).map(([name, schema]) => make("details", {}, make("summary", { textContent: `${name}: ${schema.description ?? ""}` }), fields(schema)))),
);
