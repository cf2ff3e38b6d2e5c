// SPDX-License-Identifier: Apache-2.0
// A broker for tests: the real one, with a store of its own, on a free port, gone afterwards.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findServer } from "./server.js";

const LOG_LINES_MAX = 200;

/** A broker that lives as long as an `await using` block. */
export class Broker {
  /** Where it is, once it runs. */
  url = "";
  readonly #log: string[] = [];
  #process: ChildProcess | undefined;

  private constructor(
    readonly data: string,
    private readonly options: string[],
    private readonly owned: boolean,
  ) {}

  /** Starts one; `options` are those of `tasuki serve`. With `data` its store outlives it. */
  static async start(options: string[] = [], data?: string): Promise<Broker> {
    const place = data ?? (await mkdtemp(join(tmpdir(), "tasuki-")));
    const broker = new Broker(place, options, data === undefined);
    await broker.start();
    return broker;
  }

  /** The token of the first administrator, where callers have to show who they are. */
  async adminToken(): Promise<string> {
    return (await readFile(join(this.data, "admin.token"), "utf8")).trim();
  }

  /** Starts it, on the port it had before, and returns when it takes work. */
  async start(): Promise<void> {
    const listen = this.url ? this.url.replace(/^\w+:\/\//, "") : "127.0.0.1:0";
    const binary = findServer() ?? "tasuki";
    const given = ["serve", "--data", this.data, "--listen", listen, ...this.options];
    // What is configured for the user's own broker is not for this one.
    const env = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("TASUKI_")),
    );
    const child = spawn(binary, given, { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    child.stderr.on("data", (chunk) => this.#keep(String(chunk)));
    await new Promise<void>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", () => reject(new Error(`it did not start:\n${this.log()}`)));
      createInterface(child.stdout).on("line", (line) => {
        this.#keep(`${line}\n`);
        const found = line.match(/^API: +(\S+)\/v1$/);
        if (found?.[1]) this.url = found[1];
        if (line.trim() === "ready") resolve();
      });
    });
  }

  /** Ends it as an operator would, or as a power cut would. */
  async stop(signal: "SIGTERM" | "SIGKILL" = "SIGTERM"): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  /** The last of what it wrote. */
  log(): string {
    return this.#log.join("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.owned) await rm(this.data, { recursive: true, force: true });
  }

  #keep(text: string): void {
    this.#log.push(text);
    this.#log.splice(0, Math.max(0, this.#log.length - LOG_LINES_MAX));
  }
}
