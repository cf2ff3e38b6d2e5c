// SPDX-License-Identifier: Apache-2.0
// JSON as the API has it: values of a program made plain, and the one spelling (RFC 8785) that is
// hashed and signed.

const encoder = new TextEncoder();

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: unknown };

/**
 * A value as JSON has it. Dates become texts, maps objects, sets lists; what JSON cannot say is a
 * `TypeError` that names the place, before anything is sent.
 */
export function plain(value: unknown, place = ""): Json {
  return tame(value, place, new Set());
}

function tame(value: unknown, place: string, above: Set<object>): Json {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw wrong(place, `${value} is no number of JSON`);
      // Larger ones are written with an exponent, and read as what they are.
      if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21) {
        throw wrong(place, `${value} is beyond 2^53: not every JSON reader keeps it`);
      }
      return value;
    case "object":
      return value === null ? null : inside(value, place, above);
    default:
      throw wrong(place, `${article(typeof value)} is not JSON`);
  }
}

function inside(value: object, place: string, above: Set<object>): Json {
  if (above.has(value)) throw wrong(place, "it contains itself");
  above.add(value);
  try {
    if ("toJSON" in value && typeof value.toJSON === "function") {
      if (value instanceof Date && Number.isNaN(value.getTime())) {
        throw wrong(place, "it is no moment: an invalid Date");
      }
      return tame(value.toJSON(), place, above);
    }
    if (Array.isArray(value) || value instanceof Set) {
      return [...value].map((item, at) => tame(item, `${place}/${at}`, above));
    }
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
      throw wrong(place, "bytes are not JSON: encode them as a text");
    }
    if (value instanceof Error || value instanceof Promise) {
      throw wrong(place, `${article(value.constructor.name)} is not JSON`);
    }
    const members = value instanceof Map ? [...value] : Object.entries(value);
    const made: { [name: string]: Json } = {};
    for (const [name, part] of members) {
      if (part === undefined) continue;
      const step = String(name).replaceAll("~", "~0").replaceAll("/", "~1");
      Object.defineProperty(made, String(name), {
        value: tame(part, `${place}/${step}`, above),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    }
    return made;
  } finally {
    above.delete(value);
  }
}

const article = (name: string) => `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name}`;

function wrong(place: string, why: string): TypeError {
  return new TypeError(`${place || "this value"} cannot be sent: ${why}`);
}

/** The one spelling of a JSON value. */
export function canonical(value: unknown): string {
  return write(plain(value));
}

function write(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    // Names in the order of UTF-16, which is how JavaScript sorts.
    const names = Object.keys(value).sort();
    return `{${names.map((name) => `${JSON.stringify(name)}:${write(value[name] ?? null)}`).join(",")}}`;
  }
  return JSON.stringify(value);
}

/** Where a JSON value is found: the hash of its one spelling. */
export async function address(value: unknown): Promise<string> {
  return `sha256:${hex(await sha256(encoder.encode(canonical(value))))}`;
}

/** What a constraint is known by: the hash of its text in Unicode's composed form. */
export async function constraintId(text: string): Promise<string> {
  return `sha256:${hex(await sha256(encoder.encode(text.normalize("NFC"))))}`;
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A value as a payload, which is an object that names its type. */
export function payload(value: unknown, type = "result"): { [name: string]: Json } {
  if (value === undefined || value === null) return { type };
  if (typeof value === "string") return { type: "text", text: value };
  const said = plain(value, "/payload");
  if (typeof said === "object" && said !== null && !Array.isArray(said)) return { type, ...said };
  return { type, value: said };
}
