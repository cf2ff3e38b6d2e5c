// SPDX-License-Identifier: Apache-2.0
// OpenClaw: its agents hand work to those of any other framework and are told the truth about it, and
// take work themselves. What is under way is the broker's, so a restart of the gateway loses nothing.

import { definePluginEntry, type OpenClawPluginApi } from "openclaw/plugin-sdk/plugin-entry";
import { Client, type NewHandoff } from "tasuki";
import { ask, currentRun, type Run, served, why, within } from "tasuki/adapters";
import { type Gateway, turn } from "./turn.js";

interface Served {
  name: string;
  agentId?: string;
  capabilities?: string[];
  concurrency?: number;
  leaseSeconds?: number;
}

interface Config {
  url?: string;
  token?: string;
  agent?: string;
  waitSeconds?: number;
  serve?: Served[];
}

interface Asked {
  to?: string;
  capability?: string;
  task: string;
  constraints?: string[];
  wait?: boolean;
}

const WAIT_S = 120;
/** A gateway blocks its own event loop for many seconds, above all while it starts: no heartbeat then. */
const LEASE_S = 60;
const RUNS = Symbol.for("tasuki.openclaw.runs");

export default definePluginEntry({
  id: "tasuki",
  name: "Tasuki",
  description: "Hands work to agents of any framework, and serves theirs",
  register(api) {
    const config = (api.pluginConfig ?? {}) as Config;
    const client = new Client({
      url: config.url,
      token: config.token,
      agent: config.agent ?? "openclaw",
    });
    const runs = working();
    tools(api, client, config, runs);
    service(api, client, config, runs);
  },
});

/** Which session works on which claim. The gateway calls tools from elsewhere, and registers the plugin
 * more than once in a process. */
function working(): Map<string, Run> {
  const place = globalThis as { [RUNS]?: Map<string, Run> };
  place[RUNS] ??= new Map();
  return place[RUNS];
}

function tools(api: OpenClawPluginApi, client: Client, config: Config, runs: Map<string, Run>) {
  const text = (description: string) => ({ type: "string" as const, description });
  api.registerTool(({ sessionKey }: { sessionKey?: string }) => ({
    name: "tasuki_handoff",
    label: "Hand work over",
    description:
      "Hand work to an agent outside of this gateway, by its name (`to`) or by what it can do (`capability`), and get " +
      "its result. Nothing gets lost: what has no result in time goes on, and tasuki_status tells of it.",
    parameters: {
      type: "object" as const,
      properties: {
        to: text("The name of an agent."),
        capability: text("What the agent must be able to do, where any such agent will do."),
        task: text("All that it needs to know."),
        constraints: {
          type: "array" as const,
          items: { type: "string" as const },
          description: "What binds whoever works on it, word for word.",
        },
        wait: { type: "boolean" as const, description: "false: do not wait for the result." },
      },
      required: ["task"],
      additionalProperties: false,
    },
    async execute(id: string, given: unknown, signal?: AbortSignal) {
      const asked = given as Asked;
      const run = sessionKey === undefined ? undefined : runs.get(sessionKey);
      return said(await handOver(client, config, run, id, asked, signal));
    },
  }));
  api.registerTool({
    name: "tasuki_status",
    label: "How it stands",
    description: "How something that was handed over stands, with its result if there is one.",
    parameters: {
      type: "object" as const,
      properties: { handoff: text("The id, as tasuki_handoff said it: handoff_…") },
      required: ["handoff"],
      additionalProperties: false,
    },
    async execute(_: string, given: unknown) {
      const { handoff } = given as { handoff: string };
      return said(await standing(client, handoff).catch(refusal));
    },
  });
}

/** What a model reads of something that it hands over: what is so, and not what is hoped for. */
async function handOver(
  client: Client,
  config: Config,
  run: Run | undefined,
  key: string,
  { to, capability, task, constraints, wait = true }: Asked,
  signal?: AbortSignal,
): Promise<string> {
  const target = to ?? capability;
  if (!target) return "Nothing was handed over: say `to` or `capability`.";
  const binding = constraints?.length ? { constraints } : {};
  if (run) {
    const sending = { byCapability: to === undefined, ...binding };
    return within(run, () => ask({ to: target, task, key, signal }, sending));
  }
  try {
    const offer: NewHandoff = {
      to: to ?? { capability: target },
      intent: task,
      payload: { type: "request", text: task },
      control: "awaited",
      idempotency_key: key,
      ...binding,
    };
    const handoff = await client.handoff(offer, { signal });
    const waitMs = wait ? (config.waitSeconds ?? WAIT_S) * 1000 : 0;
    const how = { until: "settled" as const };
    await client.wait([handoff], how, { timeoutMs: waitMs, signal });
    return await standing(client, handoff.id);
  } catch (error) {
    return refusal(error);
  }
}

async function standing(client: Client, id: string): Promise<string> {
  const shown = await client.handoffs.show(id);
  if (shown.output) {
    const payload = shown.output.payload as { text?: unknown };
    const text = typeof payload.text === "string" ? payload.text : JSON.stringify(payload);
    const gaps = shown.output.gaps?.length
      ? `\n\nIt has gaps: ${shown.output.gaps.join("; ")}`
      : "";
    return `${id} is ${shown.state}. The result:\n\n${text}${gaps}`;
  }
  const ended = ["failed", "cancelled", "aborted"].includes(shown.state);
  const goesOn = ended ? "" : " It is stored and does not get lost; ask again with tasuki_status.";
  return `${id} has no result: ${why(shown)}.${goesOn}`;
}

function refusal(error: unknown): string {
  return `It was not handed over, or cannot be told of: ${(error as Error).message}`;
}

function said(text: string) {
  return { content: [{ type: "text" as const, text }], details: {} };
}

/** Has the gateway's agents take work, for as long as the gateway runs. */
function service(api: OpenClawPluginApi, client: Client, config: Config, runs: Map<string, Run>) {
  let stop = new AbortController();
  let working: Promise<unknown> = Promise.resolve();
  api.registerService({
    id: "tasuki-worker",
    start({ logger }) {
      stop = new AbortController();
      const all = (config.serve ?? []).map(async (one) => {
        const worker = served(
          async (claim, prompt) => {
            const held = currentRun();
            const session = `agent:${one.agentId ?? "main"}:subagent:tasuki-${claim.handoffId}-${claim.attempt}`;
            if (held) runs.set(session, held);
            try {
              return await turn(api.runtime.subagent as Gateway, session, claim, prompt);
            } finally {
              runs.delete(session);
            }
          },
          one.name,
          {
            client,
            capabilities: one.capabilities,
            concurrency: one.concurrency,
            lease_ms: (one.leaseSeconds ?? LEASE_S) * 1000,
            // What is under way when the gateway ends is given back at once, for its next start.
            graceMs: 0,
            signal: stop.signal,
            log: (line) => logger.info(line),
          },
        );
        await worker.run().catch((error: Error) => logger.error(`${one.name}: ${error.message}`));
      });
      working = Promise.all(all);
    },
    async stop() {
      stop.abort();
      await working;
    },
  });
}
