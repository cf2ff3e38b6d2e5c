// SPDX-License-Identifier: Apache-2.0
// Smaller pages: pipelines, fidelity, alerts, audit, population.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, Failed, get, post, text } from "../api.ts";
import { Bar, Route } from "../charts.tsx";
import { useLive } from "../live.ts";
import { useMay } from "../me.ts";
import { Act, Ask, Asked, Badge, Empty, Facts, Fault, Id, Table, When } from "../parts.tsx";
import { events, type LogEvent } from "../log.ts";
import { series } from "../series.ts";
import { letter, link } from "../route.ts";
import type { AlertRules, Alerts, Handoffs, Pipeline, Pipelines, ReadyView, TargetsHealth, Verdict } from "../wire.ts";
import { count, pretty, short, span, target } from "../words.ts";
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
      <Route pipeline={one} at={(stage) => {
        const here = at(stage);
        return {
          busy: here.filter((it) => UNDER_WAY.includes(it.state)).length,
          dead: here.filter((it) => it.state === "dead_lettered").length,
        };
      }} />
      <Table label={`Stages of ${one.name}`} head={["Stage", "To", "Then", { text: "Under way", num: true }, { text: "Dead letters", num: true }]}>
        {one.stages.map((stage) => {
          const here = at(stage.name);
          const next = stage.next.map((rule) => {
            const it = rule as { to?: string; fan?: { stages: string[]; join: string } };
            return it.to ?? (it.fan ? `${it.fan.stages.join(" and ")}, joined in ${it.fan.join}` : "");
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

/** What of a metric belongs to a target, added up. */
const of = (all: ReturnType<typeof series>, metric: string, labels: Record<string, string>) =>
  all.filter((one) => one.name === metric && Object.entries(labels).every(([name, value]) => one.labels[name] === value))
    .reduce((sum, one) => sum + one.value, 0);

export function FidelityPage() {
  const may = useMay();
  const live = useLive("fidelity", async (signal) => {
    const [health, metrics] = await Promise.all([
      get<TargetsHealth>("/v1/health/targets", {}, signal),
      may("metrics_show") ? text("/metrics", signal) : "",
    ]);
    return { targets: health.targets, metrics: series(metrics) };
  });
  const percent = (value: number | null | undefined) => (value == null ? "–" : `${(value / 10).toFixed(1)} %`);
  return (
    <>
      <h1>Fidelity</h1>
      <p class="faint">How much of what senders referred to reached receivers, what was trimmed and fetched all the same, and how well budgets fit.</p>
      <Asked live={live}>
        {({ targets, metrics }) => targets.length === 0 ? <Empty>Nobody has been offered anything yet.</Empty> : (
          <>
            <Table label="Fidelity by target" head={["Target", { text: "Offers", num: true }, "Completeness", "Budget used", { text: "With gaps", num: true }, { text: "Regretted", num: true }, "Hops", "Advice"]}>
              {targets.map((one) => {
                const used = one.utilisation_per_mille;
                const whole = one.completeness_per_mille;
                const hops = one.hops.map((n, depth) => (n ? `${depth}: ${n}` : "")).filter(Boolean).join(", ");
                const tone = whole == null ? "idle" : whole < 800 ? "bad" : whole < 950 ? "warn" : "good";
                const to = typeof one.target === "string" ? one.target
                  : "agent" in one.target ? `agent:${one.target.agent}` : `capability:${(one.target as { capability: string }).capability}`;
                const regretted = of(metrics, "handoff_trims_fetched_total", { target: to });
                return (
                  <tr key={target(one.target)}>
                    <td><a href={link(["agents", target(one.target)])}>{target(one.target)}</a></td>
                    <td class="num">{count(one.offers)}</td>
                    <td class="tight">{whole == null ? "–" : <><Bar share={whole / 1000} tone={tone} /> {percent(whole)} <Badge word={tone === "bad" ? "alert" : tone === "warn" ? "investigate" : "good"} tone={tone} /></>}</td>
                    <td class="tight">{used == null ? "–" : <><Bar share={used / 1000} tone={used > 950 ? "warn" : "busy"} /> {percent(used)}</>}</td>
                    <td class="num">{count(of(metrics, "handoff_offers_with_gaps_total", { target: to }))}</td>
                    <td class="num">{count(regretted)}</td>
                    <td>{hops}</td>
                    <td class="wrap">{advice(used, regretted)}</td>
                  </tr>
                );
              })}
            </Table>
            {metrics.length ? (
              <>
                <h2>What assemblies by this broker passed less of</h2>
                <Facts rows={[
                  ["As a summary", count(of(metrics, "tasuki_items_trimmed_total", { to: "summary" }))],
                  ["As one line", count(of(metrics, "tasuki_items_trimmed_total", { to: "stub" }))],
                  ["In the receipt only", count(of(metrics, "tasuki_items_trimmed_total", { to: "listed" }))],
                  ["Constraints that did not arrive", count(of(metrics, "handoff_constraint_violations_total", {}))],
                ]} />
                <p class="faint">Regretted is what a receiver fetched because its envelope had passed less of it.</p>
              </>
            ) : null}
          </>
        )}
      </Asked>
    </>
  );
}

function advice(used: number | null | undefined, regretted: number): string {
  if (used == null) return "";
  if (used > 950) return regretted ? "is trimmed hard, and what was left out is fetched: raise its budget" : "is trimmed hard: a higher budget would pass more";
  if (regretted) return "fetches what was left out: raise its budget, or pin what it needs";
  return used < 300 ? "uses little of its budget: it could be lower" : "fits";
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
      <Search />
    </>
  );
}

/** How many entries are read at a time, and how many are shown. */
const WINDOW = 2000;
const SHOWN_MAX = 200;

/** Looks through the log, the newest first. Nothing is kept for it: the log is read as far as needed. */
function Search() {
  const [found, setFound] = useState<LogEvent[]>([]);
  const [said, setSaid] = useState("");
  const [failed, setFailed] = useState<Failed | undefined>(undefined);
  const stop = useRef<AbortController | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => () => stop.current?.abort(), []);
  const look = async (event: Event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const word = (name: string) => String(form.get(name) ?? "").trim().toLowerCase();
    const [kind, actor, words] = [word("kind").replaceAll(" ", "_"), word("actor"), word("text")];
    stop.current?.abort();
    const abort = new AbortController();
    stop.current = abort;
    setBusy(true);
    setFailed(undefined);
    setFound([]);
    const hits: LogEvent[] = [];
    try {
      const { head } = await get<{ head: string }>("/v1/stats", {}, abort.signal);
      const [epoch, last] = head.split("-");
      let end = Number(last);
      while (end > 0 && hits.length < SHOWN_MAX && !abort.signal.aborted) {
        const begin = Math.max(0, end - WINDOW);
        const some = await events(begin === 0 ? "0" : `${epoch}-${begin}`, WINDOW, abort.signal);
        const fits = (one: LogEvent) =>
          (kind === "" || one.record.kind.includes(kind))
          && (actor === "" || one.record.actor.toLowerCase().includes(actor))
          && (words === "" || JSON.stringify(one).toLowerCase().includes(words));
        hits.push(...some.filter((one) => Number(one.position.split("-").at(-1)) <= end && fits(one)).reverse());
        end = begin;
        setFound(hits.slice(0, SHOWN_MAX));
        setSaid(`${count(Math.min(hits.length, SHOWN_MAX))} found among ${count(Number(last) - end)} of ${count(Number(last))} entries`);
      }
      if (Number(last) === 0) setSaid("The log is empty.");
    } catch (error) {
      if (error instanceof Failed) setFailed(error);
      else if (!abort.signal.aborted) throw error;
    } finally {
      if (stop.current === abort) setBusy(false);
    }
  };
  return (
    <section aria-label="Search of the log">
      <h2>Search</h2>
      <form class="filters" onSubmit={(event) => void look(event)}>
        <label>What happened<input name="kind" size={18} placeholder="dead_lettered" /></label>
        <label>By whom<input name="actor" size={18} placeholder="agent:coder" /></label>
        <label>Any text<input name="text" size={24} /></label>
        <button type="submit" class="main">Search the log</button>
        {busy ? <button type="button" onClick={() => stop.current?.abort()}>Stop</button> : null}
      </form>
      <p class="faint" role="status">{said}</p>
      <Fault failed={failed} />
      {found.length ? (
        <Table label="Entries" head={["Position", "When", "Event", "By", "Task", "Hash", "Details"]}>
          {found.map((one) => {
            const { at, actor, kind, task_id, v: _v, ...rest } = one.record;
            return (
              <tr key={one.position}>
                <td>{one.position}</td>
                <td><When at={at} /></td>
                <td>{kind.replaceAll("_", " ")}</td>
                <td>{actor}</td>
                <td>{rest.handoff_id ? <Id id={task_id} to={link(["tasks", task_id], { tab: "Audit" })} /> : <Id id={task_id} />}</td>
                <td><span class="id" title={one.hash}>{short(one.hash)}</span></td>
                <td><details><summary>Show</summary><pre tabIndex={0}>{pretty(rest)}</pre></details></td>
              </tr>
            );
          })}
        </Table>
      ) : null}
    </section>
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

interface FindingOf {
  kind: string;
  subject: string;
  effect: number;
  n: number;
  p_value?: number | null;
  text: string;
  examples?: { task_id: string; handoff_id: string }[];
}

export function PopulationPage() {
  const may = useMay();
  const live = useLive<{ findings: FindingOf[] } | null>("population", async (signal) =>
    may("population_show") ? await get<{ findings: FindingOf[] }>("/v1/population", {}, signal) : null);
  return (
    <>
      <h1>Population</h1>
      <Asked live={live}>
        {(seen) => seen === null
          ? <Empty>Nothing looks at populations of agents yet.</Empty>
          : seen.findings.length === 0 ? <Empty>Nothing unusual.</Empty> : (
            <Table label="Findings" head={["What", "Who", "Effect", { text: "n", num: true }, "Behind it"]}>
              {seen.findings.map((one) => (
                <tr key={`${one.kind}${one.subject}`}>
                  <td class="wrap">{one.text}</td>
                  <td>{one.subject}</td>
                  <td>{one.effect.toFixed(2)}</td>
                  <td class="num">{count(one.n)}</td>
                  <td>{one.examples?.slice(0, 5).map((it) => <a key={it.handoff_id} href={link(["tasks", it.task_id])}>{it.handoff_id} </a>)}</td>
                </tr>
              ))}
            </Table>
          )}
      </Asked>
    </>
  );
}

