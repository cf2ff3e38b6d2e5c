// SPDX-License-Identifier: Apache-2.0
// Handing work over and taking it.

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import * as tasuki from "../src/index.js";
import { aborted, broker, names } from "./broker.js";

const { url } = await broker();
const client = new tasuki.Client({ url, agent: "lead" });

test("what was asked for arrives unchanged, and the result comes back", async () => {
  const name = names();
  const handoff = await client.handoff({
    to: name("coder"),
    intent: "Prüfe das. 検査して。",
    constraints: ["Do not touch auth."],
    payload: { type: "change", list: [1, 2.5, "ä"] },
  });
  await using claim = await client.claim({ agent: name("coder") });
  assert.equal(claim.intent, "Prüfe das. 検査して。");
  assert.deepEqual(
    claim.constraints.map((it) => it.text),
    ["Do not touch auth."],
  );
  assert.deepEqual(claim.payload.list, [1, 2.5, "ä"]);
  assert.equal(await tasuki.address(claim.envelope), claim.envelopeHash);
  assert.equal(claim.client, client);
  await claim.progress("half of it", 50);
  await claim.complete("done", { usage: { input_tokens: 10, output_tokens: 2, model: "m" } });
  const result = await handoff.result();
  assert.deepEqual(result.payload, { type: "text", text: "done" });
  assert.equal(result.usage?.input_tokens, 10);
});

test("a claim that is left without a word is given back, with a warning", async () => {
  const name = names();
  await client.handoff({ to: name("coder"), intent: "x" });
  const warned = once(process, "warning");
  {
    await using claim = await client.claim({ agent: name("coder") });
    assert.equal(claim.attempt, 1);
  }
  const [warning] = (await warned) as [Error];
  assert.equal(warning.name, "UnreportedClaim");
  await using again = await client.claim({ agent: name("coder") });
  await again.complete();
});

test("claims come one after the other, and end when there is nothing more", async () => {
  const name = names();
  const sent = await client.handoffMany(
    [1, 2, 3].map((n) => ({ to: name("coder"), intent: `no. ${n}` })),
  );
  const seen: string[] = [];
  for await (const claim of client.claims({ agent: name("coder") }, { idleMs: 50 })) {
    seen.push(claim.intent);
    await claim.complete({ n: seen.length });
  }
  assert.deepEqual(seen, ["no. 1", "no. 2", "no. 3"]);
  const results = await client.results(sent as tasuki.Handoff[]);
  assert.deepEqual(
    results.map((it) => it.payload.n),
    [1, 2, 3],
  );
});

test("a lost claim aborts its signal, and ends what waits below it", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  const claim = await client.claim({ agent: name("coder"), lease_ms: 1000 });
  const call = assert.rejects(claim.call({ to: name("nobody") }), tasuki.LeaseLost);
  await handoff.cancel({ reason: "not needed" });
  assert.ok((await aborted(claim.signal)) instanceof tasuki.LeaseLost);
  await call;
  assert.throws(() => claim.check(), tasuki.LeaseLost);
  assert.ok(claim.lost && !claim.reported);
});

test("a step that an earlier attempt made is found again, in whatever words", async () => {
  const name = names();
  await client.handoff({ to: name("coder"), intent: "x" });
  const first = await client.claim({ agent: name("coder") });
  const started = await first.startCall({
    step: "review",
    to: name("reviewer"),
    payload: "look at it",
  });
  await (await client.claim({ agent: name("reviewer") })).complete("fine");
  await first.release();
  await using second = await client.claim({ agent: name("coder") });
  const again = await second.startCall({
    step: "review",
    to: name("reviewer"),
    payload: "please check",
  });
  assert.equal(again.id, started.id);
  const result = await second.call({
    step: "review",
    to: name("reviewer"),
    payload: "third wording",
  });
  assert.deepEqual(result.payload, { type: "text", text: "fine" });
  const other = await second.startCall({ step: "test", to: name("reviewer") });
  assert.notEqual(other.id, started.id);
  await second.complete();
});

