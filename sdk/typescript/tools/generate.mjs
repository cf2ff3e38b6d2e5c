#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Writes what follows from the description of the API, or with --check says what is out of date.
//
// - `src/models.ts` follows from the schemas of `api/openapi.json`: what the API takes and gives.
// - `src/operations.ts` follows from `api/operations.json`: every operation, grouped by its noun.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = new URL("../../../", import.meta.url);
const HERE = new URL("../", import.meta.url);
const document = read("api/openapi.json");
const table = read("api/operations.json");
const schemas = document.components.schemas;

/** The nouns of the client, by how the names of operations begin; the longest wins. */
const NOUNS = {
  agent: "Agents",
  alert: "Alerts",
  audit: "Audit",
  chain: "Chains",
  channel: "Channels",
  context: "Projects",
  dead_letter: "DeadLetters",
  handoff: "Handoffs",
  health: "Health",
  key: "Keys",
  memory: "Memories",
  overview: "Overview",
  pipeline: "Pipelines",
  population: "Populations",
  question: "Questions",
  reservation: "Reservations",
  security: "Security",
  stats: "Stats",
  target: "Targets",
  session: "Sessions",
  task: "Tasks",
  tenant: "Tenants",
  token: "Tokens",
};
/** Operations without a noun, and where they are. */
const PLACED = { health: ["Health", "alive"], ready: ["Health", "ready"] };
/** Objects whose further members are the sender's. */
const OPEN = new Set(["Payload"]);
/** What the client does in its own way: they are streams, or have no noun. */
const BY_HAND = new Set([
  "event_stream",
  "change_stream",
  "audit_export",
  "assemble",
  "task_export",
  "metrics_show",
]);

function read(path) {
  return JSON.parse(readFileSync(new URL(path, ROOT), "utf8"));
}

const head = (source) =>
  `// SPDX-License-Identifier: Apache-2.0\n// Made by tools/generate.mjs from ${source}. Do not edit.\n\n`;

function comment(text, indent = "") {
  const words = (text ?? "").split(/\s+/).filter(Boolean);
  if (words.length === 0) return "";
  const lines = [];
  let line = "";
  for (const word of words) {
    if (line && line.length + word.length > 90) {
      lines.push(line);
      line = word;
    } else line = line ? `${line} ${word}` : word;
  }
  lines.push(line);
  const safe = lines.map((one) => one.replaceAll("*/", "*\\/"));
  if (safe.length === 1) return `${indent}/** ${safe[0]} */\n`;
  return `${indent}/**\n${safe.map((one) => `${indent} * ${one}\n`).join("")}${indent} */\n`;
}

const named = (ref) => ref.split("/").at(-1);

/** The type of a schema, written out. */
function type(schema, indent = "") {
  if (schema === true || typeof schema !== "object" || Object.keys(schema).length === 0)
    return "unknown";
  const parts = [];
  if (schema.$ref) parts.push(named(schema.$ref));
  for (const kind of ["anyOf", "oneOf"]) {
    if (!schema[kind]) continue;
    const words = schema[kind].map((one) => type(one, indent));
    parts.push(
      union(
        words,
        schema[kind].every((one) => isWord(one)),
      ),
    );
  }
  if (schema.properties) parts.push(members(schema, indent));
  if (parts.length > 0) return parts.length === 1 ? parts[0] : parts.map(grouped).join(" & ");
  if (schema.enum)
    return union(
      schema.enum.map((one) => JSON.stringify(one)),
      typeof schema.enum[0] === "string",
    );
  if ("const" in schema) return JSON.stringify(schema.const);
  if (Array.isArray(schema.type)) {
    return union(
      schema.type.map((one) => type({ ...schema, type: one }, indent)),
      false,
    );
  }
  switch (schema.type) {
    case "null":
      return "null";
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "array":
      return `${grouped(type(schema.items ?? {}, indent))}[]`;
    case "object":
      // By hand, because the API has a type of its own by the name of TypeScript's `Record`.
      if (schema.additionalProperties === false) return "{ [name: string]: never }";
      return `{ [name: string]: ${type(schema.additionalProperties ?? true, indent).replace("unknown", "any")} }`;
    default:
      return "unknown";
  }
}

function isWord(schema) {
  if (schema.$ref || schema.properties) return false;
  return typeof schema.const === "string" || typeof schema.enum?.[0] === "string";
}

/** A newer broker may have words that the list of known ones does not: `open` lets them be. */
function union(words, open) {
  const known = [...new Set(words)];
  if (known.includes("unknown")) return "unknown";
  if (open) known.push("(string & {})");
  return known.join(" | ");
}

const grouped = (text) => (/[|&]/.test(text) && !/^[{(].*[})]$/s.test(text) ? `(${text})` : text);

