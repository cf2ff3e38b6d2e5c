// SPDX-License-Identifier: Apache-2.0
// LangGraph.js: hand work to other agents from a graph, and serve a graph as an agent. Needs
// `@langchain/langgraph` and `@langchain/core` beside it.

import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { type StructuredToolInterface, tool } from "@langchain/core/tools";
import { Command, type Interrupt, interrupt, MemorySaver } from "@langchain/langgraph";
import * as a from "./adapters/run.js";
import { type Serving, served } from "./adapters/serving.js";
import type { Claim } from "./claims.js";
import type { Client } from "./client.js";
import type { Waiting } from "./handoffs.js";
import { plain } from "./json.js";
import type { Worker } from "./worker.js";

export { currentClaim, currentRun, type Run, type Sending } from "./adapters/run.js";
export type { Serving } from "./adapters/serving.js";

const WAITS = "tasuki_handoff";
const PASSED = "tasuki_passed";

/** A compiled graph, as far as it matters here. */
export interface Graph {
  checkpointer?: unknown;
  channels: object;
  // biome-ignore lint/suspicious/noExplicitAny: its state is the program's
  invoke(input: any, config?: any): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  getState(config: any): Promise<{ next: unknown[]; tasks: { interrupts?: Interrupt[] }[] }>;
}

/** A tool that hands a part of the work to another agent and returns its result. The id of the tool
 * call names it, so that a node that runs again creates nothing twice. */
export function handoffTool(to: string, sending: a.Sending = {}): StructuredToolInterface {
  const call = ({ task }: { task: string }, config: Called) =>
    a.ask({ to, task, key: config.toolCall?.id, signal: config.signal }, sending);
  return made(call, a.toolName(to), sending.description ?? a.described(to), "task");
}

/** A tool that hands the work over and ends the turn. In a served graph the task passes to the other
 * agent when the graph stops. Elsewhere the graph waits by `interrupt`: the process may end, and
 * `resume` goes on with the result in a later one. The graph needs a checkpointer then. */
export function transferTool(to: string, sending: a.Sending = {}): StructuredToolInterface {
  const call = async ({ task }: { task: string }, config: Called) => {
    if (await a.passOn({ to, task }, sending)) return String(interrupt({ [PASSED]: to }));
    const key = `${config.configurable?.thread_id}:${config.toolCall?.id}`;
    const id = await a.begun({ to, task, key }, sending);
    return String(interrupt({ [WAITS]: id }));
  };
  const name = a.toolName(to, a.TRANSFER);
  return made(call, name, sending.description ?? a.describedTransfer(to), "task");
}

/** A tool with which a served graph's model asks whoever the work is from. */
export function questionTool(): StructuredToolInterface {
  const call = ({ question }: { question: string }) => a.question(question);
  return made(call, a.ASK_NAME, a.ASK_DESCRIPTION, "question");
}

/** A node that has another agent answer the conversation's last word, and waits by `interrupt`: the
 * process may end, and `resume` goes on with the result in a later one. What was said before goes
 * along as quoted data. A node runs twice around an interrupt; its key makes that one handoff. */
export function handoffNode(to: string, sending: a.Sending = {}) {
  return async ({ messages }: { messages: BaseMessage[] }, config: RunnableConfig) => {
    const key = `${config.configurable?.thread_id}:${messages.length}`;
    const said = messages.map((one) => ({ from: one.getType(), said: textOf(one) }));
    const task = said.pop()?.said ?? "";
    const id = await a.begun({ to, task, key, said }, sending);
    return { messages: [new AIMessage(String(interrupt({ [WAITS]: id })))] };
  };
}

/** Goes on with a graph that waits for handoffs, in whatever process: waits for their results and
 * gives them to the graph. Returns what the graph returns. */
