// SPDX-License-Identifier: Apache-2.0
// A scripted model as LangChain has it.

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { reply, USED } from "./kit.js";

export class Scripted extends BaseChatModel {
  constructor() {
    super({ maxRetries: 0 });
  }

  override _llmType(): string {
    return "scripted";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]) {
    const outputs = messages.filter((it) => ToolMessage.isInstance(it)).map(textOf);
    const { call, text = "" } = await reply(outputs, messages.map(textOf).join("\n"));
    const { inputTokens: input_tokens, outputTokens: output_tokens } = USED;
    const usage_metadata = {
      input_tokens,
      output_tokens,
      total_tokens: input_tokens + output_tokens,
    };
    const tool_calls = call ? [{ id: call.id, name: call.name, args: call.arguments }] : [];
    const message = new AIMessage({ content: text, tool_calls, usage_metadata });
    return { generations: [{ text, message }] };
  }
}

function textOf({ content }: BaseMessage): string {
  return typeof content === "string" ? content : JSON.stringify(content);
}

/** What the guide imports. */
export { Scripted as ChatOpenAI };
