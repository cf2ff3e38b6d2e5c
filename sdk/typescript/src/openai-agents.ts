// SPDX-License-Identifier: Apache-2.0
// OpenAI Agents: hand work to other agents from a tool or a native handoff, and serve an agent.
// Needs `@openai/agents` beside it.

import {
  Agent,
  type AgentInputItem,
  type CallModelInputFilter,
  type FunctionTool,
  type Model,
  type ModelRequest,
  type ModelResponse,
  RunContext,
  Runner,
  type Session,
  tool,
  Usage,
} from "@openai/agents";
import * as a from "./adapters/run.js";
import { expectedSchema, type Serving, served } from "./adapters/serving.js";
import type { Claim } from "./claims.js";
import type { Client } from "./client.js";
import type { Waiting } from "./handoffs.js";
import type { Worker } from "./worker.js";

export { currentClaim, currentRun, type Run, type Sending } from "./adapters/run.js";
export type { Serving } from "./adapters/serving.js";

// biome-ignore lint/suspicious/noExplicitAny: an agent's context and output are the program's
type Acting = Agent<any, any>;
// biome-ignore lint/suspicious/noExplicitAny: so that it fits into an agent of any context
type Made = FunctionTool<any, any, any>;

const WAITS = "tasuki_handoff";

/** A tool that hands a part of the work to another agent and returns its result. A lost claim comes
 * out of it and ends the run: it is no tool that failed. */
export function handoffTool(to: string, sending: a.Sending = {}): Made {
  const call = (task: string, key?: string, signal?: AbortSignal) =>
    a.ask({ to, task, key, signal }, sending);
  return made(a.toolName(to), sending.description ?? a.described(to), "task", call);
}

/** A tool that hands the work over and ends the turn, in an agent that is `stopping`. In a served
 * agent the task passes to the other one. Elsewhere the run ends, and the process may:
 * `resume(agent, run.history, client)` goes on with the result in a later one. */
export function transferTool(to: string, sending: a.Sending = {}): Made {
  const call = async (task: string, key?: string) => {
    if (await a.passOn({ to, task }, sending)) {
      return `The work passes to ${to} now. There is nothing left to do.`;
    }
    return JSON.stringify({ [WAITS]: await a.begun({ to, task, key }, sending) });
  };
  const name = a.toolName(to, a.TRANSFER);
  return made(name, sending.description ?? a.describedTransfer(to), "task", call);
}

/** A tool with which a served agent asks whoever the work is from. */
export function questionTool(): Made {
  return made(a.ASK_NAME, a.ASK_DESCRIPTION, "question", (text) => a.question(text));
}

/** An agent that works elsewhere, for `handoffs: […]`: its turn is done through the broker. What was
 * said before goes along as quoted data. */
export function remoteAgent(to: string, sending: a.Sending = {}): Agent {
  const handoffDescription = sending.description ?? a.describedTransfer(to);
  return new Agent({ name: to, model: new Remote(to, sending), handoffDescription });
}

/** The same agent, whose turn ends when it transfers its work. */
export function stopping<Of extends Acting>(agent: Of): Of {
  const names = agent.tools.map((one) => one.name);
  const stopAtToolNames = names.filter((one) => one.startsWith(a.TRANSFER));
  if (stopAtToolNames.length === 0 || agent.toolUseBehavior !== "run_llm_again") return agent;
  return agent.clone({ toolUseBehavior: { stopAtToolNames } }) as Of;
}

/** Goes on with a run that ended with a transfer, in whatever process: waits for the result, and
 * runs the agent with it. `items` is what `history` of that run was; it is JSON. */
export async function resume(
  agent: Acting,
  items: AgentInputItem[],
  client: Client,
  how: Waiting & { runner?: Runner } = {},
) {
  const found: AgentInputItem[] = [];
  let waits = 0;
  for (const item of items) {
    const id = waitsFor(item);
    if (id) waits += 1;
    const output = id && { type: "text", text: await a.outcome(id, client, how) };
    found.push(output ? ({ ...item, output } as AgentInputItem) : item);
  }
  if (waits === 0) throw new TypeError("this run does not wait for a handoff");
  const runner = how.runner ?? new Runner();
  return runner.run(stopping(agent), found, how.signal ? { signal: how.signal } : {});
}

export interface ServingAgent extends Serving {
  /** Runs the agent; a new one otherwise. */
  runner?: Runner;
  /** The program's own, for its tools. */
  context?: unknown;
  /** Makes the memory of a claim's run. */
  session?: (claim: Claim) => Session;
}