export async function resume<Of extends Graph>(
  graph: Of,
  config: RunnableConfig,
  client: Client,
  how: Waiting = {},
): Promise<Awaited<ReturnType<Of["invoke"]>>> {
  const state = await graph.getState(config);
  const waits = state.tasks
    .flatMap((task) => task.interrupts ?? [])
    .filter((it) => asked(it, WAITS));
  if (waits.length === 0) throw new TypeError("this graph does not wait for a handoff");
  const found: { [id: string]: string } = {};
  for (const one of waits) {
    found[String(one.id)] = await a.outcome(String(asked(one, WAITS)), client, how);
  }
  return graph.invoke(new Command({ resume: found }), config);
}

/** A compiled graph as a worker: `serve(graph, "planner").run()`. The thread is the handoff, so with
 * a checkpointer that lasts a retry goes on where the last attempt was. What the graph asks by
 * `interrupt` is asked of the sender, or of a person. State that the graph has a place for
 * (`intent`, `constraints`, `payload`, `ask`) is filled in from the envelope. */
export function serve(graph: Graph, name: string, options: Serving = {}): Worker {
  const kept = graph.checkpointer ? graph : withMemory(graph);
  return served((claim, prompt) => work(kept, claim, prompt), name, options);
}

async function work(graph: Graph, claim: Claim, prompt: string): Promise<unknown> {
  const config = {
    configurable: { thread_id: claim.handoffId },
    callbacks: [counts(claim)],
    signal: claim.signal,
  };
  const { intent, ask, payload } = claim.envelope;
  const constraints = claim.constraints.map((one) => one.text);
  const parts = Object.entries({ intent, ask, payload, constraints });
  const known = parts.filter(([name]) => name in graph.channels);
  let given: unknown = { messages: [new HumanMessage(prompt)], ...Object.fromEntries(known) };
  if ((await graph.getState(config)).next.length > 0) given = null;
  for (;;) {
    const state = await graph.invoke(given, config);
    const open = (state?.__interrupt__ ?? []) as Interrupt[];
    const passed = open.map((one) => asked(one, PASSED)).filter(Boolean);
    if (passed.length > 0) return { type: "handed_on", to: passed.join(", ") };
    if (open.length === 0) return last(state);
    const found: { [id: string]: unknown } = {};
    for (const one of open) found[String(one.id)] = await answer(claim, one);
    given = new Command({ resume: found });
  }
}

async function answer(claim: Claim, one: Interrupt): Promise<string> {
  const waits = asked(one, WAITS);
  if (waits) return a.outcome(String(waits), claim.client);
  return a.question(typeof one.value === "string" ? one.value : JSON.stringify(one.value));
}

/** Counts what every model of the graph used, also where its message is not kept. */
function counts(claim: Claim): BaseCallbackHandler {
  return BaseCallbackHandler.fromMethods({
    handleLLMEnd({ generations }) {
      for (const one of generations.flat()) {
        const { message } = one as { message?: AIMessage };
        const used = message?.usage_metadata;
        if (!used) continue;
        const model = message?.response_metadata?.model_name as string | undefined;
        const { input_tokens, output_tokens } = used;
        claim.usage({ input_tokens, output_tokens, ...(model ? { model } : {}) });
      }
    },
  });
}

/** The same graph with a memory, without which it can neither wait nor be asked where it is. */
function withMemory(graph: Graph): Graph {
  const copy = Object.assign(Object.create(Object.getPrototypeOf(graph)), graph) as Graph;
  copy.checkpointer = new MemorySaver();
  return copy;
}

function asked(one: Interrupt, what: string): unknown {
  return (one.value as { [name: string]: unknown } | null | undefined)?.[what];
}

function textOf({ content }: BaseMessage): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

function last(state: { messages?: BaseMessage[] } | undefined): unknown {
  const message = state?.messages?.at(-1);
  return message ? textOf(message) : plain(state);
}

type Called = RunnableConfig & { toolCall?: { id?: string } };

function made<Name extends string>(
  call: (input: Record<Name, string>, config: Called) => Promise<string>,
  name: string,
  description: string,
  only: Name,
): StructuredToolInterface {
  const run = (input: unknown, config: unknown) =>
    call(input as Record<Name, string>, config as Called);
  return tool(run, { name, description, schema: a.takes(only) });
}
