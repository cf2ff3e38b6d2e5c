// SPDX-License-Identifier: Apache-2.0
// What only the adapters of one framework have. What all have is held by the suite of
// `interop/frameworks`, which plays their programs in `test/frameworks`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import {
  interrupt,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from "@langchain/langgraph";
import {
  Agent,
  type Model as AgentsModel,
  tool as agentsTool,
  type ModelRequest,
  Runner,
  Usage,
} from "@openai/agents";
import { jsonSchema, ToolLoopAgent, tool } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { quoted, toolName } from "../src/adapters/run.js";
import { classified } from "../src/adapters/serving.js";
import * as forAi from "../src/ai.js";
import { Client, LeaseLost, type Worker } from "../src/index.js";
import * as forGraphs from "../src/langgraph.js";
import * as forAgents from "../src/openai-agents.js";
import { broker, names } from "./broker.js";

const { url } = await broker();
const client = new Client({ url, agent: "lead" });
process.env.TASUKI_URL = url;

/** Serves while something else happens. */
async function during<T>(worker: Worker, work: Promise<T>): Promise<T> {
  const serving = worker.run();
  try {
    return await work;
  } finally {
    worker.stop();
    await serving;
  }
}

/** Answers the question that a handoff waits with. */
async function answers(id: string, said: unknown): Promise<string> {
  for (;;) {
    const { questions } = await client.questions.list();
    const one = questions.find((it) => it.handoff_id === id);
    if (!one) {
      await client.wait([id], { until: "settled" }, { timeoutMs: 50 });
      continue;
    }
    await client.questions.answer(id, { answer: said });
    return String(one.text);
  }
}

const USAGE = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

/** A model that calls a tool and then repeats what it returned. */
function calling(toolName: string, input: object) {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const said = prompt.flatMap((it) => (it.role === "tool" ? it.content : []));
      const last = said.findLast((it) => it.type === "tool-result")?.output as
        | { value?: unknown; reason?: string }
        | undefined;
      const more = { usage: USAGE, warnings: [] };
      if (last) {
        const text = `It says ${last.value ?? last.reason}`;
        const finishReason = { unified: "stop" as const, raw: undefined };
        return { content: [{ type: "text", text }], finishReason, ...more };
      }
      const call = { toolCallId: "1", toolName, input: JSON.stringify(input) };
      const finishReason = { unified: "tool-calls" as const, raw: undefined };
      return { content: [{ type: "tool-call", ...call }], finishReason, ...more };
    },
  });
}

for (const granted of [true, false]) {
  test(`AI SDK: a tool that needs approval is ${granted ? "" : "not "}called by the sender's leave`, async () => {
    const name = names();
    const pushed: string[] = [];
    const push = tool({
      inputSchema: jsonSchema<{ branch: string }>({ type: "object" }),
      execute: ({ branch }) => pushed.push(branch) && "pushed",
    });
    const model = calling("push", { branch: "main" });
    const agent = new ToolLoopAgent({
      model,
      tools: { push },
      toolApproval: { push: "user-approval" },
    });
    const handoff = await client.handoff({ to: name("pusher"), intent: "push it" });
    const [text, result] = await during(
      forAi.serve(agent, name("pusher"), { client }),
      Promise.all([answers(handoff.id, { granted }), handoff.result()]),
    );
    assert.match(text, /May push be called/);
    assert.deepEqual(pushed, granted ? ["main"] : []);
    assert.match(
      String((result.payload as { text?: string }).text),
      granted ? /pushed/ : /It says/,
    );
  });
}

test("AI SDK: a tool that nobody executes is a failure with a hint, once", async () => {
  const name = names();
  const open = tool({ inputSchema: jsonSchema({ type: "object" }) });
  const agent = new ToolLoopAgent({ model: calling("open", {}), tools: { open } });
  const handoff = await client.handoff({ to: name("one"), intent: "x" });
  const worker = forAi.serve(agent, name("one"), { client });
  await assert.rejects(during(worker, handoff.result()), /nobody executes the tools open/);
  assert.equal((await handoff.status()).attempts.length, 1);
});

