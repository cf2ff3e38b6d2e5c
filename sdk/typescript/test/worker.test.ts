// SPDX-License-Identifier: Apache-2.0
// Agents as functions, and what becomes of their work when something goes wrong.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as tasuki from "../src/index.js";
import { Broker } from "../src/testing.js";
import { aborted, broker, names } from "./broker.js";

const { url } = await broker();
const client = new tasuki.Client({ url, agent: "lead" });

test("what a function returns completes the claim", async () => {
  const name = names();
  const sent = await Promise.all(
    [1, 2, 3].map((n) => client.handoff({ to: name("adder"), intent: "add", payload: { n } })),
  );
  const adder = tasuki.worker(
    { client, agent: name("adder"), concurrency: 2, idleMs: 50 },
    (claim) => ({
      sum: claim.payload.n + 1,
    }),
  );
  await adder.run();
  const results = await client.results(sent);
  assert.deepEqual(
    results.map((it) => it.payload.sum),
    [2, 3, 4],
  );
});

test("what a function throws is a failure of the class that fits", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("adder"), intent: "add" });
  const stop = new AbortController();
  const lines: string[] = [];
  const work = tasuki.worker(
    { client, agent: name("adder"), signal: stop.signal, log: (line) => lines.push(line) },
    (claim) => claim.payload.missing.member,
  );
  const running = work.run();
  await assert.rejects(handoff.result(), (failed: tasuki.HandoffFailed) => {
    assert.equal(failed.failure.class, "permanent");
    assert.equal(failed.failure.type, "type_error");
    assert.match(failed.hint, /worker\.test\./);
    return true;
  });
  stop.abort();
  await running;
  assert.ok(
    lines.some((line) => line.includes("TypeError")),
    lines.join("\n"),
  );
});

test("a result that is no JSON is refused at once, with its place", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("adder"), intent: "add" });
  const stop = new AbortController();
  const running = tasuki
    .worker({ client, agent: name("adder"), signal: stop.signal }, () => ({ a: [1n] }))
    .run();
  await assert.rejects(handoff.result(), (failed: tasuki.HandoffFailed) => {
    assert.match(
      String(failed.failure.message),
      /\/payload\/a\/0 cannot be sent: a bigint is not JSON/,
    );
    return failed.failure.class === "permanent";
  });
  stop.abort();
  await running;
});

test("a failed call below is one failure above, not retried at every level", () => {
  const failed = new tasuki.HandoffFailed("x", { handoffId: "h", state: "dead_lettered" });
  assert.equal(tasuki.failureClass(failed), "permanent");
  assert.equal(tasuki.failureClass(Object.assign(new Error("busy"), { status: 429 })), "retryable");
  assert.equal(tasuki.failureClass(Object.assign(new Error("bad"), { status: 400 })), "permanent");
  assert.equal(tasuki.failureClass(new Error("?")), "unknown");
  assert.equal(
    tasuki.failureClass(new Error("?"), () => "retryable"),
    "retryable",
  );
});

test("a lost claim ends the work, and nothing is reported for it", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("slow"), intent: "wait" });
  const begun = resolvers();
  const ended = resolvers();
  const stop = new AbortController();
  const running = tasuki
    .worker({ client, agent: name("slow"), lease_ms: 1000, signal: stop.signal }, async (claim) => {
      begun.resolve(undefined);
      ended.resolve(await aborted(claim.signal));
      return "too late";
    })
    .run();
  await begun.promise;
  await handoff.cancel();
  assert.ok((await ended.promise) instanceof tasuki.LeaseLost);
  stop.abort();
  await running;
  assert.equal((await handoff.status()).state, "cancelled");
});

test("a stop gives back what is under way", async () => {
  const name = names();
  const handoff = await client.handoff({ to: name("slow"), intent: "wait" });
  const begun = resolvers();
  const work = tasuki.worker({ client, agent: name("slow"), graceMs: 0 }, async (claim) => {
    begun.resolve(undefined);
    await aborted(claim.signal);
  });
  const running = work.run();
  await begun.promise;
  work.stop();
  await running;
  assert.equal((await handoff.status()).state, "pending");
});

test("several workers run in one process, and one stop ends all", async () => {
  const name = names();
  const first = await client.handoff({ to: name("one"), intent: "x" });
  const second = await client.handoff({ to: name("two"), intent: "x" });
  const common = { client, idleMs: 50 };
  await tasuki.run(
    tasuki.worker({ ...common, agent: name("one") }, () => "1"),
    tasuki.worker({ ...common, agent: name("two") }, () => "2"),
  );
  const results = await client.results([first, second]);
  assert.deepEqual(
    results.map((it) => it.payload),
    [
      { type: "text", text: "1" },
      { type: "text", text: "2" },
    ],
  );
});

test("a broker that is killed in the middle loses nothing", async () => {
  await using own = await Broker.start();
  const lead = new tasuki.Client({ url: own.url, agent: "lead" });
  const handoff = await lead.handoff({ to: "coder", intent: "survive" });
  await own.stop("SIGKILL");
  const waiting = handoff.result();
  await own.start();
  const work = tasuki.worker({ client: lead, agent: "coder", idleMs: 1000 }, async () => {
    await own.stop("SIGKILL");
    await own.start();
    return "survived";
  });
  await work.run();
  assert.deepEqual((await waiting).payload, { type: "text", text: "survived" });
});

test("wrong use is caught where it happens", async () => {
  const wrong = (make: () => unknown, words: RegExp) => assert.throws(make, words);
  wrong(() => tasuki.worker({ agent: "a" }, undefined as never), /a worker needs a function/);
  wrong(
    () => tasuki.worker({ agent: "a", concurrency: 0 }, () => 1),
    /concurrency is a whole number/,
  );
  wrong(
    () => tasuki.worker({ agent: "a", lease_ms: "1s" as never }, () => 1),
    /lease_ms is a number/,
  );
  wrong(() => new tasuki.Client("localhost"), /is no address of a broker/);
  const nobody = new tasuki.Client(url);
  await assert.rejects(nobody.handoff({ to: "a", intent: "x" }), /say from_agent/);
  await assert.rejects(client.handoff({ intent: "x" } as never), /say `to`/);
  await assert.rejects(
    client.handoff({ to: "a", intent: "x", payload: { f: () => 1 } }),
    /\/payload\/f cannot/,
  );
  await assert.rejects(
    client.handoff({ to: "a", intent: "x", prioritty: 1 } as never),
    /takes no prioritty/,
  );
  const loop: { self?: unknown } = {};
  loop.self = loop;
  await assert.rejects(
    client.handoff({ to: "a", intent: "x", payload: loop }),
    /it contains itself/,
  );
});

function resolvers() {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise<unknown>((made) => {
    resolve = made;
  });
  return { promise, resolve };
}
