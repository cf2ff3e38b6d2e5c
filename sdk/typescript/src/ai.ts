// SPDX-License-Identifier: Apache-2.0
// The Vercel AI SDK: hand work to other agents from a tool, and serve an agent. Needs `ai` beside it.

import { type Agent, jsonSchema, type ModelMessage, type Tool, type ToolSet, tool } from "ai";
import * as a from "./adapters/run.js";
import { type Serving, served } from "./adapters/serving.js";
import type { Claim } from "./claims.js";
import type { Client } from "./client.js";
import { Permanent } from "./errors.js";
import type { Waiting } from "./handoffs.js";
import type { Worker } from "./worker.js";

export { currentClaim, currentRun, type Run, type Sending } from "./adapters/run.js";
export type { Serving } from "./adapters/serving.js";

// Tools of any kind, as the AI SDK's own types have them.
// biome-ignore lint/suspicious/noExplicitAny: an agent's options and outputs are the program's
type Acting = Pick<Agent<never, any, any, any>, "generate" | "tools">;
type Done = Awaited<ReturnType<Acting["generate"]>>;

/** What another process needs to go on with a run that handed its work over. It is JSON. */
export interface Kept {
  messages: ModelMessage[];
  waits: { toolCallId: string; toolName: string; handoff: string }[];
}

const TRANSFERS = Symbol.for("tasuki.transfers");

/** A tool that hands a part of the work to another agent and returns its result. With
 * `historyTokens`, so much of the conversation goes along as quoted data. */
export function handoffTool(to: string, sending: a.Sending = {}): Tool<{ task: string }, string> {
  return tool({
    description: sending.description ?? a.described(to),
    inputSchema: jsonSchema<{ task: string }>(a.takes("task")),
    execute: ({ task }, { toolCallId, abortSignal, messages }) => {
      const said = sending.historyTokens ? messages.map(plainly) : [];
      return a.ask({ to, task, key: toolCallId, said, signal: abortSignal }, sending);
    },
  });
}

/** A tool that hands the work over and ends the turn: nobody executes it. In a served agent the task
 * passes to the other one. Elsewhere `transferred` hands over, the process may end, and `resume`
 * goes on with the result in a later one. */
export function transferTool(to: string, sending: a.Sending = {}): Tool<{ task: string }, never> {
  const made = tool({
    description: sending.description ?? a.describedTransfer(to),
    inputSchema: jsonSchema<{ task: string }>(a.takes("task")),
  });
  return Object.assign(made, { [TRANSFERS]: { to, sending } }) as Tool<{ task: string }, never>;
}

/** A tool with which a served agent's model asks whoever the work is from. */
export function questionTool(): Tool<{ question: string }, string> {
  return tool({
    description: a.ASK_DESCRIPTION,
    inputSchema: jsonSchema<{ question: string }>(a.takes("question")),
    execute: ({ question }) => a.question(question),
  });
}

/** The tools of some agents, under the names that models read: `{ ...handoffs("fact-checker") }`. */
export function handoffs(...to: string[]): { [name: string]: Tool<{ task: string }, string> } {
  return Object.fromEntries(to.map((one) => [a.toolName(one), handoffTool(one)]));
}

/** The same, of tools that end the turn. */
export function transfers(...to: string[]): { [name: string]: Tool<{ task: string }, never> } {
  return Object.fromEntries(to.map((one) => [a.toolName(one, a.TRANSFER), transferTool(one)]));
}

/** Hands over what a run ended with, and returns what `resume` needs. `asked` is what the run was
 * given: its prompt, or its messages. */
export async function transferred(
  agent: Acting,
  asked: string | ModelMessage[],
  done: Done,
): Promise<Kept> {
  const waits: Kept["waits"] = [];
  for (const { call, to, sending, task } of calledTransfers(agent.tools, done)) {
    const handoff = await a.begun({ to, task, key: call.toolCallId }, sending);
    waits.push({ toolCallId: call.toolCallId, toolName: call.toolName, handoff });
  }
  return { messages: [...asMessages(asked), ...done.responseMessages], waits };
}

