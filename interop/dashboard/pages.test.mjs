// Each page's story, as a person lives it.
import assert from "node:assert/strict";
import { createServer, request as ask } from "node:http";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Broker, Browser, findings } from "./stage.mjs";

const PAGES = ["", "tasks", "ready", "letters", "inbox", "agents", "pipelines", "fidelity", "alerts", "audit", "population"];
const HIT = `<img src=x onerror="window.__hit=1"><script>window.__hit=1</script>`;
const open = [];
let broker;
let browser;

before(async () => {
  broker = await Broker.start();
  browser = await Browser.start();
});
after(async () => {
  await browser?.stop();
  await broker?.stop();
  for (const one of open) await one.stop();
});

const settled = async (page) => {
  await page.waitForSelector("main h1");
  await page.waitForFunction(() => !document.querySelector("main")?.textContent?.includes("Loading…"));
};
const go = async (page, where, at = broker) => {
  await page.goto(`${at.url}/ui/#/${where}`);
  await page.reload();
  await settled(page);
};
const clean = (page) => {
  assert.deepEqual(page.wrong, [], "nothing went wrong in the page");
  assert.deepEqual(page.outside, [], "nothing was asked of anybody else");
};

async function deadLetter(at = broker, message = "OrderItem is not exported") {
  const offered = await at.offer({ terms: { attempts: 1 }, to: { agent: "tester" } });
  const claim = await at.claim("tester");
  await at.post(`/v1/handoffs/${claim.handoff_id}/fail`, {
    claim_id: claim.claim_id, fence: claim.fence, class: "permanent", type: "missing_type",
    message, hint: "look at types.rs",
  });
  return offered;
}

test("the overview shows a handoff as it comes, moves and ends, without being loaded again", async () => {
  const page = await browser.page();
  await go(page, "");
  const { handoff_id } = await broker.offer();
  const row = page.locator("tr", { hasText: "reviewer" }).first();
  await row.getByText("pending").waitFor();
  const claim = await broker.claim("reviewer");
  assert.equal(claim.handoff_id, handoff_id);
  await row.getByText("claimed").waitFor();
  await broker.post(`/v1/handoffs/${handoff_id}/complete`, { claim_id: claim.claim_id, fence: claim.fence, payload: { type: "ok" } });
  await row.getByText("completed").waitFor();
  clean(page);
  await page.close();
});

test("every page is free of findings, in light and dark and on a phone", async () => {
  await deadLetter();
  await broker.offer({ needs_approval: true, to: { agent: "deployer" } });
  const { task_id } = await broker.offer({ constraints: ["Do not touch the schema"] });
  const letters = await broker.get("/v1/dead-letters");
  const page = await browser.page();
  const where = [...PAGES, `tasks/${task_id}`, `letters/${letters.handoffs[0].handoff_id}`, "agents/tester"];
  for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 390]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 850 });
    for (const one of where) {
      await go(page, one);
      assert.deepEqual(await findings(page), [], `${one || "overview"}, ${scheme}, ${width} wide`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 1, `${one || "overview"} is ${wide} px wider than a window of ${width}`);
    }
  }
  clean(page);
  await page.close();
});

