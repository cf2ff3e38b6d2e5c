// SPDX-License-Identifier: Apache-2.0
// The Vercel AI SDK with a scripted model.

import { ToolLoopAgent, type ToolSet } from "ai";
import { toolName } from "../../src/adapters/run.js";
import * as adapter from "../../src/ai.js";
import { client, main } from "./kit.js";
import { model } from "./scripted-ai.js";

function agent(tools: ToolSet) {
  return new ToolLoopAgent({ model, tools, maxRetries: 0 });
}

function tool(kind: string, to: string): ToolSet {
  if (kind === "transfer") return adapter.transfers(to);
  if (kind === "capability") {
    return { [toolName(to)]: adapter.handoffTool(to, { byCapability: true }) };
  }
  return kind === "question" ? { ask_the_sender: adapter.questionTool() } : adapter.handoffs(to);
}

function transferring(to: string) {
  return agent({ [toolName(to, "transfer_to")]: adapter.transferTool(to, { client }) });
}

await main({
  async call(to, sending) {
    const acting = agent({ [toolName(to)]: adapter.handoffTool(to, sending) });
    return (await acting.generate({ prompt: "Go." })).text;
  },
  async transfer(to) {
    const acting = transferring(to);
    return adapter.transferred(acting, "Go.", await acting.generate({ prompt: "Go." }));
  },
  async resume(to, kept) {
    return (await adapter.resume(transferring(to), kept as adapter.Kept, client)).text;
  },
  serve(name, tools, options) {
    const all = Object.entries(tools).map(([to, kind]) => tool(kind, to));
    return adapter.serve(agent(Object.assign({}, ...all)), name, options);
  },
});
