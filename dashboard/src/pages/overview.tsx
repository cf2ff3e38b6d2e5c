// SPDX-License-Identifier: Apache-2.0
// How things are, on one page.
import { get } from "../api.ts";
import { useLive } from "../live.ts";
import { useMay } from "../me.ts";
import { Asked, Badge, Empty, Id, Table, When } from "../parts.tsx";
import { link, task } from "../route.ts";
import type { Alerts, Handoffs, Overview as Seeds, Stats, TargetsHealth } from "../wire.ts";
import { bytes, count, heardTime, span, target } from "../words.ts";

interface Seen {
  stats: Stats;
  seeds: Seeds;
  targets: TargetsHealth;
  handoffs: Handoffs;
  alerts: Alerts | null;
}

/** Thresholds of what is worth a look, and of what needs one. */
const COMPLETENESS = { warn: 0.95, bad: 0.8 };
const FAILING = { warn: 0.005, bad: 0.02 };

export function Overview() {
  const may = useMay();
  const live = useLive<Seen>("overview", async (signal) => {
    const [stats, seeds, targets, handoffs, alerts] = await Promise.all([
      get<Stats>("/v1/stats", {}, signal),
      get<Seeds>("/v1/overview", {}, signal),
      get<TargetsHealth>("/v1/health/targets", {}, signal),
      get<Handoffs>("/v1/handoffs", { limit: 25 }, signal),
      may("alert_list") ? get<Alerts>("/v1/alerts", {}, signal) : null,
    ]);
    heardTime(stats.now);
    return { stats, seeds, targets, handoffs, alerts };
  });
  return (
    <>
      <h1>Overview</h1>
      <Asked live={live}>
        {({ stats, seeds, targets, handoffs, alerts }) => (
          <>
            <Figures stats={stats} seeds={seeds} />
            <Alarms targets={targets} alerts={alerts} stats={stats} />
            <div class="two">
              <div>
                <h2>Latest handoffs</h2>
                <Latest handoffs={handoffs} />
              </div>
              <div>
                <h2>Who takes work</h2>
                <Targets targets={targets} seeds={seeds} />
              </div>
            </div>
            <p class="faint">
              Tasuki {stats.version}
              {stats.events === undefined ? null : ` · ${count(stats.events)} events since the start`}
              {stats.resident_bytes ? ` · ${bytes(stats.resident_bytes)} of memory` : null}
            </p>
          </>
        )}
      </Asked>
    </>
  );
}

function Card({ name, value, more, tone, to }: {
  name: string;
  value: string;
  more?: string;
  tone?: string;
  to?: string;
}) {
  return (
    <dl class={`card ${tone ?? ""}`} style="margin:0">
      <dt>{to ? <a href={to}>{name}</a> : name}</dt>
      <dd>{value}{more ? <small>{more}</small> : null}</dd>
    </dl>
  );
}

function Figures({ stats, seeds }: { stats: Stats; seeds: Seeds }) {
  const of = (states: string[]) => (stats.handoffs ?? []).filter((one) => states.includes(one.state));
  const sum = (states: string[]) => of(states).reduce((total, one) => total + one.count, 0);
  const oldest = (states: string[]) => Math.max(0, ...of(states).map((one) => one.oldest_age_ms ?? 0));
  const letters = sum(["dead_lettered"]);
  const waiting = ["pending", "scheduled", "awaiting_approval"];
  const seconds = (value: number | null | undefined) => (value == null ? "–" : span(value * 1000));
  const percent = (value: number | null | undefined, digits = 1) => (value == null ? "–" : `${(value * 100).toFixed(digits)} %`);
  const { completeness, failure_rate: failed, token_utilisation: used, delivery } = seeds;
  const whole = completeness == null ? "" : completeness < COMPLETENESS.bad ? "bad" : completeness < COMPLETENESS.warn ? "warn" : "good";
  const failing = failed == null ? "" : failed > FAILING.bad ? "bad" : failed > FAILING.warn ? "warn" : "good";
  return (
    <>
      <section class="cards now" aria-label="Now">
        <Card name="Waiting" value={count(sum(waiting))} to={link(["tasks"], { state: "open" })}
          more={oldest(waiting) ? `oldest ${span(oldest(waiting))}` : "nothing waits"} />
        <Card name="Being worked on" value={count(sum(["claimed", "in_progress", "input_required"]))}
          more={`${count(sum(["input_required"]))} wait for an answer`} />
        <Card name="Dead letters" value={count(letters)} tone={letters ? "bad" : "good"} to={link(["letters"])}
          more={letters ? `oldest ${span(oldest(["dead_lettered"]))}` : "nothing to decide"} />
        <Card name="Alerts" value={count(seeds.firing)} tone={seeds.firing ? "bad" : "good"} to={link(["alerts"])}
          more={seeds.firing ? "are on" : "none is on"} />
      </section>
      <section class="cards" aria-label="Figures">
        <Card name="Delivery, p50" value={seconds(delivery.p50)}
          more={delivery.count ? `p95 ${seconds(delivery.p95)} · p99 ${seconds(delivery.p99)}` : "from offer to first claim"} />
        <Card name="Completeness" value={percent(completeness)} tone={whole} to={link(["fidelity"])}
          more="of what senders referred to; investigate below 95 %, alert below 80 %" />
        <Card name="Share that failed" value={percent(failed)} tone={failing}
          more={`${count(seeds.dead_lettered)} of ${count(seeds.ended)} became dead letters; healthy below 0.5 %`} />
        <Card name="Hops" value={seeds.hop_depth == null ? "–" : seeds.hop_depth.toFixed(1)}
          more="on average when a task was completed" />
        <Card name="Budget used" value={percent(used, 0)} tone={used != null && used > 0.95 ? "warn" : ""} to={link(["fidelity"])}
          more="of the tokens allowed" />
      </section>
    </>
  );
}

