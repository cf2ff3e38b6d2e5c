// SPDX-License-Identifier: Apache-2.0
// Runs the conformance suite (`tasuki-tools conformance suite`) against a server, through this SDK.
// Needs the package `ajv` beside this one, which checks JSON Schemas.

import type { Settings } from "../wire.js";
import { type Answer, Caller } from "./calls.js";
import { type Fits, findings, shown } from "./matcher.js";
import { MISSING, Misunderstood, point, resolve, type Scope, textWith } from "./values.js";

/** How many checks are under way at a time. Most of them wait most of the time. */
const AT_A_TIME = 8;
const PAUSE_MS = 50;
const STEP = new Set("do path query body raw at_once within_ms value set expect save".split(" "));
/** RFC 3339. */
const TIME =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

interface Step {
  do?: string;
  path?: object;
  query?: object;
  body?: unknown;
  raw?: string;
  at_once?: number;
  within_ms?: number;
  value?: unknown;
  set?: { [name: string]: unknown };
  expect?: { [name: string]: unknown };
  save?: { [name: string]: string };
}

export interface Check {
  id: string;
  level: string;
  title: string;
  reason: string;
  rule: string;
  steps: Step[];
}

export interface Suite {
  suite: string;
  protocol: number;
  operations: { [name: string]: { method: string; path: string } };
  schemas: { [name: string]: object };
  checks: Check[];
}

export interface Outcome {
  id: string;
  level: string;
  title: string;
  rule: string;
  ok: boolean;
  /** Where it ended, and why. */
  failure?: { step: number; request: string | undefined; findings: string[]; came?: string };
}

export interface Report {
  target: string;
  suite: string;
  protocol: number;
  ok: boolean;
  passed: number;
  failed: number;
  checks: Outcome[];
  /** Calls by the SDK's own methods, and calls by its way of sending requests. */
  typed_calls: number;
  low_level_calls: number;
  typed_operations: string[];
  low_level_operations: string[];
}

class Failed extends Error {
  constructor(
    readonly found: string[],
    readonly came?: string,
  ) {
    super(found.join("; "));
  }
}

