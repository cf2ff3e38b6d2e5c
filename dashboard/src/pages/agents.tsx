// SPDX-License-Identifier: Apache-2.0
// Who is known, what each can do and does, and what may be done about it.
import { get, part, post } from "../api.ts";
import { useLive } from "../live.ts";
import { useMay } from "../me.ts";
import { Act, Ask, Asked, Badge, Empty, Facts, Id, Table, When } from "../parts.tsx";
import { link } from "../route.ts";
import type { Agent, Agents, Handoffs, TargetHealth, TargetsHealth, Tokens } from "../wire.ts";
import { count, pretty, span, target } from "../words.ts";
import { Latest } from "./overview.tsx";

export function AgentsPage() {
  const live = useLive("agents", async (signal) => {
    const [agents, targets] = await Promise.all([
      get<Agents>("/v1/agents", { limit: 1000 }, signal),
      get<TargetsHealth>("/v1/health/targets", {}, signal),
    ]);
    return { agents: agents.agents, targets: targets.targets };
  });
  return (
    <>
      <h1>Agents</h1>
      <Asked live={live}>
        {({ agents, targets }) => {
          const known = new Set(agents.map((one) => one.agent_id));
          const unnamed = targets.filter((one) => !known.has(target(one.target)));
          return (
            <>
              {agents.length + unnamed.length === 0 ? <Empty>Nobody is known yet.</Empty> : null}
              {agents.length ? (
                <Table label="Agents" head={["Agent", "Here", "Standing", { text: "Holds", num: true }, "Breaker", "Kept its promises", "Last seen"]}>
                  {agents.map((one) => {
                    const health = targets.find((it) => target(it.target) === one.agent_id);
                    const tries = (one.observed ?? []).reduce((sum, it) => sum + it.recent_tries, 0);
                    const good = (one.observed ?? []).reduce((sum, it) => sum + it.recent_successes, 0);
                    return (
                      <tr key={one.agent_id}>
                        <td><a href={link(["agents", one.agent_id])}>{one.agent_id}</a></td>
                        <td>{one.live ? <Badge word="live" /> : <Badge word="away" />}</td>
                        <td><Badge word={one.standing} /></td>
                        <td class="num">{one.holding}</td>
                        <td>{health ? <Badge word={health.breaker} tone={health.breaker === "closed" ? "good" : "bad"} /> : ""}</td>
                        <td>{tries ? `${good} of ${tries}` : ""}{one.observed?.some((it) => it.breaks_sla) ? <> <Badge word="below promise" tone="bad" /></> : null}</td>
                        <td><When at={one.last_seen} /></td>
                      </tr>
                    );
                  })}
                </Table>
              ) : null}
              {unnamed.length ? (
                <>
                  <h2>Names without a manifest, and capabilities</h2>
                  <Table label="Other targets" head={["Target", "Listens", "Breaker", { text: "Offers", num: true }]}>
                    {unnamed.map((one) => (
                      <tr key={target(one.target)}>
                        <td><a href={link(["agents", target(one.target)])}>{target(one.target)}</a></td>
                        <td>{one.live ? <Badge word="live" /> : <Badge word="nobody" tone="warn" />}</td>
                        <td><Badge word={one.breaker} tone={one.breaker === "closed" ? "good" : "bad"} /></td>
                        <td class="num">{count(one.offers)}</td>
                      </tr>
                    ))}
                  </Table>
                </>
              ) : null}
            </>
          );
        }}
      </Asked>
    </>
  );
}

interface Seen {
  agent: Agent | null;
  health: TargetHealth | undefined;
  queue: Handoffs;
  tokens: Tokens | null;
}

