// SPDX-License-Identifier: Apache-2.0
// OpenAI Agents with a scripted model.

import { Agent, type AgentInputItem, Runner, type Tool } from "@openai/agents";
import * as adapter from "../../src/openai-agents.js";
import { client, main } from "./kit.js";
import { Scripted } from "./openai.js";

const runner = new Runner({ tracingDisabled: true });

function agent(...tools: Tool[]) {
  return new Agent({ name: "a", model: new Scripted(), tools });
}

await main({
  async call(to, sending) {
    const done = await runner.run(agent(adapter.handoffTool(to, sending)), "Go.");
    return String(done.finalOutput);
  },
  async transfer(to) {
    const acting = adapter.stopping(agent(adapter.transferTool(to, { client })));
    return (await runner.run(acting, "Go.")).history;
  },
  async resume(to, kept) {
    const acting = agent(adapter.transferTool(to, { client }));
    const done = await adapter.resume(acting, kept as AgentInputItem[], client, { runner });
    return String(done.finalOutput);
  },
  serve(name, tools, options) {
    const made = Object.entries(tools).map(([to, kind]) => {
      if (kind === "transfer") return adapter.transferTool(to);
      if (kind === "question") return adapter.questionTool();
      return adapter.handoffTool(to, { byCapability: kind === "capability" });
    });
    return adapter.serve(agent(...made), name, { runner, ...options });
  },
});