/** Runs the checks of some levels, or of all. */
export async function run(
  suite: Suite,
  target: Settings & { url: string },
  only: { levels?: string[]; ids?: (id: string) => boolean } = {},
): Promise<Report> {
  const caller = new Caller(target);
  const fits = await validator(suite);
  const name = crypto.randomUUID().slice(0, 8);
  const chosen = suite.checks.filter(
    (it) => (!only.levels?.length || only.levels.includes(it.level)) && (only.ids?.(it.id) ?? true),
  );
  const checks: Outcome[] = new Array(chosen.length);
  let next = 0;
  const lane = async () => {
    for (let at = next++; at < chosen.length; at = next++) {
      const one = new Run(suite, caller, fits, `${name}-${at}`);
      checks[at] = await one.check(chosen[at] as Check);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
  const passed = checks.filter((it) => it.ok).length;
  return {
    target: target.url,
    suite: suite.suite,
    protocol: suite.protocol,
    ok: passed === checks.length && checks.length > 0,
    passed,
    failed: checks.length - passed,
    checks,
    typed_calls: caller.typedCalls,
    low_level_calls: caller.lowCalls,
    typed_operations: [...caller.typed].sort(),
    low_level_operations: [...caller.low].filter((it) => !caller.typed.has(it)).sort(),
  };
}

/** The report in the Test Anything Protocol, version 14. */
export function tap(report: Report): string {
  const lines = ["TAP version 14", `1..${report.checks.length}`];
  report.checks.forEach((check, at) => {
    const title = `${check.id}: ${check.title}`.split(/\s+/).join(" ");
    const safe = title.replaceAll("\\", "\\\\").replaceAll("#", "\\#");
    lines.push(`${check.ok ? "" : "not "}ok ${at + 1} - ${safe}`);
    if (check.failure) {
      lines.push("  ---", `  rule: ${JSON.stringify(check.rule)}`);
      for (const [name, value] of Object.entries(check.failure)) {
        lines.push(`  ${name}: ${JSON.stringify(value)}`);
      }
      lines.push("  ...");
    }
  });
  const { typed_calls: typed, low_level_calls: low } = report;
  return [...lines, `# calls by methods of the SDK: ${typed}, other: ${low}`, ""].join("\n");
}

async function validator(suite: Suite): Promise<Fits> {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
  ajv.addFormat("date-time", TIME);
  for (const [name, schema] of Object.entries(suite.schemas))
    ajv.addSchema(schema, `suite:${name}`);
  return (name, value) => {
    const check = ajv.getSchema(`suite:${name}`);
    if (!check) throw new Misunderstood(`there is no schema ${name}`);
    if (check(value)) return [];
    return (check.errors ?? []).map(
      (it) => `${it.instancePath}: does not fit ${name}: ${it.message}`,
    );
  };
}

class Run {
  readonly #scope: Scope;

  constructor(
    private readonly suite: Suite,
    private readonly caller: Caller,
    private readonly fits: Fits,
    unique: string,
  ) {
    this.#scope = { u: unique };
  }

  async check(check: Check): Promise<Outcome> {
    const { id, level, title, rule } = check;
    for (const [at, step] of check.steps.entries()) {
      try {
        await this.#step(step);
      } catch (error) {
        const found = error instanceof Failed ? error.found : [shown(String(error))];
        const failure = { step: at + 1, request: step.do, findings: found };
        const came = error instanceof Failed && error.came ? { came: error.came } : {};
        return { id, level, title, rule, ok: false, failure: { ...failure, ...came } };
      }
    }
    return { id, level, title, rule, ok: true };
  }

  async #step(step: Step): Promise<void> {
    const unknown = Object.keys(step).filter((name) => !STEP.has(name));
    if (unknown.length > 0) throw new Misunderstood(`there is no ${unknown} in a step`);
    for (const [name, value] of Object.entries(step.set ?? {})) {
      this.#scope[name] = await resolve(value, this.#scope);
    }
    let body: unknown;
    if (step.do !== undefined) body = await this.#untilExpected(step);
    else if ("value" in step) {
      body = await resolve(step.value, this.#scope);
      await this.#expect(step, { status: 0, body });
    } else return;
    for (const [name, pointer] of Object.entries(step.save ?? {})) {
      const found = point(body, textWith(pointer, this.#scope));
      if (found === MISSING)
        throw new Failed([`${pointer}: nothing is there, and it is needed as ${name}`]);
      this.#scope[name] = found;
    }
  }

  async #untilExpected(step: Step): Promise<unknown> {
    const end = performance.now() + (step.within_ms ?? 0);
    for (;;) {
      const answer =
        step.at_once === undefined ? await this.#call(step, this.#scope) : await this.#atOnce(step);
      try {
        await this.#expect(step, answer);
        return answer.body;
      } catch (error) {
        if (!(error instanceof Failed) || performance.now() >= end) throw error;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }

  async #atOnce(step: Step): Promise<Answer> {
    const calls = Array.from({ length: step.at_once ?? 0 }, (_, n) =>
      this.#call(step, { ...this.#scope, n }),
    );
    const answers = await Promise.all(calls);
    answers.sort((a, b) => String(a.status).localeCompare(String(b.status)));
    return { status: 0, body: answers };
  }

  async #call(step: Step, scope: Scope): Promise<Answer> {
    const operation = this.suite.operations[step.do ?? ""];
    if (!operation) throw new Misunderstood(`there is no operation ${step.do}`);
    const path = (await resolve(step.path ?? {}, scope)) as { [name: string]: unknown };
    return this.caller.call(step.do ?? "", operation, {
      path: Object.fromEntries(Object.entries(path).map(([name, it]) => [name, String(it)])),
      query: (await resolve(step.query ?? {}, scope)) as { [name: string]: unknown },
      body:
        "body" in step
          ? ((await resolve(step.body, scope)) as { [name: string]: unknown })
          : undefined,
      raw: step.raw === undefined ? undefined : textWith(step.raw, scope),
    });
  }

  async #expect(step: Step, answer: Answer): Promise<void> {
    const expected = (await resolve(step.expect ?? {}, this.#scope)) as { [name: string]: unknown };
    const found = findings(expected, answer.status, answer.body, this.fits);
    if (found.length > 0) throw new Failed(found, shown(answer.body));
  }
}