/** An agent as a worker: `serve(agent, "coder").run()`. Usage is reported; the expected output is the
 * output type; a tool that needs approval asks the sender for leave; words to the holder are read
 * with the next step. */
export function serve(agent: Acting, name: string, options: ServingAgent = {}): Worker {
  const { runner = new Runner(), context, session, ...settings } = options;
  const run = async (claim: Claim, prompt: string) => {
    const schema = expectedSchema(claim);
    const counted = new RunContext(context);
    const how = {
      context: counted,
      signal: claim.signal,
      callModelInputFilter: hearing(claim, runner.config.callModelInputFilter),
      ...(session ? { session: session(claim) } : {}),
    };
    let acting: Acting = stopping(agent);
    if (schema && acting.outputType === "text") {
      const outputType = { type: "json_schema", name: "expected_output", strict: false, schema };
      acting = acting.clone({ outputType: outputType as never });
    }
    try {
      let done = await runner.run(acting, prompt, how);
      while (done.interruptions.length > 0) {
        for (const one of done.interruptions) {
          const what = `May ${one.name} be called?`;
          if (await a.leave(what, { arguments: one.arguments ?? "" })) done.state.approve(one);
          else done.state.reject(one);
        }
        const { context: _, ...again } = how;
        done = await runner.run(acting, done.state, again);
      }
      return done.finalOutput;
    } finally {
      const { inputTokens: input_tokens, outputTokens: output_tokens } = counted.usage;
      const model = typeof agent.model === "string" && agent.model ? { model: agent.model } : {};
      claim.usage({ input_tokens, output_tokens, ...model });
    }
  };
  return served(run, name, settings);
}

/** Gives the model what was said to the holder meanwhile. */
function hearing(claim: Claim, theirs?: CallModelInputFilter): CallModelInputFilter {
  const heard: AgentInputItem[] = [];
  return async (given) => {
    for (const { text } of claim.messages()) {
      if (!text) continue;
      const content = `A message to you, from whom the work is: ${text}`;
      heard.push({ type: "message", role: "user", content });
    }
    const before = theirs ? await theirs(given) : given.modelData;
    return { ...before, input: [...before.input, ...heard] };
  };
}

/** Has the other agent say what a model would. */
class Remote implements Model {
  constructor(
    private readonly to: string,
    private readonly sending: a.Sending,
  ) {}

  async getResponse({ input, signal }: ModelRequest): Promise<ModelResponse> {
    const items: AgentInputItem[] =
      typeof input === "string" ? [{ role: "user", content: input }] : input;
    const said = items.map((it) => ({
      from: "role" in it ? it.role : String(it.type),
      said: words(it),
    }));
    const task = (said.findLast((one) => one.from === "user") ?? said.at(-1))?.said ?? "";
    const key = `turn-${said.length}`;
    const text = await a.ask({ to: this.to, task, key, said, signal }, this.sending);
    const content = [{ type: "output_text" as const, text }];
    return {
      output: [{ type: "message", role: "assistant", status: "completed", content }],
      usage: new Usage(),
    };
  }

  // biome-ignore lint/correctness/useYield: there is nothing to say piece by piece
  async *getStreamedResponse(): AsyncGenerator<never> {
    throw new TypeError(`what ${this.to} says comes whole: run this without streaming`);
  }
}

function words(item: AgentInputItem): string {
  const about = item as { content?: unknown; output?: unknown; arguments?: unknown };
  const content = about.content ?? about.output ?? about.arguments ?? "";
  const parts = Array.isArray(content) ? content : [content];
  const texts = parts.map((one) => (typeof one === "string" ? one : String(one?.text ?? "")));
  return texts.join(" ");
}

function waitsFor(item: AgentInputItem): string | undefined {
  if (item.type !== "function_call_result") return undefined;
  try {
    return (JSON.parse(words(item)) as { [WAITS]?: string })[WAITS];
  } catch {
    return undefined;
  }
}

function made<Only extends string>(
  name: string,
  description: string,
  only: Only,
  call: (said: string, key?: string, signal?: AbortSignal) => Promise<string>,
): Made {
  return tool({
    name,
    description,
    parameters: a.takes<string>(only),
    strict: true,
    // An exception ends the run, and is no text for the model: what may be text, is one already.
    errorFunction: null,
    execute: (given, _, details) =>
      call((given as Record<Only, string>)[only], details?.toolCall?.callId, details?.signal),
  });
}