test("AI SDK: a text that is the object that was asked for is that object", async () => {
  const name = names();
  const model = new MockLanguageModelV4({
    doGenerate: {
      content: [{ type: "text", text: '```json\n{"type": "verdict", "good": true}\n```' }],
      finishReason: { unified: "stop", raw: undefined },
      usage: USAGE,
      warnings: [],
    },
  });
  const handoff = await client.handoff({
    to: name("judge"),
    intent: "judge",
    expected_output: { schema: { type: "object", required: ["good"] } },
  });
  const worker = forAi.serve(new ToolLoopAgent({ model }), name("judge"), { client });
  assert.equal((await during(worker, handoff.result())).payload.good, true);
});

test("LangGraph.js: a node waits without blocking, is one handoff, and quotes the conversation", async () => {
  const name = names();
  const built = () =>
    new StateGraph(MessagesAnnotation)
      .addNode("bob", forGraphs.handoffNode(name("bob"), { client, historyTokens: 5 }))
      .addEdge(START, "bob")
      .compile({ checkpointer: new MemorySaver() });
  const graph = built();
  const thread = { configurable: { thread_id: name("thread") } };
  const said = ["x".repeat(99), "Be quick.", "Do it."].map((it) => new HumanMessage(it));
  await graph.invoke({ messages: said }, thread);
  const claim = await client.claim({ agent: name("bob") });
  const told = claim.payload.conversation.map((one: { said: string }) => one.said);
  assert.match(told[0], /1 earlier messages are left out/);
  assert.deepEqual(told.slice(1), ["Be quick."]);
  await claim.complete("Done.");
  const { messages } = await forGraphs.resume(graph, thread, client);
  assert.equal((messages as BaseMessage[]).at(-1)?.content, "Done.");
  const { handoffs } = await client.handoffs.list({ to_agent: name("bob") });
  assert.equal(handoffs.length, 1);
  await assert.rejects(forGraphs.resume(graph, thread, client), /does not wait for a handoff/);
});

test("LangGraph.js: what a graph asks by interrupt is asked of the sender", async () => {
  const name = names();
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("decide", () => ({ messages: [new HumanMessage(`With ${interrupt("Which?")}.`)] }))
    .addEdge(START, "decide")
    .compile();
  const handoff = await client.handoff({ to: name("decider"), intent: "decide" });
  const [text, result] = await during(
    forGraphs.serve(graph, name("decider"), { client }),
    Promise.all([answers(handoff.id, "PostgreSQL"), handoff.result()]),
  );
  assert.equal(text, "Which?");
  assert.equal(result.payload.text, "With PostgreSQL.");
  assert.equal(graph.checkpointer, undefined, "the program's own graph is as it was");
});

test("LangGraph.js: a retry goes on from the last checkpoint", async () => {
  const name = names();
  const ran: string[] = [];
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("first", () => {
      ran.push("first");
      return {};
    })
    .addNode("second", () => {
      ran.push("second");
      if (ran.length === 2) throw Object.assign(new Error("busy"), { status: 529 });
      return { messages: [new HumanMessage("Done.")] };
    })
    .addEdge(START, "first")
    .addEdge("first", "second")
    .compile({ checkpointer: new MemorySaver() });
  const terms = { backoff_ms: 50, attempts: 3 };
  const handoff = await client.handoff({ to: name("retrier"), intent: "try", terms });
  const result = await during(
    forGraphs.serve(graph, name("retrier"), { client }),
    handoff.result(),
  );
  assert.equal(result.payload.text, "Done.");
  assert.deepEqual(ran, ["first", "second", "second"]);
});

