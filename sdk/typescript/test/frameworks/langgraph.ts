// SPDX-License-Identifier: Apache-2.0
// LangGraph.js with a scripted model.

import type { BaseMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { MemorySaver, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { ToolNode, toolsCondition } from "@langchain/langgraph/prebuilt";
import * as adapter from "../../src/langgraph.js";
import { client, main } from "./kit.js";
import { Scripted } from "./langchain.js";

function built(tools: StructuredToolInterface[], checkpointer?: MemorySaver) {
  const model = new Scripted();
  const think = async ({ messages }: { messages: BaseMessage[] }) => ({
    messages: [await model.invoke(messages)],
  });
  return new StateGraph(MessagesAnnotation)
    .addNode("think", think)
    .addNode("tools", new ToolNode(tools))
    .addEdge(START, "think")
    .addConditionalEdges("think", toolsCondition)
    .addEdge("tools", "think")
    .compile(checkpointer ? { checkpointer } : {});
}

const THREAD = { configurable: { thread_id: "one" } };
const GO = { messages: [{ role: "user", content: "Go." }] };

/** A memory that can be written to a file. */
function memory(kept?: { [name: string]: unknown }): MemorySaver {
  const made = new MemorySaver();
  const revived = kept && JSON.parse(JSON.stringify(kept), (_, it) => bytes(it));
  return Object.assign(made, revived && { storage: revived.storage, writes: revived.writes });
}

function bytes(it: unknown): unknown {
  const { base64 } = (it ?? {}) as { base64?: string };
  return base64 === undefined ? it : new Uint8Array(Buffer.from(base64, "base64"));
}

function plainly(saver: MemorySaver): unknown {
  const { storage, writes } = saver;
  const text = JSON.stringify({ storage, writes }, (_, it) =>
    it instanceof Uint8Array ? { base64: Buffer.from(it).toString("base64") } : it,
  );
  return JSON.parse(text);
}

function lastWord({ messages }: { messages: BaseMessage[] }): string {
  return String(messages.at(-1)?.content);
}

await main({
  async call(to, sending) {
    return lastWord(await built([adapter.handoffTool(to, sending)]).invoke(GO));
  },
  async transfer(to) {
    const saver = memory();
    await built([adapter.transferTool(to, { client })], saver).invoke(GO, THREAD);
    return plainly(saver);
  },
  async resume(to, kept) {
    const saver = memory(kept as { [name: string]: unknown });
    const graph = built([adapter.transferTool(to, { client })], saver);
    return lastWord(await adapter.resume(graph, THREAD, client));
  },
  serve(name, tools, options) {
    const made = Object.entries(tools).map(([to, kind]) => {
      if (kind === "transfer") return adapter.transferTool(to);
      if (kind === "question") return adapter.questionTool();
      return adapter.handoffTool(to, { byCapability: kind === "capability" });
    });
    return adapter.serve(built(made), name, options);
  },
});
