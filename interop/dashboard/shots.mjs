// Takes the pictures of the documents: a broker with something to see, each page, in one size.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Broker, Browser } from "./stage.mjs";

const out = new URL("../../docs/pictures/", import.meta.url).pathname;
await mkdir(out, { recursive: true });
const folder = await mkdtemp(join(tmpdir(), "tasuki-shots-"));
const routes = join(folder, "pipelines.json");
await writeFile(routes, JSON.stringify({ pipelines: [{
  name: "endpoint", version: 3, first: "code", stages: [
    { name: "code", to: { capability: "write-code" }, next: [{ to: "review" }] },
    { name: "review", to: { agent: "lead" }, next: [
      { when: { action: ["changes_requested"] }, to: "code" },
      { when: { payload: [{ path: "/risk", at_least: 7 }] }, to: "sign-off" },
      { fan: { stages: ["unit", "load"], join: "report", need: 1, deadline_ms: 900000 } }] },
    { name: "sign-off", to: { agent: "owner" }, needs_approval: true, next: [{ to: "end" }] },
    { name: "unit", to: { agent: "unit-tester" }, next: [{ to: "end" }] },
    { name: "load", to: { agent: "load-tester" }, next: [{ to: "end" }] },
    { name: "report", to: { agent: "writer" }, next: [{ to: "end" }] },
  ],
}] }));
const broker = await Broker.start(["--pipelines", routes]);
const browser = await Browser.start();

async function work() {
  for (let n = 0; n < 5; n += 1) {
    await broker.post("/v1/pipelines/endpoint/start", {
      from_agent: "lead", intent: `Add the report of week ${n}`, payload: { type: "feature" },
    });
  }
  for (let n = 0; n < 3; n += 1) {
    const { claims: [code] } = await broker.post("/v1/claims", { agent: "coder", capabilities: ["write-code"] });
    await broker.post(`/v1/handoffs/${code.handoff_id}/complete`, {
      claim_id: code.claim_id, fence: code.fence, payload: { type: "change", branch: `week-${n}` },
    });
  }
  const review = await broker.claim("lead");
  await broker.post(`/v1/handoffs/${review.handoff_id}/complete`, {
    claim_id: review.claim_id, fence: review.fence, payload: { type: "review", risk: 2 },
  });
  for (const [to, completeness_per_mille, token_count, budget] of [["writer", 1000, 700, 4000], ["summariser", 910, 7900, 8000], ["analyst", 760, 3900, 4000]]) {
    for (let n = 0; n < 3; n += 1) {
      await broker.offer({ to: { agent: to }, metadata: { completeness_per_mille, token_count, budget } });
    }
  }
  const rules = ["Do not change the database schema", "Answer in English"];
  for (let n = 0; n < 6; n += 1) {
    await broker.offer({ intent: `Add the endpoint GET /orders/${n}`, constraints: rules, project: "orders" });
  }
  for (let n = 0; n < 4; n += 1) {
    const claim = await broker.claim("reviewer");
    await broker.post(`/v1/handoffs/${claim.handoff_id}/complete`, {
      claim_id: claim.claim_id, fence: claim.fence, payload: { type: "review", verdict: "changes requested" },
      follow_ups: [{
        to: { agent: "coder" }, payload: { type: "change", file: "orders.rs" }, ask: "Handle the empty list",
        add_constraints: ["Keep the public API as it is"], decisions: [{ decision: "Return 404 for unknown orders", why: "clients expect it" }],
      }],
    });
  }
  const claim = await broker.claim("coder");
  await broker.post(`/v1/handoffs/${claim.handoff_id}/complete`, {
    claim_id: claim.claim_id, fence: claim.fence, payload: { type: "change" },
    follow_ups: [{ to: { agent: "tester" }, payload: { type: "change" }, ask: "Run the tests" }],
  });
  const test = await broker.claim("tester");
  await broker.post(`/v1/handoffs/${test.handoff_id}/fail`, {
    claim_id: test.claim_id, fence: test.fence, class: "permanent", type: "missing_type",
    message: "OrderItem is not exported from types.rs", hint: "export it, then run again",
  });
  const asking = await broker.claim("coder");
  await broker.post(`/v1/handoffs/${asking.handoff_id}/ask`, {
    claim_id: asking.claim_id, fence: asking.fence, kind: "input", text: "Which currency do prices have?",
  });
  await broker.offer({ to: { agent: "deployer" }, needs_approval: true, ask: "Deploy it to production" });
  return test.task_id ?? (await broker.get("/v1/dead-letters")).handoffs[0].task_id;
}

const task = await work();
const { handoffs } = await broker.get("/v1/dead-letters");
const page = await browser.page();
await page.setViewportSize({ width: 1180, height: 760 });
const shots = {
  overview: "", tasks: "tasks", task: `tasks/${task}`, diff: `tasks/${task}?tab=Diff`, prompt: `tasks/${task}?tab=Prompt`,
  "dead-letters": "letters", "dead-letter": `letters/${handoffs[0].handoff_id}`, inbox: "inbox", agents: "agents", pipelines: "pipelines", fidelity: "fidelity",
  alerts: "alerts", audit: "audit",
};
for (const [name, where] of Object.entries(shots)) {
  await page.goto(`${broker.url}/ui/#/${where}`);
  await page.reload();
  await page.waitForSelector("main h1");
  await page.waitForFunction(() => !document.querySelector("main")?.textContent?.includes("Loading…"));
  if (name === "audit") {
    await page.getByRole("button", { name: "Check everything" }).click();
    await page.getByText("Every entry fits").waitFor();
    await page.getByLabel("By whom").fill("agent:reviewer");
    await page.getByRole("button", { name: "Search the log" }).click();
    await page.getByRole("region", { name: "Entries" }).waitFor();
    await page.evaluate(() => scrollTo(0, 0));
  }
  await page.screenshot({ path: `${out}${name}.png` });
}
await browser.stop();
await broker.stop();
await rm(folder, { recursive: true });
