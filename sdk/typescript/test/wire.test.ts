// SPDX-License-Identifier: Apache-2.0
// Errors, retries, keys and signatures.

import assert from "node:assert/strict";
import { once } from "node:events";
import { chmod, mkdtemp, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import * as tasuki from "../src/index.js";
import { broker, names, ROOT } from "./broker.js";

const guarded = await broker("--auth", "required");
const admin = new tasuki.Client({
  url: guarded.url,
  agent: "admin",
  token: await guarded.adminToken(),
});

async function enrolled(agent: string): Promise<tasuki.Key> {
  const key = await tasuki.Key.generate(agent);
  const permissions = ["send", "claim", "complete", "read", "write_memory"];
  const rules = [{ permissions }] as tasuki.models.Rule[];
  const token = await admin.tokens.issue({ agent_id: agent, purpose: "join", rules });
  await new tasuki.Client(guarded.url).join(token.text, key, agent);
  return key;
}

test("who shows nothing is not let in", async () => {
  const stranger = new tasuki.Client({ url: guarded.url, agent: "stranger" });
  await assert.rejects(stranger.stats.show(), (error: tasuki.Unauthenticated) => {
    assert.ok(error.docUrl?.endsWith(`/docs/errors/${error.code}`));
    return error instanceof tasuki.Unauthenticated && !error.retryable;
  });
});

test("an agent joins, signs and hands over; anybody can check who said it", async () => {
  const name = names();
  const [coder, reviewer] = [await enrolled(name("coder")), await enrolled(name("reviewer"))];
  const sender = new tasuki.Client({ url: guarded.url, key: coder });
  const handoff = await sender.handoff({
    to: name("reviewer"),
    intent: "Prüfe das. 検査して。",
    payload: { n: [1.5, 1e-9, "ä"] },
  });
  const receiver = new tasuki.Client({ url: guarded.url, key: reviewer });
  await using claim = await receiver.claim({ agent: name("reviewer") });
  const signed = claim.envelope.signed as tasuki.Signed;
  const said = await tasuki.authored(claim.envelope as never);
  assert.ok(await tasuki.verify(coder.public, signed, "envelope", said));
  assert.ok(!(await tasuki.verify(reviewer.public, signed, "envelope", said)));
  await claim.complete("seen", { gaps: ["ms-1"], usage: { input_tokens: 1, output_tokens: 1 } });
  assert.deepEqual((await handoff.result()).payload, { type: "text", text: "seen" });
  const failing = await sender.handoff({ to: name("reviewer"), intent: "x y", payload: "?" });
  await using second = await receiver.claim({ agent: name("reviewer") });
  await second.fail("cannot", { class: "permanent", hint: "h", causes: ["a"], details: { n: 1 } });
  await assert.rejects(failing.result(), tasuki.HandoffFailed);
  // A query with what needs escapes is signed as it is sent.
  assert.equal((await sender.tasks.list({ correlation_id: "a b+c/ä" })).tasks.length, 0);
  const verdict = await admin.audit.verify();
  assert.equal(verdict.intact, true);
});

test("what is signed is for one broker and no other", async () => {
  const key = await enrolled(names()("pinned"));
  await new tasuki.Client({ url: guarded.url, key }).stats.show();
  const broker = (await tasuki.Key.generate()).id;
  const misled = new tasuki.Client({ url: guarded.url, key, broker });
  await assert.rejects(misled.stats.show(), (error: tasuki.Unauthenticated) => {
    return error instanceof tasuki.Unauthenticated && error.code === "signature_audience";
  });
});

test("a key file is private, and is never overwritten", async () => {
  const place = join(await mkdtemp(join(tmpdir(), "tasuki-key-")), "agent.key");
  const key = await tasuki.Key.generate("coder");
  await key.save(place);
  const read = await tasuki.Key.load(place);
  assert.deepEqual([read.id, read.public, read.agent], [key.id, key.public, "coder"]);
  await assert.rejects(key.save(place), /EEXIST/);
  assert.ok(!JSON.stringify(key).includes((await readFile(place, "utf8")).slice(15, 40)));
  await chmod(place, 0o644);
  await assert.rejects(tasuki.Key.load(place), /others can get at the key file/);
});

test("a broker that is away is an error that says what to do", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const url = `http://127.0.0.1:${(taken.address() as AddressInfo).port}`;
  taken.close();
  await once(taken, "close");
  const client = new tasuki.Client({ url, agent: "a", retry: tasuki.NO_RETRY });
  await assert.rejects(client.handoff({ to: "b", intent: "x" }), (error: tasuki.Unreachable) => {
    assert.match(error.message, /cannot reach the broker at .*\[unreachable\].*tasuki serve/);
    return error.retryable && !error.inDoubt && error instanceof tasuki.Unreachable;
  });
});

test("what answers and is no broker is not taken for one", async () => {
  const page = createServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<h1>log in</h1>");
  });
  await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}`;
  const client = new tasuki.Client({ url, agent: "a", retry: tasuki.NO_RETRY });
  await assert.rejects(client.handoff({ to: "b", intent: "x" }), (error: tasuki.NotABroker) => {
    return error.inDoubt && error instanceof tasuki.NotABroker;
  });
  page.close();
});

test("a refusal says what does not fit, and where", async () => {
  const wrong = admin.handoff({ to: "b", intent: "x", memory_refs: [{ name: "ms-1" } as never] });
  await assert.rejects(wrong, (error: tasuki.InvalidRequest) => {
    assert.deepEqual([error.code, error.faults[0]?.path], ["invalid_request", "/memory_refs/0"]);
    return error instanceof tasuki.InvalidRequest;
  });
});

test("numbers and names are written as RFC 8785 says", () => {
  const value = {
    "€": 1e21,
    "\r": 333333333.3333333,
    a: [1e-7, 0.000001, -0, 4.5, 2e-3],
    1: "\u20ac",
  };
  assert.equal(
    tasuki.canonical(value),
    '{"\\r":333333333.3333333,"1":"€","a":[1e-7,0.000001,0,4.5,0.002],"€":1e+21}',
  );
  assert.throws(() => tasuki.canonical(2 ** 60), /beyond 2\^53/);
});

test("addresses are those that the broker and the fixtures have", async () => {
  const folder = `${ROOT}examples/coder-reviewer-tester/messages/`;
  const sent = JSON.parse(await readFile(`${folder}1-lead-to-coder.sent.json`, "utf8"));
  assert.match(await tasuki.address(sent), /^sha256:[0-9a-f]{64}$/);
});