export function AgentPage({ name }: { name: string }) {
  const may = useMay();
  const isCapability = name.startsWith("*");
  const bare = isCapability ? name.slice(1) : name;
  const live = useLive<Seen>(`agent ${name}`, async (signal) => {
    const [agent, targets, queue, tokens] = await Promise.all([
      isCapability ? null : get<Agents>("/v1/agents", { limit: 1000 }, signal)
        .then(({ agents }) => agents.find((one) => one.agent_id === bare) ?? null),
      get<TargetsHealth>("/v1/health/targets", {}, signal),
      get<Handoffs>("/v1/handoffs", { [isCapability ? "to_capability" : "to_agent"]: bare, state: "pending", limit: 50 }, signal),
      may("token_list") && !isCapability ? get<Tokens>("/v1/tokens", {}, signal).catch(() => null) : null,
    ]);
    return { agent, queue, tokens, health: targets.targets.find((one) => target(one.target) === name) };
  });
  const on = isCapability ? { capability: bare } : { agent: bare };
  return (
    <Asked live={live}>
      {({ agent, health, queue, tokens }) => (
        <>
          <h1>{name} {agent ? <Badge word={agent.standing} /> : null} {agent?.live || health?.live ? <Badge word="live" /> : <Badge word="away" tone="warn" />}</h1>
          {health?.paused ? <div class="note warn">Paused since <When at={health.paused.since} />{health.paused.until ? <> until <When at={health.paused.until} /></> : null}.</div> : null}
          <Facts rows={[
            ["Holds", agent ? count(agent.holding) : null],
            ["Last seen", agent ? <When at={agent.last_seen} /> : null],
            ["Breaker", health ? <><Badge word={health.breaker} tone={health.breaker === "closed" ? "good" : "bad"} />{health.reset_in_ms ? ` next try in ${span(health.reset_in_ms)}` : ""}</> : null],
            ["Failures in a row", health ? String(health.failures_in_row) : null],
            ["Offers", health ? count(health.offers) : null],
            ["Completeness", health?.completeness_per_mille != null ? `${health.completeness_per_mille / 10} %` : null],
          ]} />
          <div class="row">
            {may("target_pause") && !health?.paused
              ? <Ask label="Pause" title={`Pause ${name}`} fields={[{ name: "minutes", label: "For how many minutes (empty: until resumed)", optional: true }]}
                  done={live.again}
                  run={({ minutes }) => post("/v1/targets/pause", { target: on, ...(Number(minutes) > 0 ? { for_ms: Number(minutes) * 60_000 } : {}) })} /> : null}
            {may("target_resume") && health?.paused
              ? <Act label="Resume" run={() => post("/v1/targets/resume", { target: on })} done={live.again} /> : null}
            {may("agent_drain") && agent?.standing === "active"
              ? <Act label="Drain" run={() => post(`/v1/agents/${part(bare)}/drain`)} done={live.again} /> : null}
            {may("agent_resume") && agent?.standing === "draining"
              ? <Act label="End draining" run={() => post(`/v1/agents/${part(bare)}/resume`)} done={live.again} /> : null}
            {may("agent_set_breaker") && health && health.breaker !== "closed"
              ? <Act label="Reset the breaker" run={() => post(`/v1/agents/${part(bare)}/breaker`, {})} done={live.again} /> : null}
          </div>
          <h2>Records against promise</h2>
          {agent?.observed?.length ? (
            <Table label="Records" head={["Capability", { text: "Tries", num: true }, { text: "Good", num: true }, { text: "Lost", num: true }, { text: "Late", num: true }, "Mean", "Promised", ""]}>
              {agent.observed.map((one) => (
                <tr key={one.capability ?? ""}>
                  <td>{one.capability ?? "by name"}</td>
                  <td class="num">{one.tries}</td>
                  <td class="num">{one.successes}</td>
                  <td class="num">{one.losses}</td>
                  <td class="num">{one.late}</td>
                  <td>{span(one.mean_ms)}</td>
                  <td>{one.declared_sla ?? ""}</td>
                  <td>{one.breaks_sla ? <Badge word="below promise" tone="bad" /> : null}</td>
                </tr>
              ))}
            </Table>
          ) : <Empty>Nothing is known of its work yet.</Empty>}
          <h2>Queue</h2>
          {queue.handoffs.length ? <Latest handoffs={queue} /> : <Empty>Nothing waits for it.</Empty>}
          {agent?.keys.length ? (
            <>
              <h2>Keys</h2>
              <Table label="Keys" head={["Key", "Enrolled", "Ends", ""]}>
                {agent.keys.map((key) => (
                  <tr key={key.key_id}>
                    <td><span class="id">{key.key_id}</span></td>
                    <td><When at={key.enrolled_at} /></td>
                    <td>{key.ends_at ? <When at={key.ends_at} /> : ""}</td>
                    <td>{may("key_revoke") ? <Act label="Revoke" danger run={() => post(`/v1/agents/${part(bare)}/keys/${part(key.key_id)}/revoke`)} done={live.again} /> : null}</td>
                  </tr>
                ))}
              </Table>
            </>
          ) : null}
          {tokens?.tokens.some((one) => one.agent_id === bare) ? (
            <>
              <h2>Tokens</h2>
              <Table label="Tokens" head={["Token", "For", "Issued", "Made by", "Ends", ""]}>
                {tokens.tokens.filter((one) => one.agent_id === bare).map((one) => (
                  <tr key={one.token_id}>
                    <td><Id id={one.token_id} /></td>
                    <td>{one.purpose}</td>
                    <td><When at={one.issued_at} /></td>
                    <td>{one.made_by ?? ""}</td>
                    <td>{one.ended_at ? "ended" : one.expires_at ? <When at={one.expires_at} /> : ""}</td>
                    <td>{may("token_revoke") && !one.ended_at ? <Act label="Revoke" danger run={() => post(`/v1/tokens/${part(one.token_id)}/revoke`)} done={live.again} /> : null}</td>
                  </tr>
                ))}
              </Table>
            </>
          ) : null}
          {agent?.manifest ? <><h2>Manifest</h2><pre tabIndex={0}>{pretty(agent.manifest)}</pre></> : null}
        </>
      )}
    </Asked>
  );
}