function Alarms({ targets, alerts, stats }: { targets: TargetsHealth; alerts: Alerts | null; stats: Stats }) {
  const open = targets.targets.filter((one) => one.breaker !== "closed");
  const paused = targets.targets.filter((one) => one.paused);
  const firing = alerts?.alerts.filter((one) => one.state === "firing" && !one.silenced) ?? [];
  return (
    <section aria-label="What needs a look">
      {stats.disk_full ? <div class="note bad">The disk is almost full: new work is refused.</div> : null}
      {firing.map((one) => (
        <div class={`note ${one.severity === "critical" ? "bad" : "warn"}`} key={`${one.rule}${one.target}`}>
          <Badge word={one.severity} /> <a href={link(["alerts"])}>{one.rule}</a>
          {one.target ? ` ${one.target}` : ""}: {one.summary} <span class="faint">{one.action}</span>
        </div>
      ))}
      {open.map((one) => (
        <div class="note bad" key={`breaker${target(one.target)}`}>
          The breaker of <a href={link(["agents", target(one.target)])}>{target(one.target)}</a> is{" "}
          <Badge word={one.breaker} tone="bad" />
          {one.reset_in_ms ? `, next try in ${span(one.reset_in_ms)}` : ""}
        </div>
      ))}
      {paused.map((one) => (
        <div class="note warn" key={`pause${target(one.target)}`}>
          {target(one.target)} is paused{one.paused?.until ? <> until <When at={one.paused.until} /></> : null}.
        </div>
      ))}
    </section>
  );
}

export function Latest({ handoffs }: { handoffs: Handoffs }) {
  if (handoffs.handoffs.length === 0) return <Empty>Nothing has been handed over yet.</Empty>;
  return (
    <Table label="Latest handoffs" head={["Handoff", "From and to", "State", "Offered"]}>
      {handoffs.handoffs.map((one) => (
        <tr key={one.handoff_id}>
          <td><Id id={one.handoff_id} to={task(one.task_id)} /></td>
          <td class="wrap">{one.from_agent} → {target(one.to)}</td>
          <td><Badge word={one.state} /></td>
          <td><When at={one.offered_at} /></td>
        </tr>
      ))}
    </Table>
  );
}

function Targets({ targets, seeds }: { targets: TargetsHealth; seeds: Seeds }) {
  const name = (one: { target: unknown }) => target(one.target);
  const busy = new Map(seeds.targets.map((one) => [name(one), one]));
  const order = [...targets.targets].sort((one, other) => {
    const rank = (it: typeof one) => seeds.targets.findIndex((seed) => name(seed) === name(it));
    const [a, b] = [rank(one), rank(other)];
    return (a < 0 ? 1e6 : a) - (b < 0 ? 1e6 : b);
  });
  const unheard = order.filter((one) => !one.live && (busy.get(name(one))?.queue ?? 0) > 0);
  if (order.length === 0) return <Empty>Nobody has been offered anything yet.</Empty>;
  return (
    <>
      {unheard.length ? (
        <div class="note warn">
          {unheard.map((one) => (
            <p key={name(one)}>
              Nobody takes work for <strong>{name(one)}</strong> right now; {count(busy.get(name(one))?.queue ?? 0)} waiting,
              the oldest for {span(busy.get(name(one))?.oldest_ms ?? 0)}.
            </p>
          ))}
        </div>
      ) : null}
      <Table label="Targets" head={["Target", "Listens", "Breaker", { text: "Waiting", num: true }, { text: "Held", num: true }, { text: "Failures in a row", num: true }]}>
        {order.map((one) => (
          <tr key={name(one)}>
            <td><a href={link(["agents", name(one)])}>{name(one)}</a></td>
            <td>{one.live ? <Badge word="live" /> : <Badge word="nobody" tone="warn" />}</td>
            <td><Badge word={one.breaker} tone={one.breaker === "closed" ? "good" : "bad"} /></td>
            <td class="num">{count(busy.get(name(one))?.queue ?? 0)}</td>
            <td class="num">{count(busy.get(name(one))?.inflight ?? 0)}</td>
            <td class="num">{one.failures_in_row}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}
