// SPDX-License-Identifier: Apache-2.0
// What is unusual in how agents work together, against a baseline that one can choose.
import { useState } from "preact/hooks";
import { get } from "../api.ts";
import { useLive } from "../live.ts";
import { useMay } from "../me.ts";
import { Asked, Badge, Empty, Facts, Table, When } from "../parts.tsx";
import { link } from "../route.ts";
import type { PopulationFinding, PopulationReport } from "../wire.ts";
import { count } from "../words.ts";

interface Baseline {
  baseline_from: string;
  baseline_until: string;
  no_baseline: boolean;
}

const FIRST_THIRD: Baseline = { baseline_from: "", baseline_until: "", no_baseline: false };

/** What a field for a time holds, as the broker reads it. */
const time = (local: string): string => local === "" ? "" : new Date(local).toISOString();

export function PopulationPage() {
  const may = useMay();
  const [baseline, setBaseline] = useState(FIRST_THIRD);
  return (
    <>
      <h1>Population</h1>
      {may("population_show")
        ? <><BaselineForm set={setBaseline} /><Report key={JSON.stringify(baseline)} baseline={baseline} /></>
        : <Empty>Only whoever looks after the whole broker sees this: it names agents of all tenants.</Empty>}
    </>
  );
}

function BaselineForm({ set }: { set: (baseline: Baseline) => void }) {
  const choose = (event: Event) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => time((given.get(name) as string | null) ?? "");
    const until = text("until");
    set({
      baseline_from: until === "" ? "" : text("from"),
      baseline_until: until,
      no_baseline: until === "" && given.get("none") !== null,
    });
  };
  return (
    <form class="row" onSubmit={choose} aria-label="Baseline">
      <label>Usual from<input type="datetime-local" name="from" /></label>
      <label>until<input type="datetime-local" name="until" /></label>
      <label class="line"><input type="checkbox" name="none" /> no baseline</label>
      <button type="submit">Compare</button>
    </form>
  );
}

function Report({ baseline }: { baseline: Baseline }) {
  const live = useLive<PopulationReport>(`population ${JSON.stringify(baseline)}`, async (signal) =>
    await get<PopulationReport>("/v1/population", { ...baseline, no_baseline: baseline.no_baseline || null }, signal));
  return (
    <Asked live={live}>
      {(seen) => (
        <>
          <Facts rows={[
            ["Looked at", <>{count(seen.current.handoffs)} handoffs since <When at={seen.current.from} />, {count(seen.agents)} agents</>],
            ["Baseline", seen.baseline
              ? <>{count(seen.baseline.handoffs)} handoffs until <When at={seen.baseline.until} />{seen.baseline_chosen ? "" : " (the first third; nobody chose another)"}</>
              : "none: agents are compared with each other alone"],
            ["False alarms", `at most ${seen.false_alarm_rate * 100} % of honest populations`],
            ["Not all", (seen.bounds_reached ?? []).join("; ")],
          ]} />
          {seen.findings.length === 0 ? <Empty>Nothing unusual.</Empty> : <Findings findings={seen.findings} />}
          <h2>What was looked for</h2>
          <Table label="What was looked for" head={["What", { text: "n", num: true }, { text: "tested", num: true }, "Judged"]}>
            {seen.looked.map((one) => (
              <tr key={one.kind}>
                <td><Badge word={one.kind} tone="idle" /></td>
                <td class="num">{count(one.n)}</td>
                <td class="num">{count(one.tested)}</td>
                <td class="wrap">{one.unjudged ? `no: ${one.unjudged}` : "yes"}</td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </Asked>
  );
}

function Findings({ findings }: { findings: PopulationFinding[] }) {
  return (
    <Table label="Findings" head={["What", "Finding", "Effect", { text: "n", num: true }, { text: "p", num: true }, "Since", "Handoffs behind it"]}>
      {findings.map((one) => (
        <tr key={`${one.kind} ${one.agents.join(" ")} ${one.unit}`}>
          <td><Badge word={one.kind} tone="warn" /></td>
          <td class="wrap">{one.summary}</td>
          <td class="wrap">{one.effect.toFixed(2)} {one.unit}</td>
          <td class="num">{count(one.n)}</td>
          <td class="num">{one.p.toFixed(3)}</td>
          <td><When at={one.since} /></td>
          <td class="wrap">
            {one.behind.slice(-5).map((it) => (
              <a key={it.handoff_id} href={link(["tasks", it.task_id])} title={it.handoff_id}>{it.handoff_id.slice(-6)} </a>
            ))}
          </td>
        </tr>
      ))}
    </Table>
  );
}
