// SPDX-License-Identifier: Apache-2.0
// The official TypeScript client tells the same story: send, claim, ask, answer, complete.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

// Its checker of schemas says so of each number of ours.
const { warn } = console;
console.warn = (text, ...more) => /^unknown format "u?int/.test(text) || warn(text, ...more);

const broker = process.env.TASUKI_URL;
const command = process.env.TASUKI_BIN;
const work = {
  to: { agent: "coder" },
  intent: "Add GET /users/{id}.",
  constraints: ["do not touch the database"],
  payload: { type: "request", path: "/users/{id}" },
};

async function connected(transport, use) {
  const client = new Client({ name: "story", version: "1" });
  await client.connect(transport);
  // The client holds each answer against the schema that this list has for it.
  await client.listTools();
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const overHttp = (agent, use) =>
  connected(new StreamableHTTPClientTransport(new URL(`${broker}/mcp?agent=${agent}`)), use);
const overStdio = (agent, use) =>
  connected(new StdioClientTransport({ command, args: ["mcp", "--agent", agent, "--url", broker] }), use);

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args });
  assert.ok(!result.isError, result.content[0]?.text);
  return result.structuredContent;
}

for (const [way, as] of [
  ["HTTP", overHttp],
  ["standard input and output", overStdio],
]) {
  test(`the whole story over ${way}`, { timeout: 60_000 }, async () => {
    const sent = await as("planner", (planner) => call(planner, "send", work));
    await as("coder", async (coder) => {
      const held = await call(coder, "claim", { wait_ms: 30_000 });
      assert.equal(held.handoff_id, sent.handoff_id);
      assert.deepEqual(held.payload, work.payload);
      await call(coder, "ask", { claim: held.claim, text: "Which framework?" });
      const late = { name: "complete", arguments: { claim: held.claim, payload: { type: "patch" } } };
      const refused = await coder.callTool(late);
      assert.ok(refused.isError && refused.content[0].text.startsWith("stale_claim"));
    });
    await as("planner", async (planner) => {
      const seen = await call(planner, "status", { handoff_id: sent.handoff_id });
      assert.equal(seen.open_question.text, "Which framework?");
      await call(planner, "answer", { handoff_id: sent.handoff_id, answer: "axum" });
    });
    await as("coder", async (coder) => {
      const held = await call(coder, "claim", { handoff_id: sent.handoff_id, wait_ms: 30_000 });
      assert.equal(held.questions[0].answer, "axum");
      await call(coder, "complete", { claim: held.claim, payload: { type: "patch", diff: "+1" } });
    });
    await as("planner", async (planner) => {
      const seen = await call(planner, "status", { handoff_id: sent.handoff_id });
      assert.deepEqual(seen.output.payload, { type: "patch", diff: "+1" });
      const read = await planner.readResource({ uri: `tasuki://tasks/${sent.task_id}/story` });
      assert.match(read.contents[0].text, /Which framework\?/);
    });
  });
}
