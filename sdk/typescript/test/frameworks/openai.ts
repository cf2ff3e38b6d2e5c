// SPDX-License-Identifier: Apache-2.0
// A scripted model as OpenAI Agents has it.

import { type Model, type ModelRequest, type ModelResponse, Usage } from "@openai/agents";
import { reply, USED } from "./kit.js";

export class Scripted implements Model {
  async getResponse({ input }: ModelRequest): Promise<ModelResponse> {
    const items = typeof input === "string" ? [{ type: "message", content: input }] : input;
    const texts = items.map((it) => textOf(it));
    const outputs = texts.filter((_, at) => items[at]?.type === "function_call_result");
    const { call, text = "" } = await reply(outputs, texts.join("\n"));
    const usage = new Usage({ requests: 1, ...USED });
    if (call) {
      const { id: callId, name } = call;
      const said = { type: "function_call" as const, status: "completed" as const, callId, name };
      return { output: [{ ...said, arguments: JSON.stringify(call.arguments) }], usage };
    }
    const content = [{ type: "output_text" as const, text }];
    const said = { type: "message" as const, role: "assistant" as const };
    return { output: [{ ...said, status: "completed", content }], usage };
  }

  // biome-ignore lint/correctness/useYield: it says everything at once
  async *getStreamedResponse(): AsyncGenerator<never> {
    throw new TypeError("it does not stream");
  }
}

function textOf(item: object): string {
  const { content, output } = item as { content?: unknown; output?: unknown };
  const said = content ?? output ?? "";
  const parts = Array.isArray(said) ? said : [said];
  return parts.map((it) => (typeof it === "string" ? it : String(it?.text ?? ""))).join(" ");
}