/** Goes on with a run that handed its work over, in whatever process: waits for the result, and has
 * the agent read it. */
export async function resume(
  agent: Acting,
  kept: Kept,
  client: Client,
  how: Waiting = {},
): Promise<Done> {
  if (kept.waits.length === 0) throw new TypeError("this run does not wait for a handoff");
  const content = [];
  for (const { toolCallId, toolName, handoff } of kept.waits) {
    const output = { type: "text" as const, value: await a.outcome(handoff, client, how) };
    content.push({ type: "tool-result" as const, toolCallId, toolName, output });
  }
  const messages: ModelMessage[] = [...kept.messages, { role: "tool", content }];
  return agent.generate({ messages, ...(how.signal ? { abortSignal: how.signal } : {}) });
}

/** An agent (a `ToolLoopAgent`) as a worker: `serve(agent, "writer").run()`. Usage is reported; the
 * run ends when the claim is lost; a tool that needs approval asks the sender for leave. */
export function serve(agent: Acting, name: string, options: Serving = {}): Worker {
  return served((claim, prompt) => work(agent, claim, prompt), name, options);
}

async function work(agent: Acting, claim: Claim, prompt: string): Promise<unknown> {
  const messages = asMessages(prompt);
  for (;;) {
    const done = await agent.generate({
      messages,
      abortSignal: claim.signal,
      onStepEnd: ({ usage, response }) =>
        claim.usage({
          input_tokens: usage.inputTokens ?? 0,
          output_tokens: usage.outputTokens ?? 0,
          model: response.modelId,
        }),
    });
    const passes = calledTransfers(agent.tools, done);
    for (const { to, sending, task } of passes) await a.passOn({ to, task }, sending);
    if (passes.length > 0) return { type: "handed_on", to: passes.map(({ to }) => to).join(", ") };
    messages.push(...done.responseMessages);
    const decisions = [];
    for (const part of done.content) {
      if (part.type !== "tool-approval-request" || part.isAutomatic) continue;
      const { toolName, input } = part.toolCall;
      const granted = await a.leave(`May ${toolName} be called?`, { arguments: input });
      decisions.push({
        type: "tool-approval-response" as const,
        approvalId: part.approvalId,
        approved: granted,
        ...(granted ? {} : { reason: "The sender did not allow it." }),
      });
    }
    if (decisions.length > 0) {
      messages.push({ role: "tool", content: decisions });
      continue;
    }
    if (done.finishReason === "tool-calls") {
      const open = openCalls(done).map((call) => call.toolName);
      throw open.length > 0
        ? new Permanent(`nobody executes the tools ${open.join(", ")}`, {
            hint: "serve an agent whose tools have an `execute`",
          })
        : new Permanent(`it had no answer after ${done.steps.length} steps`, {
            hint: "let the agent take more steps: `stopWhen`",
          });
    }
    return done.output;
  }
}

/** The calls of the last step that nobody has executed. */
function openCalls(done: Done) {
  const answered = new Set(done.toolResults.map((one) => one.toolCallId));
  return done.toolCalls.filter((call) => !answered.has(call.toolCallId) && !call.invalid);
}

function calledTransfers(tools: ToolSet, done: Done) {
  return openCalls(done).flatMap((call) => {
    const made = tools[call.toolName] as { [TRANSFERS]?: { to: string; sending: a.Sending } };
    const transfer = made?.[TRANSFERS];
    const task = String((call.input as { task?: unknown }).task);
    return transfer ? [{ call, ...transfer, task }] : [];
  });
}

function asMessages(asked: string | ModelMessage[]): ModelMessage[] {
  return typeof asked === "string" ? [{ role: "user", content: asked }] : [...asked];
}

function plainly({ role, content }: ModelMessage) {
  return { from: role, said: typeof content === "string" ? content : JSON.stringify(content) };
}
