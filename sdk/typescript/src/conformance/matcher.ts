// SPDX-License-Identifier: Apache-2.0
// Whether an answer is what a step expects, and if not, in which way. No I/O.

import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "../json.js";
import { isObject, MISSING, Misunderstood, point } from "./values.js";

const SHOWN_CHARS = 300;
const FINDINGS_MAX = 5;

/** Says in which way a value does not fit one of the suite's schemas, by its name. */
export type Fits = (name: string, value: unknown) => string[];

/** As much of a value as is worth reading. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  return text.length <= SHOWN_CHARS ? text : `${text.slice(0, SHOWN_CHARS)}…`;
}

/** Everything that is not as expected. */
export function findings(expect: JsonObject, status: number | string, body: unknown, fits: Fits) {
  if (Object.keys(expect).length === 0) throw new Misunderstood("it expects nothing");
  const found: string[] = [];
  for (const [name, wish] of Object.entries(expect)) {
    if (name === "status") {
      if (!isStatus(wish, status)) found.push(`status: expected ${shown(wish)}, got ${status}`);
    } else if (name === "code") {
      const code = isObject(body) ? body.code : undefined;
      if (code !== wish) found.push(`/code: expected ${shown(wish)}, got ${shown(code)}`);
    } else if (name === "body") found.push(...unlike("", wish, body));
    else if (name === "replies") found.push(...replies(wish as JsonObject, body));
    else if (name === "at") found.push(...conditions("", wish as JsonObject, body, fits));
    else throw new Misunderstood(`there is no expectation ${name}`);
  }
  return found.slice(0, FINDINGS_MAX);
}

function isStatus(wish: unknown, status: number | string): boolean {
  if (Array.isArray(wish)) return wish.some((one) => isStatus(one, status));
  // The SDK's methods do not tell one success from another.
  if (typeof wish === "string" || typeof status === "string") {
    return String(status)[0] === String(wish)[0];
  }
  return wish === status;
}

function replies(wish: JsonObject, body: unknown): string[] {
  const wanted: { [name: string]: number } = {};
  const came: { [name: string]: number } = {};
  const add = (to: { [name: string]: number }, status: string, by: number) => {
    const kind = status[0] ?? "";
    to[kind] = (to[kind] ?? 0) + by;
  };
  for (const [status, number] of Object.entries(wish)) add(wanted, status, Number(number));
  for (const one of body as { status: unknown }[]) add(came, String(one.status), 1);
  const same = isDeepStrictEqual(wanted, came);
  return same ? [] : [`replies by class: expected ${shown(wanted)}, got ${shown(came)}`];
}

function unlike(place: string, wish: unknown, value: unknown): string[] {
  if (wish === "<any>") return [];
  if (isObject(wish) && isObject(value)) {
    return Object.entries(wish).flatMap(([name, part]) =>
      Object.hasOwn(value, name)
        ? unlike(`${place}/${name}`, part, value[name])
        : [`${place}/${name}: nothing is there`],
    );
  }
  if (Array.isArray(wish) && Array.isArray(value) && wish.length === value.length) {
    return wish.flatMap((part, at) => unlike(`${place}/${at}`, part, value[at]));
  }
  if (isDeepStrictEqual(wish, value)) return [];
  return [`${place}: expected ${shown(wish)}, got ${shown(value)}`];
}

function conditions(place: string, all: JsonObject, value: unknown, fits: Fits): string[] {
  return Object.entries(all).flatMap(([pointer, given]) => {
    const condition = given as JsonObject;
    const here = place + pointer;
    const part = point(value, pointer);
    if (Object.keys(condition).length === 0) {
      throw new Misunderstood(`it expects nothing at ${here}`);
    }
    if (condition.absent) {
      return part === MISSING ? [] : [`${here}: expected nothing there, got ${shown(part)}`];
    }
    if (part === MISSING) return [`${here}: nothing is there`];
    return Object.entries(condition).flatMap(([name, operand]) =>
      holds(here, name, operand, part, fits),
    );
  });
}

function holds(place: string, name: string, operand: unknown, value: unknown, fits: Fits) {
  if (name === "like") return unlike(place, operand, value);
  if (name === "each") {
    if (!Array.isArray(value) || value.length === 0) {
      return [`${place}: expected a list with items, got ${shown(value)}`];
    }
    return value.flatMap((item, at) =>
      conditions(`${place}/${at}`, operand as JsonObject, item, fits),
    );
  }
  if (name === "some") {
    const one = (item: unknown) => conditions("", operand as JsonObject, item, fits).length === 0;
    if (Array.isArray(value) && value.some(one)) return [];
    return [`${place}: no item fits ${shown(operand)} in ${shown(value)}`];
  }
  if (name === "fits") return fits(String(operand), value).map((fault) => `${place}${fault}`);
  const simple = SIMPLE[name];
  if (!simple) throw new Misunderstood(`there is no condition ${name}`);
  if (simple(value, operand as never)) return [];
  return [`${place}: expected ${name} ${shown(operand)}, got ${shown(value)}`];
}

function contains(value: unknown, part: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => unlike("", part, item).length === 0);
  if (typeof value === "string") return value.includes(String(part));
  return isObject(value) && Object.hasOwn(value, String(part));
}

/** What is left of one list when the items of the other are taken out of it. */
function without(items: unknown[], others: unknown[]): unknown[] {
  const left = [...items];
  for (const other of others) {
    const at = left.findIndex((item) => isDeepStrictEqual(item, other));
    if (at >= 0) left.splice(at, 1);
  }
  return left;
}

function kind(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

function size(value: unknown): number | undefined {
  if (typeof value === "string") return [...value].length;
  if (Array.isArray(value)) return value.length;
  return isObject(value) ? Object.keys(value).length : undefined;
}

const number = (compare: (a: number, b: number) => boolean) => (value: unknown, bound: unknown) =>
  typeof value === "number" && compare(value, Number(bound));

const SIMPLE: { [name: string]: (value: unknown, operand: never) => boolean } = {
  equals: (value, other) => isDeepStrictEqual(value, other),
  not: (value, other) => !isDeepStrictEqual(value, other),
  type: (value, wanted: string) => kind(value) === wanted,
  contains,
  lacks: (value, part) => !contains(value, part),
  starts_with: (value, start: string) => typeof value === "string" && value.startsWith(start),
  // Where only the class of a status is known, it is enough that one of them is of that class.
  one_of: (value, words: unknown[]) =>
    typeof value === "string" && value.endsWith("xx")
      ? words.some((word) => String(word)[0] === value[0])
      : words.some((word) => isDeepStrictEqual(word, value)),
  length: (value, length: number) => size(value) === length,
  at_least: number((a, b) => a >= b),
  at_most: number((a, b) => a <= b),
  more_than: number((a, b) => a > b),
  less_than: number((a, b) => a < b),
  has_all: (value, items: unknown[]) => Array.isArray(value) && without(items, value).length === 0,
  same_items: (value, items: unknown[]) =>
    Array.isArray(value) && value.length === items.length && without(items, value).length === 0,
  unique: (value, pointer: string) => {
    if (!Array.isArray(value)) return false;
    const parts = value.map((item) => point(item, pointer));
    return (
      !parts.includes(MISSING) &&
      parts.every((part, at) =>
        parts.slice(0, at).every((other) => !isDeepStrictEqual(part, other)),
      )
    );
  },
};
