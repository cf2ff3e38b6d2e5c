// SPDX-License-Identifier: Apache-2.0
// A scripted model as the AI SDK has it.

import { APICallError, type ToolLoopAgent } from "ai";
import { ProviderError, reply, USED } from "./kit.js";

type Model = Exclude<ConstructorParameters<typeof ToolLoopAgent>[0]["model"], string>;

export const model = {
  specificationVersion: "v4",
  provider: "scripted",
  modelId: "scripted",
  supportedUrls: {},
  async doGenerate({ prompt }: { prompt: { content: string | { [name: string]: unknown }[] }[] }) {
    const parts = prompt.flatMap(({ content }) =>
      typeof content === "string" ? [{ type: "text", text: content }] : content,
    );
    const outputs = parts.filter((it) => it.type === "tool-result").map((it) => said(it.output));
    const heard = parts.map((it) => String(it.text ?? said(it.output))).join("\n");
    const { call, text } = await reply(outputs, heard).catch((error) => {
      if (!(error instanceof ProviderError)) throw error;
      const { status: statusCode, message } = error;
      throw new APICallError({ message, statusCode, url: "scripted:", requestBodyValues: {} });
    });
    const usage = {
      inputTokens: { total: USED.inputTokens },
      outputTokens: { total: USED.outputTokens },
    };
    if (!call) {
      const content = [{ type: "text", text }];
      return { content, finishReason: { unified: "stop" }, usage, warnings: [] };
    }
    const input = JSON.stringify(call.arguments);
    const content = [{ type: "tool-call", toolCallId: call.id, toolName: call.name, input }];
    return { content, finishReason: { unified: "tool-calls" }, usage, warnings: [] };
  },
  doStream: () => Promise.reject(new Error("it does not stream")),
} as unknown as Model;

function said(output: unknown): string {
  const { value } = (output ?? {}) as { value?: unknown };
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}