test("a redriven caller finds its steps, and an older version's, but what failed is done again", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  const first = await client.claim({ agent: name("coder") });
  const done = await first.startCall({ step: "done", to: name("reviewer") });
  await (await client.claim({ agent: name("reviewer") })).complete("fine");
  const bad = await first.startCall({ step: "bad", to: name("reviewer") });
  await (await client.claim({ agent: name("reviewer") })).fail("no", {
    class: "permanent",
    hint: "h",
  });
  const old = { step: `${handoff.id}:old` };
  const older = await first.startCall({ to: name("reviewer"), metadata: old });
  await first.fail("no", { class: "permanent", hint: "h" });
  await client.deadLetters.redrive(handoff.id, { by: "s" });
  await using second = await client.claim({ agent: name("coder") });
  assert.notEqual(second.handoffId, handoff.id);
  const result = await second.call({ step: "done", to: name("reviewer"), payload: "once more" });
  assert.deepEqual(result.payload, { type: "text", text: "fine" });
  assert.equal((await second.startCall({ step: "old", to: name("reviewer") })).id, older.id);
  const anew = await second.startCall({ step: "bad", to: name("reviewer") });
  assert.ok(![bad.id, done.id].includes(anew.id));
  const { metadata } = await client.handoffs.envelope(anew.id);
  assert.deepEqual(metadata, { step: `${second.handoffId}:step:bad` });
  await second.complete();
});

test("a redriven call reaches its caller", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  await (await client.claim({ agent: name("coder") })).fail("no", {
    class: "permanent",
    hint: "h",
  });
  await assert.rejects(handoff.result(), (failed: tasuki.HandoffFailed) => {
    assert.deepEqual(
      [failed.state, failed.failure.message, failed.hint],
      ["dead_lettered", "no", "h"],
    );
    return failed instanceof tasuki.HandoffFailed;
  });
  await assert.rejects(
    handoff.final({ timeoutMs: 0 }),
    /it is a dead letter \(permanent_failure\)/,
  );
  await client.deadLetters.redrive(handoff.id);
  await (await client.claim({ agent: name("coder") })).complete("at last");
  assert.deepEqual((await handoff.result()).payload, { type: "text", text: "at last" });
  assert.deepEqual((await handoff.final()).payload, { type: "text", text: "at last" });
});

test("a wait says why nothing came of it yet", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  const late = (words: RegExp) => (error: tasuki.TimedOut) => {
    assert.match(error.message, words);
    assert.equal(error.handoff, handoff);
    return error.retryable && error instanceof tasuki.TimedOut;
  };
  await assert.rejects(handoff.result({ timeoutMs: 0 }), late(/it waits for coder-/));
  await using claim = await client.claim({ agent: name("coder") });
  await assert.rejects(handoff.result({ timeoutMs: 0 }), late(/coder-\d+ works on it/));
  await claim.complete();
});

test("a signal ends a wait with its own reason", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  const stop = new AbortController();
  const waiting = handoff.result({ signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("a question is answered, and the claim goes on with a new fence", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  await using claim = await client.claim({ agent: name("coder") });
  const { fence } = claim;
  const asked = claim.ask("Which database?", { kind: "input" });
  await client.wait([handoff], { until: "input_required" });
  await handoff.answer("PostgreSQL");
  assert.equal(await asked, "PostgreSQL");
  assert.ok(claim.fence > fence);
  await claim.complete();
});

test("a handoff goes on in one step with the result", async () => {
  const name = names();
  const handoff = await client.handoff({
    to: name("coder"),
    intent: "x",
    constraints: ["no auth"],
  });
  await using coder = await client.claim({ agent: name("coder") });
  await coder.handOn({ to: name("tester"), payload: { type: "test", n: 1 } }, "written");
  await using tester = await client.claim({ agent: name("tester") });
  assert.deepEqual(
    tester.constraints.map((it) => it.text),
    ["no auth"],
  );
  await tester.complete("green");
  assert.deepEqual((await handoff.final()).payload, { type: "text", text: "green" });
});

test("events tell what happens", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("coder"), intent: "x" });
  await (await client.claim({ agent: name("coder") })).complete();
  const kinds: string[] = [];
  for await (const event of client.events({ after: "0", task: handoff.taskId })) {
    kinds.push((event.record as { kind: string }).kind);
    if (kinds.at(-1) === "completed") break;
  }
  assert.ok(kinds.includes("claimed"), String(kinds));
});

test("MemorySpine keeps its names", async () => {
  const name = names();
  const spine = new tasuki.MemorySpine(url, { agent: name("spine") });
  const envelope = await spine.agent_handoff({
    target_agent: name("coder"),
    task_summary: "Implement what ms-4821 through ms-4823 describe.",
    constraints: { language: "python", max_tokens: 4000 },
    execution_history: [{ agent: "planner", action: "planned", why: "asked" }],
  });
  assert.equal(envelope.envelope_version, "2");
  assert.deepEqual(envelope.memory_refs, ["ms-4821", "ms-4822", "ms-4823"]);
  await assert.rejects(spine.deliver_handoff(envelope, name("coder"), 0), tasuki.TimedOut);
  const parked = await spine.park_envelope(envelope, "nobody is there");
  assert.equal((await client.handoffs.show(parked)).state, "dead_lettered");
});
