// SPDX-License-Identifier: Apache-2.0
// What somebody does who has just installed the package.

import assert from "node:assert/strict";
import { Client, worker } from "tasuki";
import { Broker } from "tasuki/testing";

const broker = await Broker.start();
try {
  const client = new Client({ url: broker.url, agent: "coder" });
  const handoff = await client.handoff({ to: "reviewer", intent: "Review it." });
  await worker({ client, agent: "reviewer", idleMs: 50 }, () => ({ verdict: "approved" })).run();
  assert.equal((await handoff.result()).payload.verdict, "approved");
  console.log("installed, and it works");
} finally {
  await broker[Symbol.asyncDispose]();
}
