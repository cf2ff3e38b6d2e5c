// SPDX-License-Identifier: Apache-2.0
// Smaller pages: pipelines, fidelity, alerts, audit.
import { useState } from "preact/hooks";
import { address, get, post } from "../api.ts";
import { useLive } from "../live.ts";
import { useMay } from "../me.ts";
import { Act, Ask, Asked, Badge, Empty, Facts, Table, When } from "../parts.tsx";
import { letter, link } from "../route.ts";
import type { AlertRules, Alerts, Handoffs, Pipeline, Pipelines, ReadyView, TargetsHealth, Verdict } from "../wire.ts";
import { count, span, target } from "../words.ts";
import { why } from "./task.tsx";

export function PipelinesPage() {
  const live = useLive("pipelines", async (signal) => {
    const [pipelines, handoffs] = await Promise.all([
      get<Pipelines>("/v1/pipelines", {}, signal),
      get<Handoffs>("/v1/handoffs", { limit: 1000 }, signal),
    ]);
    return { pipelines: pipelines.pipelines, handoffs: handoffs.handoffs };
  });
  return (
    <>
      <h1>Pipelines</h1>
      <Asked live={live}>
        {({ pipelines, handoffs }) => pipelines.length === 0
          ? <Empty>No pipeline is known. They come from a file: tasuki serve --pipelines FILE.</Empty>
          : <>{pipelines.map((one) => <PipelineCard key={one.name} one={one} handoffs={handoffs} />)}</>}
      </Asked>
    </>
  );
}

const UNDER_WAY = ["pending", "scheduled", "awaiting_approval", "claimed", "in_progress", "input_required"];

function PipelineCard({ one, handoffs }: { one: Pipeline; handoffs: Handoffs["handoffs"] }) {
  const at = (stage: string) => handoffs.filter((it) => {
    const place = it.contract?.stage as { pipeline?: string; stage?: string } | null | undefined;
    return place?.pipeline === one.name && place.stage === stage;
  });
  return (
    <section aria-label={`Pipeline ${one.name}`}>
      <h2>{one.name} <span class="faint">version {one.version}</span></h2>
      <Table label={`Stages of ${one.name}`} head={["Stage", "To", "Then", { text: "Under way", num: true }, { text: "Dead letters", num: true }]}>
        {one.stages.map((stage) => {
          const here = at(stage.name);
          const next = stage.next.map((rule) => {
            const it = rule as { to?: string; fan?: { members?: { to?: string }[]; join?: string } };
            return it.to ?? `fan${it.fan?.join ? `, joined in ${it.fan.join}` : ""}`;
          });
          return (
            <tr key={stage.name}>
              <td>{stage.name}{stage.name === one.first ? <> <Badge word="first" /></> : null}</td>
              <td>{target(stage.to)}</td>
              <td>{next.length ? next.join(", ") : "the end"}</td>
              <td class="num">{count(here.filter((it) => UNDER_WAY.includes(it.state)).length)}</td>
              <td class="num">{count(here.filter((it) => it.state === "dead_lettered").length)}</td>
            </tr>
          );
        })}
      </Table>
      <p class="faint">Counted among the latest 1,000 handoffs.</p>
    </section>
  );
}

export function FidelityPage() {
  const live = useLive<TargetsHealth>("fidelity", (signal) => get("/v1/health/targets", {}, signal));
  const percent = (value: number | null | undefined) => (value == null ? "–" : `${(value / 10).toFixed(1)} %`);
  return (
    <>
      <h1>Fidelity</h1>
      <p class="faint">How much of what senders referred to reached receivers, and how well budgets fit.</p>
      <Asked live={live}>
        {({ targets }) => targets.length === 0 ? <Empty>Nobody has been offered anything yet.</Empty> : (
          <Table label="Fidelity by target" head={["Target", { text: "Offers", num: true }, "Completeness", "Budget used", "Hops", "Advice"]}>
            {targets.map((one) => {
              const used = one.utilisation_per_mille;
              const whole = one.completeness_per_mille;
              const hops = one.hops.map((n, depth) => (n ? `${depth}: ${n}` : "")).filter(Boolean).join(", ");
              return (
                <tr key={target(one.target)}>
                  <td><a href={link(["agents", target(one.target)])}>{target(one.target)}</a></td>
                  <td class="num">{count(one.offers)}</td>
                  <td>{percent(whole)} {whole != null ? <Badge word={whole < 800 ? "alert" : whole < 950 ? "investigate" : "good"} tone={whole < 800 ? "bad" : whole < 950 ? "warn" : "good"} /> : null}</td>
                  <td>{percent(used)}</td>
                  <td>{hops}</td>
                  <td>{used == null ? "" : used < 300 ? "uses little of its budget: it could be lower" : used > 950 ? "is trimmed hard: a higher budget would pass more" : "fits"}</td>
                </tr>
              );
            })}
          </Table>
        )}
      </Asked>
    </>
  );
}