/** A model that calls a tool, and then says what came of it. */
function saying(call: string, input: object): AgentsModel {
  return {
    async getResponse({ input: heard }: ModelRequest) {
      const items = typeof heard === "string" ? [] : heard;
      const done = items.findLast((it) => it.type === "function_call_result");
      const usage = new Usage();
      if (!done) {
        const said = { type: "function_call" as const, callId: "1", name: call };
        return { output: [{ ...said, arguments: JSON.stringify(input) }], usage };
      }
      const text = `It says ${JSON.stringify((done as { output: unknown }).output)}`;
      const content = [{ type: "output_text" as const, text }];
      const said = { type: "message" as const, role: "assistant" as const, content };
      return { output: [{ ...said, status: "completed" }], usage };
    },
    getStreamedResponse: () => assert.fail("it does not stream"),
  };
}

const runner = new Runner({ tracingDisabled: true });

test("OpenAI Agents JS: a native handoff goes to an agent that works elsewhere", async () => {
  const name = names();
  const expert = forAgents.remoteAgent(name("expert"));
  const model = saying(toolName(name("expert"), "transfer_to"), {});
  const triage = new Agent({ name: "triage", model, handoffs: [expert] });
  const handoff = await client.handoff({ to: name("triage"), intent: "Ask the expert." });
  const answer = async () => {
    const claim = await client.claim({ agent: name("expert") });
    await claim.complete("So.");
    return claim;
  };
  const [result, claim] = await during(
    forAgents.serve(triage, name("triage"), { client, runner }),
    Promise.all([handoff.result(), answer()]),
  );
  assert.equal(result.payload.text, "So.");
  assert.equal(claim.intent, "Ask the expert.");
  assert.ok(claim.payload.conversation.length > 0);
});

test("OpenAI Agents JS: a tool that needs approval asks the sender for leave", async () => {
  const name = names();
  const pushed: string[] = [];
  const push = agentsTool({
    name: "push",
    description: "Pushes.",
    parameters: {
      type: "object",
      properties: { branch: { type: "string" } },
      required: ["branch"],
      additionalProperties: false,
    },
    strict: true,
    needsApproval: true,
    execute: (given) => pushed.push((given as { branch: string }).branch) && "pushed",
  });
  const agent = new Agent({ name: "a", model: saying("push", { branch: "main" }), tools: [push] });
  const handoff = await client.handoff({ to: name("pusher"), intent: "push it" });
  const [text, result] = await during(
    forAgents.serve(agent, name("pusher"), { client, runner }),
    Promise.all([answers(handoff.id, { granted: true }), handoff.result()]),
  );
  assert.match(text, /May push be called/);
  assert.match(String(result.payload.text), /pushed/);
  assert.deepEqual(pushed, ["main"]);
});

test("errors of model providers are classified, however they are wrapped", () => {
  const about = (error: unknown, more: object) => Object.assign(error as object, more);
  assert.equal(classified(about(new Error("x"), { status: 503 })), "retryable");
  assert.equal(classified(about(new Error("x"), { statusCode: 401 })), "permanent");
  const wrapped = about(new Error("it failed"), { lastError: about(new Error(), { status: 429 }) });
  assert.equal(classified(wrapped), "retryable");
  assert.equal(classified(about(new Error("x"), { name: "MaxTurnsExceededError" })), "permanent");
  assert.equal(classified(new Error("?")), undefined);
  assert.equal(classified(new Error("?", { cause: new TypeError("fetch failed") })), "retryable");
});

test("a conversation goes along as far as there is room, and no name is too strange for a tool", () => {
  const said = ["one", "two", "three"].map((it) => ({ from: "user", said: it }));
  assert.deepEqual(quoted(said, 100), said);
  assert.match(quoted(said, 2)[0]?.said ?? "", /1 earlier messages/);
  assert.equal(toolName("fact-checker"), "handoff_to_fact_checker");
  assert.ok(toolName("ä".repeat(200)).length <= 64);
  assert.ok(new LeaseLost("x") instanceof Error);
});