function members(schema, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties).map(([name, part]) => {
    const always = schema.required?.includes(name) ? "" : "?";
    const about = typeof part === "object" ? comment(part.description, inner) : "";
    const key = /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
    return `${about}${inner}${key}${always}: ${type(part, inner)};\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}

function models() {
  let text = head("api/openapi.json");
  text +=
    "// What the broker takes and gives, by the API's own names.\n\n/* biome-ignore-all lint: generated */\n\n";
  for (const name of Object.keys(schemas).sort()) {
    const schema = schemas[name];
    text += comment(schema.description);
    const only = schema.properties && !schema.oneOf && !schema.anyOf;
    if (OPEN.has(name)) {
      text += `export interface ${name} ${members(schema, "").replace(/}$/, "  [name: string]: any;\n}")}\n\n`;
      continue;
    }
    text += only
      ? `export interface ${name} ${members(schema, "")}\n\n`
      : `export type ${name} = ${type(schema)};\n\n`;
  }
  return text;
}

const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());

/** The parameters of an operation, as the document of the API has them. */
function parameters(one) {
  const found = document.paths[one.http.path][one.http.method.toLowerCase()];
  return (found.parameters ?? []).filter((it) => it.in === "query");
}

/** Who asks is the client's own agent, unless the member means somebody else. */
function own(one) {
  const asks = ["from_agent", "by", "agent"].filter((name) => one.members.includes(name));
  return asks.includes("by") ? ["by"] : asks;
}

function required(one) {
  if (!one.asks) return [];
  const schema = schemas[one.asks];
  const forms = schema.anyOf ? schema.anyOf.map((it) => schemas[named(it.$ref)]) : [schema];
  return forms[0].required ?? [];
}

function method(one, name) {
  const placed = [...one.http.path.matchAll(/\{(\w+)\}/g)].map((found) => found[1]);
  const said = placed.map((it) => `${it}: string`);
  const rest = [];
  if (one.http.method === "GET") {
    const query = parameters(one);
    if (query.length > 0) {
      const kinds = query.map((it) => `${it.name}?: ${prefixed(type(it.schema))}`);
      said.push(`query: { ${kinds.join("; ")} } = {}`);
      rest.push("query");
    }
  } else if (one.asks && one.asks !== "Nothing") {
    const filled = own(one);
    const keys = [
      ...filled,
      ...["idempotency_key", "request_id"].filter((it) => one.members.includes(it)),
    ];
    const kind = keys.length
      ? `Without<m.${one.asks}, ${keys.map((it) => `"${it}"`).join(" | ")}>`
      : `m.${one.asks}`;
    const must = required(one).some((it) => !keys.includes(it));
    said.push(must ? `body: ${kind}` : `body: ${kind} = {}`);
    rest.push("body");
  }
  said.push("options?: Options");
  const reply = one.answers ? `m.${one.answers}` : "undefined";
  const path = placed.length ? `{ ${placed.join(", ")} }` : "{}";
  const given = [`ROUTES.${one.name}`, path, ...(rest.length ? rest : ["undefined"]), "options"];
  return (
    comment(`${one.summary}.`, "  ") +
    `  ${name}(${said.join(", ")}): Promise<${reply}> {\n    return this.call(${given.join(", ")});\n  }\n`
  );
}

const prefixed = (text) =>
  text.replace(/\b([A-Z]\w*)\b/g, (name) => (name in schemas ? `m.${name}` : name));

function operations() {
  let text = head("api/operations.json");
  text += "/* biome-ignore-all lint: generated */\n\n";
  text +=
    'import type * as m from "./models.js";\nimport type { Options, Route, Send, Without } from "./wire.js";\n\n';
  text +=
    "/** Where each operation of the API is, and what it takes. */\nexport const ROUTES = {\n";
  for (const one of table.operations) {
    const reply = one.answers ? `m.${one.answers}` : "undefined";
    const facts = {
      name: one.name,
      method: one.http.method,
      path: one.http.path,
      at: BY_HAND.has(one.name) ? null : lower(placed(one.name)),
      members: one.members,
      own: one.http.method === "GET" ? [] : own(one),
      needs: own(one).filter((it) => required(one).includes(it)),
      key:
        one.http.method === "GET"
          ? null
          : (["idempotency_key", "request_id"].find((it) => one.members.includes(it)) ?? null),
    };
    text += `  ${one.name}: ${JSON.stringify(facts)} as Route<${reply}>,\n`;
  }
  text += "} as const;\n\n";
  const nouns = new Map();
  for (const one of table.operations) {
    if (BY_HAND.has(one.name)) continue;
    const [noun, name] = placed(one.name);
    if (!nouns.has(noun)) nouns.set(noun, []);
    nouns.get(noun).push(method(one, name));
  }
  const listed = [...nouns.keys()].sort();
  for (const noun of listed) {
    text += `/** What can be done with ${noun.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase()}. */\n`;
    text += `export class ${noun} {\n  constructor(private readonly call: Send) {}\n\n`;
    text += `${nouns.get(noun).join("\n")}}\n\n`;
  }
  text += "/** Every operation of the API, by its noun. */\nexport class Nouns {\n";
  for (const noun of listed)
    text += `  readonly ${noun[0].toLowerCase()}${noun.slice(1)}: ${noun};\n`;
  text += "\n  constructor(send: Send) {\n";
  for (const noun of listed)
    text += `    this.${noun[0].toLowerCase()}${noun.slice(1)} = new ${noun}(send);\n`;
  return `${text}  }\n}\n`;
}

const lower = ([noun, name]) => [noun[0].toLowerCase() + noun.slice(1), name];

function placed(name) {
  if (name in PLACED) return PLACED[name];
  const begin = Object.keys(NOUNS)
    .filter((it) => name.startsWith(`${it}_`))
    .sort((a, b) => b.length - a.length)[0];
  if (!begin)
    throw new Error(`no noun of the client begins the operation ${name}: add one to NOUNS`);
  return [NOUNS[begin], camel(name.slice(begin.length + 1))];
}

const check = process.argv.includes("--check");
let stale = 0;
for (const [name, text] of [
  ["src/models.ts", models()],
  ["src/operations.ts", operations()],
]) {
  const path = fileURLToPath(new URL(name, HERE));
  if (existsSync(path) && readFileSync(path, "utf8") === text) continue;
  stale += 1;
  if (!check) writeFileSync(path, text);
  console.log(
    `sdk/typescript/${name}: ${check ? "is out of date: run sdk/typescript/tools/generate.mjs" : "written"}`,
  );
}
process.exit(check && stale ? 1 : 0);
