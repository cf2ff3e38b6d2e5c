// SPDX-License-Identifier: Apache-2.0
// How things are, on one page.
import { get } from "../api.ts";
import { useLive } from "../live.ts";
import { useMay } from "../me.ts";
import { Asked, Badge, Empty, Id, Table, When } from "../parts.tsx";
import { link, task } from "../route.ts";
import type { Alerts, Handoffs, Stats, TargetsHealth } from "../wire.ts";
import { bytes, count, heardTime, span, target } from "../words.ts";

interface Seen {
  stats: Stats;
  targets: TargetsHealth;
  handoffs: Handoffs;
  alerts: Alerts | null;
}

/** Thresholds of what is worth a look, and of what needs one. */
const COMPLETENESS = { warn: 950, bad: 800 };
const FAILING = { warn: 0.005, bad: 0.02 };

export function Overview() {
  const may = useMay();
  const live = useLive<Seen>("overview", async (signal) => {
    const [stats, targets, handoffs, alerts] = await Promise.all([
      get<Stats>("/v1/stats", {}, signal),
      get<TargetsHealth>("/v1/health/targets", {}, signal),
      get<Handoffs>("/v1/handoffs", { limit: 25 }, signal),
      may("alert_list") ? get<Alerts>("/v1/alerts", {}, signal) : null,
    ]);
    heardTime(stats.now);
    return { stats, targets, handoffs, alerts };
  });
  return (
    <>
      <h1>Overview</h1>
      <Asked live={live}>
        {({ stats, targets, handoffs, alerts }) => (
          <>
            <Figures stats={stats} targets={targets} />
            <Alarms targets={targets} alerts={alerts} stats={stats} />
            <div class="two">
              <div>
                <h2>Latest handoffs</h2>
                <Latest handoffs={handoffs} />
              </div>
              <div>
                <h2>Who takes work</h2>
                <Targets targets={targets} />
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

function Figures({ stats, targets }: { stats: Stats; targets: TargetsHealth }) {
  const of = (states: string[]) => (stats.handoffs ?? []).filter((one) => states.includes(one.state));
  const sum = (states: string[]) => of(states).reduce((total, one) => total + one.count, 0);
  const oldest = (states: string[]) => Math.max(0, ...of(states).map((one) => one.oldest_age_ms ?? 0));
  const letters = sum(["dead_lettered"]);
  const waiting = ["pending", "scheduled", "awaiting_approval"];
  const known = targets.targets.filter((one) => one.completeness_per_mille != null);
  const weigh = (pick: (one: TargetsHealth["targets"][number]) => number | null | undefined) => {
    const some = targets.targets.filter((one) => pick(one) != null && one.offers > 0);
    const offers = some.reduce((total, one) => total + one.offers, 0);
    return offers === 0 ? null : some.reduce((total, one) => total + (pick(one) ?? 0) * one.offers, 0) / offers;
  };
  const complete = known.length ? weigh((one) => one.completeness_per_mille) : null;
  const used = weigh((one) => one.utilisation_per_mille);
  const hops = targets.targets.flatMap((one) => one.hops.map((n, depth) => ({ n, depth })));
  const offers = hops.reduce((total, one) => total + one.n, 0);
  const deep = offers ? hops.reduce((total, one) => total + one.n * one.depth, 0) / offers : 0;
  const share = offers ? letters / offers : 0;
  const tone = (value: number | null, limits: { warn: number; bad: number }) =>
    value === null ? "" : value < limits.bad ? "bad" : value < limits.warn ? "warn" : "good";
  return (
    <section class="cards" aria-label="Figures">
      <Card name="Waiting" value={count(sum(waiting))} to={link(["tasks"], { state: "open" })}
        more={oldest(waiting) ? `oldest ${span(oldest(waiting))}` : "nothing waits"} />
      <Card name="Being worked on" value={count(sum(["claimed", "in_progress", "input_required"]))}
        more={`${count(sum(["input_required"]))} wait for an answer`} />
      <Card name="Dead letters" value={count(letters)} tone={letters ? "bad" : "good"} to={link(["letters"])}
        more={letters ? `oldest ${span(oldest(["dead_lettered"]))}` : "nothing to decide"} />
      <Card name="Share that failed" value={`${(share * 100).toFixed(1)} %`}
        tone={share > FAILING.bad ? "bad" : share > FAILING.warn ? "warn" : "good"} more="undecided dead letters to offers" />
      <Card name="Completeness" value={complete === null ? "–" : `${(complete / 10).toFixed(1)} %`}
        tone={tone(complete, COMPLETENESS)} to={link(["fidelity"])} more="of what senders referred to" />
      <Card name="Budget used" value={used === null ? "–" : `${(used / 10).toFixed(0)} %`}
        tone={used !== null && used > 950 ? "warn" : ""} to={link(["fidelity"])} more="of the tokens allowed" />
      <Card name="Hops" value={deep.toFixed(1)} more="on average" />
    </section>
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
    <Table label="Latest handoffs" head={["Handoff", "From", "To", "State", "Offered"]}>
      {handoffs.handoffs.map((one) => (
        <tr key={one.handoff_id}>
          <td><Id id={one.handoff_id} to={task(one.task_id)} /></td>
          <td>{one.from_agent}</td>
          <td>{target(one.to)}</td>
          <td><Badge word={one.state} /></td>
          <td><When at={one.offered_at} /></td>
        </tr>
      ))}
    </Table>
  );
}

function Targets({ targets }: { targets: TargetsHealth }) {
  const unheard = targets.targets.filter((one) => !one.live && one.offers > 0);
  if (targets.targets.length === 0) return <Empty>Nobody has been offered anything yet.</Empty>;
  return (
    <>
      {unheard.map((one) => (
        <div class="note warn" key={target(one.target)}>
          Nobody takes work for <strong>{target(one.target)}</strong> right now.
        </div>
      ))}
      <Table label="Targets" head={["Target", "Listens", "Breaker", { text: "Offers", num: true }, { text: "Failures in a row", num: true }]}>
        {targets.targets.map((one) => (
          <tr key={target(one.target)}>
            <td>{target(one.target)}</td>
            <td>{one.live ? <Badge word="live" /> : <Badge word="nobody" tone="warn" />}</td>
            <td><Badge word={one.breaker} tone={one.breaker === "closed" ? "good" : "bad"} /></td>
            <td class="num">{count(one.offers)}</td>
            <td class="num">{one.failures_in_row}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}
