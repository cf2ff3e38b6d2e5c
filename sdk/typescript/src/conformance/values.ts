// SPDX-License-Identifier: Apache-2.0
// Values of the suite's small language: variables put in, functions carried out. No I/O.

import { address, constraintId, type JsonObject } from "../json.js";

export type Scope = { [name: string]: unknown };
/** Stands for nothing where a pointer leads nowhere; `null` is a value. */
export const MISSING = Symbol("missing");
const NAME = /\$\{([^}]*)\}/g;

/** The suite says something that this runner does not know. */
export class Misunderstood extends Error {}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value with its variables put in and its functions carried out. */
export async function resolve(value: unknown, scope: Scope): Promise<unknown> {
  if (typeof value === "string") {
    const whole = value.match(/^\$\{([^}]*)\}$/);
    return whole?.[1] !== undefined ? lookUp(whole[1], scope) : textWith(value, scope);
  }
  if (Array.isArray(value)) return Promise.all(value.map((item) => resolve(item, scope)));
  if (!isObject(value)) return value;
  const [name = "", ...others] = Object.keys(value);
  if (others.length === 0 && /^\$[^{]/.test(name)) {
    return call(name, await resolve(value[name], scope));
  }
  const made: JsonObject = {};
  for (const [key, part] of Object.entries(value)) {
    made[textWith(key, scope)] = await resolve(part, scope);
  }
  return made;
}

/** A text with variables put in as texts. */
export function textWith(text: string, scope: Scope): string {
  return text.replace(NAME, (_, name: string) => {
    const value = lookUp(name, scope);
    return typeof value === "string" ? value : JSON.stringify(value);
  });
}

function lookUp(name: string, scope: Scope): unknown {
  const slash = name.indexOf("/");
  const variable = slash < 0 ? name : name.slice(0, slash);
  if (!(variable in scope)) throw new Misunderstood(`nothing is known as ${variable}`);
  const found = point(scope[variable], slash < 0 ? "" : name.slice(slash));
  if (found === MISSING) throw new Misunderstood(`${variable} has nothing at ${name.slice(slash)}`);
  return found;
}

/** What is at a JSON pointer, or `MISSING`. */
export function point(value: unknown, pointer: string): unknown {
  let found = value;
  for (const raw of pointer.split("/").slice(1)) {
    const step = raw.replaceAll("~1", "/").replaceAll("~0", "~");
    if (isObject(found) && Object.hasOwn(found, step)) found = found[step];
    else if (Array.isArray(found) && /^\d+$/.test(step) && Number(step) < found.length) {
      found = found[Number(step)];
    } else return MISSING;
  }
  return found;
}

async function call(name: string, given: unknown): Promise<unknown> {
  switch (name) {
    case "$merge": {
      const whole: JsonObject = Object.assign({}, ...(given as JsonObject[]));
      return Object.fromEntries(Object.entries(whole).filter(([, part]) => part !== null));
    }
    case "$address":
      return address(given);
    case "$text_id":
      return constraintId(String(given));
    case "$pluck": {
      const [items, pointer] = given as [unknown[], string];
      const parts = items.map((item) => point(item, pointer));
      if (parts.includes(MISSING)) throw new Misunderstood(`an item has nothing at ${pointer}`);
      return parts;
    }
    case "$concat":
      return (given as unknown[][]).flat(1);
    case "$sum":
      return (given as number[]).reduce((a, b) => a + b, 0);
    default:
      throw new Misunderstood(`there is no function ${name}`);
  }
}
