// SPDX-License-Identifier: Apache-2.0
// What is the same for the agents of all frameworks that the suite of `interop/frameworks` plays
// with: it starts one of these programs for each thing that it wants done, and says itself what a
// scripted model replies. `PROGRAM call|transfer|resume|serve JSON`.

import { readFile, writeFile } from "node:fs/promises";
import { Client, type Worker } from "../../src/index.js";

/** What a scripted model says it used for each reply. */
export const USED = { inputTokens: 7, outputTokens: 3 };

/** A scripted model calls a tool, or says something. */
export interface Reply {
  call?: { id: string; name: string; arguments: { [name: string]: string } };
  text?: string;
}

/** What the clients of model providers throw. */
export class ProviderError extends Error {
  constructor(readonly status: number) {
    super(`the provider answers with HTTP ${status}`);
  }
}

/** Asks the suite what its model says to what it reads: outputs of tools, and all as one text. */
export async function reply(outputs: string[], heard: string): Promise<Reply> {
  const body = JSON.stringify({ outputs, heard });
  const response = await fetch(String(process.env.SCRIPT_URL), { method: "POST", body });
  const said = (await response.json()) as Reply & { status?: number };
  if (said.status) throw new ProviderError(said.status);
  return said;
}

/** Tells the suite when a heartbeat has brought a message. */
const listening: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  if (String(input).endsWith("/heartbeat")) {
    const told = (await response.clone().json()) as { messages?: unknown[] };
    if (told.messages?.length) console.log("a message came");
  }
  return response;
};

export const client = new Client({ agent: "lead", fetch: listening });

/** What a framework brings. */
export interface Kit {
  call(to: string, sending: object): Promise<string>;
  /** Hands over, and returns what another process needs to go on. */
  transfer(to: string): Promise<unknown>;
  resume(to: string, kept: unknown): Promise<string>;
  /** An agent as a worker; its tools: `{agent: "call" | "transfer" | "capability" | "question"}`. */
  serve(name: string, tools: { [to: string]: string }, options: object): Worker;
}

export async function main(kit: Kit): Promise<void> {
  const [what, given = "{}"] = process.argv.slice(2);
  const { to, sending, name, tools, options, kept } = JSON.parse(given);
  if (what === "call") console.log(JSON.stringify(await kit.call(to, { client, ...sending })));
  if (what === "transfer") {
    await writeFile(kept, JSON.stringify(await kit.transfer(to)));
    process.kill(process.pid, "SIGKILL");
  }
  if (what === "resume") {
    const before = JSON.parse(await readFile(kept, "utf8"));
    console.log(JSON.stringify(await kit.resume(to, before)));
  }
  if (what === "serve") {
    // Whoever kills the one who started this kills this.
    process.stdin.resume().on("end", () => process.kill(process.pid, "SIGKILL"));
    await kit.serve(name, tools, { client, ...options }).run();
    process.exit();
  }
}