test("a task is found by its filters, which stand in the address, and by keyboard alone", async () => {
  await broker.offer({ project: "orders", correlation_id: "ticket-7" });
  const page = await browser.page();
  await go(page, "");
  // Only keys from here on.
  await page.locator("body").press("Tab");
  for (let key = 0; key < 12; key += 1) {
    const name = await page.evaluate(() => document.activeElement?.textContent);
    if (name === "Tasks") break;
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Tasks" }).waitFor();
  await page.getByLabel("Correlation id").focus();
  await page.keyboard.type("ticket-7");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.getByText("1 tasks").waitFor();
  assert.match(page.url(), /correlation=ticket-7/);
  await page.reload();
  await page.getByText("1 tasks").waitFor();
  await page.locator("tbody a").first().focus();
  await page.keyboard.press("Enter");
  await page.getByRole("tab", { name: "Run" }).waitFor();
  await page.getByRole("tab", { name: "Run" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("tabpanel", { name: "Handoffs" }).waitFor();
  clean(page);
  await page.close();
});

test("a task shows its hops, what changed between them, and the prompt byte for byte", async () => {
  const first = await broker.offer({ to: { agent: "writer" }, constraints: ["Do not touch the schema"], ask: "Draft it" });
  const claim = await broker.claim("writer");
  await broker.post(`/v1/handoffs/${claim.handoff_id}/complete`, {
    claim_id: claim.claim_id, fence: claim.fence, payload: { type: "draft" },
    follow_ups: [{
      to: { agent: "editor" }, payload: { type: "draft" }, add_constraints: ["Keep it short"],
      decisions: [{ decision: "Use plain SQL" }],
    }],
  });
  const page = await browser.page();
  await go(page, `tasks/${first.task_id}`);
  await page.getByText("Ship the orders endpoint").waitFor();
  await page.getByRole("tab", { name: "Diff" }).click();
  await page.getByText("+ constraint: Keep it short").waitFor();
  await page.getByText("+ decision: Use plain SQL").waitFor();
  await page.getByRole("tab", { name: "Constraints" }).click();
  await page.getByRole("cell", { name: "Do not touch the schema" }).waitFor();
  await page.getByRole("tab", { name: "Prompt" }).click();
  const task = await broker.get(`/v1/tasks/${first.task_id}`);
  const last = task.handoffs.sort((a, b) => a.hop - b.hop).at(-1);
  const { prompt } = await broker.get(`/v1/handoffs/${last.handoff_id}/prompt`);
  const shown = page.locator("[role=tabpanel] pre").first();
  await shown.waitFor();
  assert.equal(await shown.textContent(), prompt);
  await page.getByRole("tab", { name: "Audit" }).click();
  await page.getByRole("cell", { name: "transfer offered" }).first().waitFor();
  clean(page);
  await page.close();
});

test("a holder is told something, and a task is cancelled with a reason", async () => {
  const offered = await broker.offer({ to: { agent: "digger" } });
  await broker.claim("digger");
  const page = await browser.page({ ignore: ["403"] });
  await go(page, `tasks/${offered.task_id}`);
  await page.getByRole("button", { name: "Message to the holder" }).click();
  await page.getByLabel("Message", { exact: true }).fill("Stop after this file");
  await page.getByRole("dialog").getByRole("button", { name: "Message to the holder" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const { messages } = await broker.get(`/v1/handoffs/${offered.handoff_id}/messages`);
  assert.equal(messages[0].text, "Stop after this file");
  // Whoever it is, it is not the one who sent the work.
  await page.getByRole("button", { name: "Cancel task" }).click();
  await page.getByLabel("Reason").fill("not mine");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByRole("button", { name: "Back" }).click();
  await page.getByLabel("Acting as").fill("coder");
  await page.getByLabel("Acting as").press("Tab");
  await page.getByRole("button", { name: "Cancel task" }).click();
  await page.getByLabel("Reason").fill("no longer wanted");
  await page.getByRole("dialog").getByRole("button", { name: "Cancel task" }).click();
  await page.locator("h1").getByText("cancelled").waitFor();
  await page.getByLabel("Acting as").fill("operator");
  await page.getByLabel("Acting as").press("Tab");
  clean(page);
  await page.close();
});

test("a dead letter is edited with its difference shown before, replayed, and alike ones are decided together", async () => {
  const letter = await deadLetter();
  const page = await browser.page();
  await go(page, `letters/${letter.handoff_id}`);
  await page.getByRole("cell", { name: /OrderItem is not exported/ }).waitFor();
  await page.getByRole("button", { name: "Take for an hour" }).click();
  await page.getByText("is deciding on this (you)").waitFor();
  await page.getByRole("button", { name: "Edit and replay" }).click();
  const payload = page.getByLabel("Payload (JSON)");
  await payload.fill((await payload.inputValue()).replace("one line", "two lines"));
  await page.locator("dialog ins", { hasText: "two lines" }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Edit and replay" }).click();
  await page.locator("h1").getByText("decided", { exact: true }).waitFor();
  const again = await broker.claim("tester");
  assert.equal(again.envelope.payload.text, "two lines");
  await deadLetter();
  await deadLetter();
  await go(page, "letters");
  const group = page.locator("tr", { hasText: "missing_type" }).first();
  await group.getByRole("button", { name: "Which ones?" }).click();
  await group.getByText(/letters; 0 would be refused/).waitFor();
  await group.getByRole("button", { name: "Discard all" }).click();
  await page.getByLabel("Reason").fill("known");
  await page.getByRole("dialog").getByRole("button", { name: "Discard all" }).click();
  await page.getByText("Nothing waits for a decision.").waitFor();
  clean(page);
  await page.close();
});

test("a person answers a question and approves what waits for it", async () => {
  const waits = await broker.offer({ to: { agent: "publisher" }, needs_approval: true });
  const asked = await broker.offer({ to: { agent: "asker" } });
  const claim = await broker.claim("asker");
  await broker.post(`/v1/handoffs/${claim.handoff_id}/ask`, {
    claim_id: claim.claim_id, fence: claim.fence, kind: "input", text: "Which currency?",
  });
  const page = await browser.page();
  await go(page, "inbox");
  const card = page.getByRole("region", { name: "Question of asker" });
  await card.getByLabel("Answer").fill("EUR");
  await card.getByRole("button", { name: "Answer" }).click();
  await card.waitFor({ state: "detached" });
  await page.getByRole("region", { name: /to publisher/ }).getByRole("button", { name: "Approve" }).click();
  await page.getByRole("region", { name: /to publisher/ }).waitFor({ state: "detached" });
  assert.equal((await broker.get(`/v1/handoffs/${waits.handoff_id}`)).state, "pending");
  const back = await broker.claim("asker");
  assert.equal(back.handoff_id, asked.handoff_id);
  clean(page);
  await page.close();
});

test("an agent is paused and resumed", async () => {
  await broker.offer({ to: { agent: "runner" } });
  const page = await browser.page();
  await go(page, "agents/runner");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused since").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByText("Paused since").waitFor({ state: "detached" });
  clean(page);
  await page.close();
});

test("text of strangers lands nowhere", async () => {
  const at = await Broker.start();
  open.push(at);
  const offered = await at.offer({
    intent: HIT, ask: HIT, summary: HIT, constraints: [HIT], tried: [HIT], assumptions: [HIT], correlation_id: "c-1",
    decisions: [{ decision: HIT, why: HIT }], payload: { type: "x", text: HIT, [HIT]: HIT }, to: { agent: "victim" }, metadata: { note: HIT },
  });
  const claim = await at.claim("victim");
  await at.post(`/v1/handoffs/${claim.handoff_id}/progress`, { claim_id: claim.claim_id, fence: claim.fence, note: { text: HIT } }).catch(() => {});
  await at.post(`/v1/handoffs/${claim.handoff_id}/ask`, { claim_id: claim.claim_id, fence: claim.fence, kind: "input", text: HIT });
  const letter = await deadLetter(at, HIT);
  await at.post("/v1/memories", { by: "coder", text: HIT, title: HIT }).catch(() => {});
  // Such a name there cannot be, and the broker says so.
  const page = await browser.page({ ignore: ["400"] });
  const where = [...PAGES, `letters/${letter.handoff_id}`, `agents/${encodeURIComponent("<img src=x>")}`,
    ...["Run", "Handoffs", "Diff", "Prompt", "Constraints", "Audit"].map((tab) => `tasks/${offered.task_id}?tab=${tab}`)];
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective}`));
  });
  for (const one of where) {
    await page.goto(`${at.url}/ui/#/${one}`);
    await page.reload();
    await settled(page).catch(() => {});
    for (const opener of await page.locator("summary, button[aria-expanded=false]").all()) await opener.click();
    assert.equal(await page.evaluate(() => globalThis.__hit), undefined, `${one || "overview"} ran what a stranger wrote`);
    assert.equal(await page.locator("main img, main script").count(), 0);
  }
  assert.deepEqual(page.wrong, []);
  await page.close();
});

test("ten thousand open tasks are scrolled to their end, and few of them are in the page", async () => {
  const at = await Broker.start();
  open.push(at);
  for (let batch = 0; batch < 100; batch += 1) {
    const offers = Array.from({ length: 100 }, (_, index) => ({
      from_agent: "coder", to: { agent: "reviewer" }, intent: `work ${batch * 100 + index}`, payload: { type: "x" },
    }));
    await at.post("/v1/handoffs/batch", { offers });
  }
  const page = await browser.page();
  await go(page, "tasks?state=open", at);
  const box = page.getByRole("region", { name: "Tasks" });
  const first = (await at.get("/v1/tasks?limit=1")).tasks[0].task_id;
  await box.locator(`[title="${first}"]`).waitFor();
  await page.waitForFunction(() => {
    const box = document.querySelector("[role=region][aria-label=Tasks]");
    box.scrollTop = box.scrollHeight;
    return document.body.textContent.includes("10,000 tasks");
  }, undefined, { timeout: 60_000, polling: 100 });
  await box.evaluate((it) => { it.scrollTop = it.scrollHeight; });
  await page.locator('tr[aria-rowindex="10001"]').waitFor();
  assert.ok((await page.locator("tbody tr").count()) < 120);
  clean(page);
  await page.close();
});

test("a page goes on by itself after the broker was killed and started again", async () => {
  const at = await Broker.start();
  open.push(at);
  const page = await browser.page({ ignore: ["ERR_CONNECTION", "Failed to load resource", "ERR_INCOMPLETE", "ERR_EMPTY"] });
  await go(page, "", at);
  await at.down("SIGKILL");
  await page.getByText("What is shown may be old").waitFor();
  await at.up();
  await page.getByText("What is shown may be old").waitFor({ state: "detached" });
  await at.offer({ to: { agent: "late" } });
  await page.getByRole("cell", { name: "late" }).first().waitFor();
  assert.deepEqual(page.wrong, []);
  await page.close();
});

test("the pages work below a path of a proxy's", async (story) => {
  const proxy = createServer((from, to) => {
    const path = from.url.replace(/^\/team/, "");
    if (path === from.url) {
      to.writeHead(404).end();
      return;
    }
    const on = ask(`${broker.url}${path}`, { method: from.method, headers: from.headers }, (reply) => {
      to.writeHead(reply.statusCode, reply.headers);
      reply.pipe(to);
    });
    on.on("error", () => to.destroy());
    from.pipe(on);
  });
  await new Promise((go) => proxy.listen(0, "127.0.0.1", go));
  story.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const page = await browser.page();
  await page.goto(`http://127.0.0.1:${proxy.address().port}/team/`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await settled(page);
  assert.match(page.url(), /\/team\/ui\//);
  await broker.offer({ to: { agent: "behind-a-proxy" } });
  await page.getByRole("cell", { name: "behind-a-proxy" }).first().waitFor();
  clean(page);
  await page.close();
});

test("who signs in gets a session of its rights, which no script reads, and which ends with signing out", async () => {
  const at = await Broker.start(["--auth", "required"]);
  open.push(at);
  const admin = (await readFile(join(at.folder, "data/admin.token"), "utf8")).trim();
  const as = { authorization: `Bearer ${admin}` };
  const page = await browser.page({ ignore: ["401"] });
  await page.goto(`${at.url}/ui/`);
  await page.getByLabel("Token").fill("nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(admin);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.equal(await page.evaluate(() => document.cookie), "", "no script reads the session");
  const [cookie] = await browser.context.cookies(at.url);
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, "Strict");
  assert.ok(!cookie.value.includes(admin), "it is not the token itself");
  const shown = { cookie: `${cookie.name}=${cookie.value}` };
  assert.equal((await fetch(`${at.url}/v1/stats`, { headers: shown })).status, 200);
  const elsewhere = { ...shown, "content-type": "application/json", origin: "http://evil.example", "sec-fetch-site": "cross-site" };
  const forged = await fetch(`${at.url}/v1/targets/pause`, { method: "POST", headers: elsewhere, body: '{"target":{"agent":"x"}}' });
  assert.equal(forged.status, 403);
  // What it may do it still may after a restart.
  await at.down();
  await at.up();
  assert.equal((await fetch(`${at.url}/v1/stats`, { headers: shown })).status, 200);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Sign in to Tasuki" }).waitFor();
  assert.equal((await fetch(`${at.url}/v1/stats`, { headers: shown })).status, 401, "the session is over");
  assert.equal((await fetch(`${at.url}/v1/stats`, { headers: as })).status, 200, "the token is not");
  await page.close();
});

test("a pipeline is a graph with what is on it now, and the log is searched from its end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tasuki-routes-"));
  const file = join(folder, "pipelines.json");
  const stage = (name, next) => ({ name, to: { agent: `${name}-agent` }, next });
  await writeFile(file, JSON.stringify({ pipelines: [{
    name: "ship", version: 1, first: "code",
    stages: [stage("code", [{ to: "review" }]), stage("review", [{ to: "end" }])],
  }] }));
  const own = await Broker.start(["--pipelines", file]);
  open.push(own);
  const page = await browser.page();
  await go(page, "pipelines", own);
  const route = page.getByRole("region", { name: "Route of ship" });
  await route.getByRole("img", { name: "code to review" }).waitFor();
  await own.post("/v1/pipelines/ship/start", { from_agent: "lead", intent: "Ship it", payload: { type: "feature" } });
  await route.getByText("1 under way", { exact: true }).waitFor();
  const claim = await own.claim("code-agent");
  await own.post(`/v1/handoffs/${claim.handoff_id}/fail`, {
    claim_id: claim.claim_id, fence: claim.fence, class: "permanent", type: "broken", message: "no", hint: "look",
  });
  await route.getByText("0 under way, 1 dead", { exact: true }).waitFor();
  await go(page, "audit", own);
  await page.getByLabel("What happened").fill("dead lettered");
  await page.getByRole("button", { name: "Search the log" }).click();
  const rows = page.getByRole("region", { name: "Entries" }).locator("tbody tr");
  await rows.first().getByText("dead lettered").waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByLabel("What happened").fill("");
  await page.getByLabel("By whom").fill("code-agent");
  await page.keyboard.press("Enter");
  await rows.first().getByText("attempt failed").waitFor();
  assert.deepEqual(await findings(page), []);
  clean(page);
  await page.close();
  await rm(folder, { recursive: true });
});
