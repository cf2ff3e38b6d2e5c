// SPDX-License-Identifier: Apache-2.0
// One turn of an agent of the gateway, in a session of its own for each attempt at some work.

import type { Claim } from "tasuki";

const POLL_MS = 10_000;
const STARTS_MS = 500;

/** What the gateway does for plugins, as far as it matters here. */
export interface Gateway {
  run(given: {
    sessionKey: string;
    message: string;
    deliver: boolean;
    idempotencyKey: string;
  }): Promise<{ runId: string; sessionKey?: string }>;
  waitForRun(given: { runId: string; timeoutMs: number }): Promise<{
    status: string;
    error?: string;
  }>;
  getSessionMessages(given: {
    sessionKey: string;
    limit: number;
  }): Promise<{ messages: unknown[] }>;
  deleteSession(given: { sessionKey: string }): Promise<void>;
}

interface Message {
  role?: string;
  content?: string | { type?: string; text?: string }[];
  model?: string;
  usage?: { input?: number; output?: number };
}

/** Has an agent read something, and returns its last word. */
export async function turn(
  gateway: Gateway,
  session: string,
  claim: Claim,
  prompt: string,
): Promise<string> {
  const { runId, sessionKey = session } = await begun(gateway, session, claim, prompt);
  try {
    for (;;) {
      const { status, error } = await gateway.waitForRun({ runId, timeoutMs: POLL_MS });
      claim.check();
      if (status === "error") throw new Error(error ?? "the agent failed");
      if (status === "ok") break;
    }
    const { messages } = await gateway.getSessionMessages({ sessionKey, limit: 100 });
    const answers = (messages as Message[]).filter(({ role }) => role === "assistant");
    for (const { usage, model } of answers) {
      if (!usage) continue;
      const { input = 0, output = 0 } = usage;
      claim.usage({ input_tokens: input, output_tokens: output, ...(model ? { model } : {}) });
    }
    return textOf(answers.at(-1));
  } catch (error) {
    // Whoever has lost the claim must not go on: this ends what the session does.
    if (claim.lost) await gateway.deleteSession({ sessionKey }).catch(() => {});
    throw error;
  }
}

/** A gateway that has just started says no for some time. */
async function begun(gateway: Gateway, sessionKey: string, claim: Claim, message: string) {
  for (;;) {
    try {
      const idempotencyKey = claim.claimId;
      return await gateway.run({ sessionKey, message, deliver: false, idempotencyKey });
    } catch (error) {
      claim.check();
      if (!/during gateway startup|unavailable/i.test((error as Error).message)) throw error;
      await new Promise((resolve) => setTimeout(resolve, STARTS_MS));
    }
  }
}

function textOf(message: Message | undefined): string {
  const { content = "" } = message ?? {};
  if (typeof content === "string") return content;
  const texts = content.filter(({ type }) => type === "text").map(({ text }) => text);
  return texts.join("\n");
}
