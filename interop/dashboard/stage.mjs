// A broker of the test's own, on a free port, in a folder of its own, and a browser to look at it.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const BIN = process.env.TASUKI_BIN;
const WAIT_MS = 60_000;
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

async function freePort() {
  return await new Promise((found, failed) => {
    const server = createServer();
    server.once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

export class Broker {
  static async start(words = []) {
    const broker = new Broker();
    broker.folder = await mkdtemp(join(tmpdir(), "tasuki-pages-"));
    broker.port = await freePort();
    broker.words = words;
    broker.url = `http://127.0.0.1:${broker.port}`;
    await broker.up();
    return broker;
  }

  async up() {
    const words = ["serve", "--listen", `127.0.0.1:${this.port}`, "--data", join(this.folder, "data"), ...this.words];
    this.said = "";
    this.process = spawn(BIN, words, { stdio: ["ignore", "pipe", "pipe"], cwd: this.folder });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream.on("data", (piece) => { this.said += piece; });
    }
    const until = Date.now() + WAIT_MS;
    while (Date.now() < until) {
      if (this.process.exitCode !== null) throw new Error(`the broker ended: ${this.said}`);
      const ready = await fetch(`${this.url}/readyz`).then((reply) => reply.ok, () => false);
      if (ready) return;
      await new Promise((go) => setTimeout(go, 50));
    }
    throw new Error(`the broker is not ready: ${this.said}`);
  }

  async down(signal = "SIGTERM") {
    const ended = new Promise((go) => this.process.once("exit", go));
    if (this.process.exitCode === null) {
      this.process.kill(signal);
      await ended;
    }
  }

  async stop() {
    await this.down();
    await rm(this.folder, { recursive: true, force: true });
  }

  async ask(method, path, body, headers = {}) {
    const reply = await fetch(this.url + path, {
      method,
      headers: { ...(body ? { "content-type": "application/json" } : {}), ...headers },
      body: body ? JSON.stringify(body) : undefined,
    });
    const text = await reply.text();
    const read = text ? JSON.parse(text) : null;
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return read;
  }

  post(path, body, headers) {
    return this.ask("POST", path, body, headers);
  }

  get(path, headers) {
    return this.ask("GET", path, undefined, headers);
  }

  offer(more = {}) {
    return this.post("/v1/handoffs", {
      from_agent: "coder", to: { agent: "reviewer" }, intent: "Ship the orders endpoint",
      payload: { type: "diff", text: "one line" }, ...more,
    });
  }

  async claim(agent, more = {}) {
    const { claims } = await this.post("/v1/claims", { agent, ...more });
    return claims[0];
  }
}

export class Browser {
  static async start() {
    const browser = new Browser();
    browser.folder = await mkdtemp(join(tmpdir(), "tasuki-browser-"));
    browser.context = await chromium.launchPersistentContext(browser.folder, {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      headless: true,
      viewport: { width: 1280, height: 900 },
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"],
    });
    // For who works on the pages: they are looked at as they are, without building the broker again.
    if (process.env.PAGES) {
      for (const name of ["app.js", "app.css"]) {
        await browser.context.route(`**/ui/${name}`, (route) => route.fulfill({ path: join(process.env.PAGES, name) }));
      }
    }
    return browser;
  }

  async stop() {
    await this.context.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  /** A page that remembers everything that went wrong on it. */
  async page(options = {}) {
    const page = await this.context.newPage();
    page.setDefaultTimeout(30_000);
    page.wrong = [];
    page.on("console", (line) => {
      if (line.type() === "error" && !(options.ignore ?? []).some((text) => line.text().includes(text))) {
        page.wrong.push(line.text());
      }
    });
    page.on("pageerror", (error) => page.wrong.push(String(error)));
    page.outside = [];
    page.on("request", (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (protocol.startsWith("http") && hostname !== "127.0.0.1") page.outside.push(request.url());
    });
    return page;
  }
}

/** What a checker of accessibility finds. It is put in by the browser, past the page's own policy. */
export async function findings(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations);
  return found.map((one) => `${one.id}: ${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")}`);
}
