// SPDX-License-Identifier: Apache-2.0
// The server keeps the protocol through this SDK, too, and mostly through its own methods.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { dirname } from "node:path";
import { test } from "node:test";
import { type Report, run, type Suite, tap } from "../src/conformance/index.js";
import { findings } from "../src/conformance/matcher.js";
import { Misunderstood, resolve } from "../src/conformance/values.js";
import { broker } from "./broker.js";

const tools = `${dirname(process.env.TASUKI_BIN ?? "")}/tasuki-tools`;
const printed = execFileSync(tools, ["conformance", "suite"], { maxBuffer: 2 ** 26 });
const suite = JSON.parse(printed.toString()) as Suite;
const { url } = await broker();
let report: Report | undefined;

test("the server keeps everything through the SDK", async () => {
  report = await run(suite, { url });
  assert.deepEqual(
    report.checks.filter((it) => !it.ok).map((it) => [it.id, it.failure]),
    [],
  );
  assert.ok(report.ok && report.passed === suite.checks.length);
});

test("most of it goes through methods of the SDK", () => {
  assert.ok(report);
  assert.ok(report.typed_calls > 5 * report.low_level_calls);
  assert.deepEqual(report.low_level_operations, ["handoff_ask", "handoff_heartbeat"]);
});

test("a server that is something else fails every check", async () => {
  const few = await run(
    suite,
    { url: "http://127.0.0.1:9" },
    { ids: (id) => id.startsWith("schema.payload-") },
  );
  assert.deepEqual([few.ok, few.passed], [false, 0]);
  assert.match(tap(few), /^TAP version 14\n1\.\.3\nnot ok 1 - schema\.payload-/);
});

test("what is not as expected is found", () => {
  const wrong: [object, unknown][] = [
    [{ status: 201 }, {}],
    [{ code: "stale_claim" }, { code: "other" }],
    [{ body: { a: [1] } }, { a: [2] }],
    [{ at: { "/a": { equals: true } } }, { a: 1 }],
    [{ at: { "/a": { absent: true } } }, { a: null }],
    [{ at: { "/a": { each: { "": { equals: 1 } } } } }, { a: [] }],
    [{ at: { "/a": { some: { "": { equals: 1 } } } } }, { a: [2] }],
    [{ at: { "/a": { unique: "" } } }, { a: [1, 1] }],
    [{ at: { "/a": { same_items: [1, 2] } } }, { a: [1, 2, 2] }],
    [{ at: { "/a": { more_than: 1 } } }, { a: 1 }],
  ];
  for (const [expect, body] of wrong) {
    assert.ok(findings(expect as never, 400, body, () => []).length > 0, JSON.stringify(expect));
  }
  for (const expect of [{}, { stat: 1 }, { at: { "/a": {} } }, { at: { "/a": { is: 1 } } }]) {
    assert.throws(() => findings(expect as never, 200, { a: 1 }, () => []), Misunderstood);
  }
});

test("a value that cannot be made is an error", async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the language of the suite
  for (const value of ["${nobody}", "${a/b}", { $hash: 1 }]) {
    await assert.rejects(resolve(value, { a: {} }), Misunderstood);
  }
});