interface Watched {
  now: Alerts;
  rules: AlertRules;
}

export function AlertsPage() {
  const may = useMay();
  const live = useLive<Watched | null>("alerts", async (signal) => {
    if (!may("alert_list")) return null;
    const [now, rules] = await Promise.all([
      get<Alerts>("/v1/alerts", {}, signal),
      get<AlertRules>("/v1/alerts/rules", {}, signal),
    ]);
    return { now, rules };
  });
  const silence = (rule: string | null, target: string | null, minutes: string | undefined, reason: string | undefined) =>
    post("/v1/alerts/silence", {
      ...(rule ? { rule } : {}), ...(target ? { target } : {}),
      for_ms: Math.round(Number(minutes ?? 0) * 60_000), reason: reason ?? "over",
    });
  return (
    <>
      <h1>Alerts</h1>
      <Asked live={live}>
        {(seen) => seen === null ? <Empty>What is measured is not yours to see.</Empty> : (
          <>
            {seen.now.alerts.length === 0 ? <Empty>Nothing is firing, and nothing was.</Empty> : (
              <Table label="Alerts" head={["Rule", "Severity", "State", "Target", "Since", "Value", "What it says", ""]}>
                {seen.now.alerts.map((one) => (
                  <tr key={`${one.rule} ${one.target ?? ""} ${one.since}`}>
                    <td>{one.rule}</td>
                    <td><Badge word={one.severity} /></td>
                    <td><Badge word={one.state} />{one.silenced ? " silenced" : ""}{one.told && !one.told.sent ? " not delivered" : ""}</td>
                    <td>{one.target ?? ""}</td>
                    <td><When at={one.since} /></td>
                    <td>{one.value}</td>
                    <td class="wrap">{one.summary} <span class="faint">{one.action}</span></td>
                    <td>
                      {may("alert_silence") && one.state !== "resolved" && !one.silenced ? (
                        <Ask label="Silence" title={`Silence ${one.rule}`} done={live.again}
                          fields={[{ name: "minutes", label: "For how many minutes" }, { name: "reason", label: "Reason" }]}
                          run={({ minutes, reason }) => silence(one.rule, one.target ?? null, minutes, reason)} />
                      ) : null}
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            {seen.now.silences.length ? (
              <>
                <h2>Silences</h2>
                <Table label="Silences" head={["Rule", "Target", "Until", "By", "Reason", ""]}>
                  {seen.now.silences.map((one) => (
                    <tr key={`${one.rule ?? ""} ${one.target ?? ""}`}>
                      <td>{one.rule ?? "all"}</td>
                      <td>{one.target ?? "all"}</td>
                      <td><When at={one.until} /></td>
                      <td>{one.by}</td>
                      <td class="wrap">{one.reason}</td>
                      <td>{may("alert_silence") ? <Act label="End" done={live.again} run={() => silence(one.rule ?? null, one.target ?? null, "0", "over")} /> : null}</td>
                    </tr>
                  ))}
                </Table>
              </>
            ) : null}
            <h2>Rules</h2>
            <Table label="Rules" head={["Rule", "Severity", "For", "What it says", "What to do"]}>
              {seen.rules.rules.map((one) => (
                <tr key={one.name}>
                  <td>{one.name}{one.built_in ? "" : " (by Prometheus only)"}</td>
                  <td><Badge word={one.severity} /></td>
                  <td>{one.for_ms ? span(one.for_ms) : "at once"}</td>
                  <td class="wrap">{one.summary}</td>
                  <td class="wrap">{one.action}</td>
                </tr>
              ))}
            </Table>
          </>
        )}
      </Asked>
    </>
  );
}

export function AuditPage() {
  const may = useMay();
  const [verdict, setVerdict] = useState<Verdict | null>(null);
  const [wrong, setWrong] = useState("");
  const find = (event: Event) => {
    event.preventDefault();
    const id = (new FormData(event.currentTarget as HTMLFormElement).get("id") as string).trim();
    setWrong("");
    if (id.startsWith("task_")) location.hash = link(["tasks", id], { tab: "Audit" });
    else if (id.startsWith("handoff_")) {
      void get<{ task_id: string }>(`/v1/handoffs/${encodeURIComponent(id)}`)
        .then((one) => { location.hash = link(["tasks", one.task_id], { tab: "Audit" }); })
        .catch((error: unknown) => setWrong(error instanceof Error ? error.message : String(error)));
    } else setWrong("give the id of a task (task_…) or of a handoff (handoff_…)");
  };
  return (
    <>
      <h1>Audit</h1>
      <form class="filters" onSubmit={find}>
        <label>Task or handoff<input name="id" size={44} required /></label>
        <button type="submit">Show its entries</button>
      </form>
      {wrong ? <div class="note bad" role="alert">{wrong}</div> : null}
      {may("audit_verify") ? (
        <>
          <h2>Is the log whole?</h2>
          <div class="row">
            <Act label="Check what is new" run={async () => setVerdict(await get<Verdict>("/v1/audit/verify"))} />
            <Act label="Check everything" run={async () => setVerdict(await get<Verdict>("/v1/audit/verify", { full: true }))} />
          </div>
          {verdict ? (
            <div class={`note ${verdict.intact ? "good" : "bad"}`} role="status">
              {verdict.intact ? "Every entry fits the one before it, and every checkpoint its signature."
                : `The first bad entry is at ${verdict.first_bad?.position}: ${verdict.first_bad?.problem}`}
              <Facts rows={[
                ["Events", count(verdict.events)],
                ["Bodies", count(verdict.bodies)],
                ["Tasks", count(verdict.tasks)],
                ["Checkpoints", count(verdict.checkpoints)],
                ["Not sealed yet", count(verdict.unsealed)],
                ["Keys", verdict.keys.join(", ")],
              ]} />
            </div>
          ) : null}
          <p><a href={address("/v1/audit/export")} download="log.jsonl">Export the whole log</a></p>
        </>
      ) : <Empty>Whoever looks after the whole broker may check its log.</Empty>}
    </>
  );
}

export function ReadyPage() {
  const live = useLive<ReadyView>("ready", (signal) => get("/v1/ready", { limit: 200 }, signal));
  return (
    <>
      <h1>What can start, and what waits</h1>
      <Asked live={live}>
        {(view) => (
          <>
            {(["ready", "held"] as const).map((which) => (
              <div key={which}>
                <h2>{which === "ready" ? "Ready" : "Held back"}</h2>
                {view[which].length === 0 ? <Empty>Nothing.</Empty> : (
                  <Table label={which} head={["Task", "From", "To", "State", "Waits for"]}>
                    {view[which].map((one) => (
                      <tr key={one.handoff_id}>
                        <td><a href={link(["tasks", one.task_id])}>{one.task_id}</a></td>
                        <td>{one.from_agent}</td>
                        <td>{target(one.to)}</td>
                        <td><Badge word={one.state} /></td>
                        <td class="wrap">
                          {one.waits_for.map(why).join("; ")}
                          {one.waits_for.map((wait) => wait.kind === "letter" ? <> <a href={letter(wait.handoff_id)}>decide</a></> : null)}
                        </td>
                      </tr>
                    ))}
                  </Table>
                )}
              </div>
            ))}
          </>
        )}
      </Asked>
    </>
  );
}
