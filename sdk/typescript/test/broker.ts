// SPDX-License-Identifier: Apache-2.0
// A real broker on a real store for each file of tests. None is played.

import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { Broker } from "../src/testing.js";

/** The folder of this repository. */
export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
process.env.TASUKI_BIN ??= `${ROOT}target/debug/tasuki`;

let numbers = 0;

/** Names that no other test uses. */
export function names(): (what: string) => string {
  numbers += 1;
  const number = numbers;
  return (what) => `${what}-${number}`;
}

/** One for all tests of a file. */
export async function broker(...options: string[]): Promise<Broker> {
  const made = await Broker.start(options);
  after(() => made[Symbol.asyncDispose]());
  return made;
}

export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
}
