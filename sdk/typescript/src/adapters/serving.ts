// SPDX-License-Identifier: Apache-2.0
// How a framework's agent becomes a worker: what it gets to read, what its result is made of, and of
// which class its errors are. `run.ts` is the other half.

import type { Claim } from "../claims.js";
import * as errors from "../errors.js";
import { type FailureClass, failureClass } from "../report.js";
import { Worker, type WorkerSettings } from "../worker.js";
import { Run, within } from "./run.js";

/** What model providers call their errors. */
const PASSES =
  /RateLimit|Timeout|TimedOut|InternalServer|ServiceUnavailable|APIConnection|Overloaded|Unavailable/;
const STAYS =
  /Authentication|PermissionDenied|BadRequest|InvalidRequest|InvalidPrompt|NoSuch|LoadAPIKey|UnprocessableEntity|ContextLength|ContentFilter|MaxTurns|Recursion|ModelBehavior|UserError|Guardrail|TypeValidation/;
const MISTAKES = [TypeError, RangeError, ReferenceError, SyntaxError, URIError];
const CAUSES_MAX = 16;

/** How a framework's agent serves: as `worker` has it. */
export interface Serving extends Omit<WorkerSettings, "agent"> {
  /** How many tokens of the envelope its model gets to read; the payload comes on top. */
  maxTokens?: number;
}

/** What a model reads of a claim: the envelope's prompt, in which the payload is quoted as data, and
 * what was asked and answered before. */
export async function brief(claim: Claim, maxTokens?: number): Promise<string> {
  const { prompt } = await claim.prompt(maxTokens === undefined ? {} : { max_tokens: maxTokens });
  const asked = claim.questions.filter((one) => one.answered_at);
  const known = asked.map((one) => {
    const answer = typeof one.answer === "string" ? one.answer : JSON.stringify(one.answer);
    return `You asked: ${one.text}\nThe answer: ${answer}`;
  });
  return [prompt, ...known].join("\n\n");
}

/** The schema that the result must fit, for frameworks that can hold their model to one. */
export function expectedSchema(claim: Claim): { type: "object" } | undefined {
  const schema = claim.envelope.expected_output?.schema as { type?: unknown } | undefined;
  return schema?.type === "object" ? (schema as { type: "object" }) : undefined;
}

/** A text that is the object that was asked for is that object. */
function asExpected(claim: Claim, value: unknown): unknown {
  if (typeof value !== "string" || !expectedSchema(claim)) return value;
  try {
    const found = JSON.parse(value.trim().replace(/^```\w*\n(.*)\n```$/s, "$1"));
    return typeof found === "object" && found !== null && !Array.isArray(found) ? found : value;
  } catch {
    return value;
  }
}

/** A worker around a framework's run, which gets the claim and what its model reads of it. */
export function served(
  run: (claim: Claim, prompt: string) => Promise<unknown>,
  agent: string,
  { maxTokens, classify, ...settings }: Serving,
): Worker {
  const kind = (error: unknown) => classify?.(error) ?? classified(error);
  return new Worker(
    async (claim: Claim) => {
      const held = new Run(claim);
      let result: unknown;
      try {
        const prompt = await brief(claim, maxTokens);
        result = await within(held, () => run(claim, prompt));
      } catch (error) {
        // However a framework wraps it: a lost claim is no failure of the work.
        for (const cause of chain(error)) if (cause instanceof errors.LeaseLost) throw cause;
        claim.check();
        throw error;
      }
      if (claim.reported) return;
      await claim.complete(asExpected(claim, result), {
        action: held.gaps.length > 0 ? "needs_review" : "completed",
        gaps: held.gaps,
        follow_ups: held.passed,
      });
    },
    { ...settings, agent, classify: kind },
  );
}

/** An exception and what led to it, as far as frameworks keep it. */
export function* chain(error: unknown): Generator<unknown> {
  let next = error;
  for (let count = 0; next && count < CAUSES_MAX; count += 1) {
    yield next;
    const about = next as { cause?: unknown; lastError?: unknown; error?: unknown };
    next = about.cause ?? about.lastError ?? (about.error instanceof Error && about.error);
  }
}

/** Of which class an error of a framework or of its model provider is, `undefined` if the SDK is to
 * say. What the one below says counts, not what it was wrapped in. */
export function classified(error: unknown): FailureClass | undefined {
  for (const cause of chain(error)) {
    // A call below took too long: it goes on, and starting it again would not help.
    if (cause instanceof errors.TimedOut && cause.handoff) return "permanent";
    const kind = failureClass(cause);
    // A mistake of the program's own is not told apart here: what wraps it may say more.
    const mistake = kind === "permanent" && MISTAKES.some((it) => cause instanceof it);
    if (kind !== "unknown" && !mistake) return kind;
    const name = (cause as { name?: unknown }).name;
    if (typeof name !== "string") continue;
    if (PASSES.test(name)) return "retryable";
    if (STAYS.test(name)) return "permanent";
  }
  return undefined;
}
