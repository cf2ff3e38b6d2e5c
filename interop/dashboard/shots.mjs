// Takes the pictures of the documents: a broker with something to see, each page, in one size.
import { mkdir } from "node:fs/promises";
import { Broker, Browser } from "./stage.mjs";

const out = new URL("../../docs/pictures/", import.meta.url).pathname;
await mkdir(out, { recursive: true });
const broker = await Broker.start();
const browser = await Browser.start();

async function work() {
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
  "dead-letters": "letters", "dead-letter": `letters/${handoffs[0].handoff_id}`, inbox: "inbox", agents: "agents", fidelity: "fidelity", audit: "audit",
};
for (const [name, where] of Object.entries(shots)) {
  await page.goto(`${broker.url}/ui/#/${where}`);
  await page.reload();
  await page.waitForSelector("main h1");
  await page.waitForFunction(() => !document.querySelector("main")?.textContent?.includes("Loading…"));
  await page.screenshot({ path: `${out}${name}.png` });
}
await browser.stop();
await broker.stop();
