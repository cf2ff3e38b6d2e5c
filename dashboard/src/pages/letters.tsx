// SPDX-License-Identifier: Apache-2.0
// The dead-letter desk: what nobody could finish, and what somebody decides about it.
import { useState } from "preact/hooks";
import { Failed, get, part, post } from "../api.ts";
import { lines } from "../diff.ts";
import { useLive } from "../live.ts";
import { useMay, useSeat } from "../me.ts";
import { Act, Ask, Asked, Badge, Empty, Facts, Fault, Id, Table, When } from "../parts.tsx";
import { letter, refine, task, usePlace } from "../route.ts";
import type { DeadLetter, DecidedMany, Groups, Handoff, Handoffs } from "../wire.ts";
import { count, pretty, target } from "../words.ts";
import { Changes } from "./task.tsx";

interface Seen {
  groups: Groups;
  letters: Handoffs;
}

const HOURS_MS = 3_600_000;

export function LettersPage() {
  const { at, query } = usePlace();
  const all = query.get("all") === "yes";
  const find = query.get("find") ?? "";
  const live = useLive<Seen>(`letters ${all}`, async (signal) => {
    const [groups, letters] = await Promise.all([
      get<Groups>("/v1/dead-letters/groups", {}, signal),
      get<Handoffs>("/v1/dead-letters", { all, limit: 200 }, signal),
    ]);
    return { groups, letters };
  });
  return (
    <>
      <h1>Dead letters</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
        <label class="line">
          <input type="checkbox" checked={all} onChange={() => refine(at, { all: all ? "" : "yes", find })} /> also those decided on
        </label>
        <label>
          Text
          <input type="search" value={find}
            onInput={(event) => refine(at, { all: all ? "yes" : "", find: (event.currentTarget as HTMLInputElement).value })} />
        </label>
      </form>
      <Asked live={live}>
        {({ groups, letters }) => {
          const fits = (one: Handoff) => find === "" || JSON.stringify(one).toLowerCase().includes(find.toLowerCase());
          const shown = letters.handoffs.filter(fits);
          return (
            <>
              {groups.groups.length ? <Grouped groups={groups} again={live.again} /> : null}
              <h2>One by one</h2>
              {shown.length === 0 ? <Empty>Nothing waits for a decision.</Empty> : (
                <Table label="Dead letters" head={["Handoff", "From", "To", "Reason", "Attempts", "Reviewer", "Offered", "Decided"]}>
                  {shown.map((one) => (
                    <tr key={one.handoff_id}>
                      <td><Id id={one.handoff_id} to={letter(one.handoff_id)} /></td>
                      <td>{one.from_agent}</td>
                      <td>{target(one.to)}</td>
                      <td>{one.dead_letter?.reason}</td>
                      <td>{one.attempts.length}</td>
                      <td>{one.reviewer ?? ""}</td>
                      <td><When at={one.offered_at} /></td>
                      <td>{decided(one)}</td>
                    </tr>
                  ))}
                </Table>
              )}
            </>
          );
        }}
      </Asked>
    </>
  );
}

function decided(one: Handoff) {
  const is = one.dead_letter;
  if (is?.redriven_to) return <>went on as <Id id={is.redriven_to} to={task(one.task_id)} /></>;
  if (is?.discarded) return <Badge word="discarded" />;
  if (is?.closed) return <Badge word={`closed: ${is.closed}`} />;
  return "";
}

/** Alike letters together, decided on at once, after a look at which ones those are. */
function Grouped({ groups, again }: { groups: Groups; again: () => void }) {
  const may = useMay();
  return (
    <>
      <h2>By what they died of</h2>
      <Table label="Groups of dead letters" head={["Count", "To", "Reason", "Message", "Hint", "Decide on all"]}>
        {groups.groups.map((group) => (
          <tr key={group.fingerprint}>
            <td class="num">{count(group.count)}</td>
            <td>{target(group.to)}</td>
            <td>{group.type ?? group.reason}</td>
            <td class="wrap">{group.message ?? ""}</td>
            <td class="wrap">{group.hint ?? ""}</td>
            <td>{may("dead_letter_decide_many") ? <Bulk fingerprint={group.fingerprint} again={again} /> : null}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

function Bulk({ fingerprint, again }: { fingerprint: string; again: () => void }) {
  const { by } = useSeat();
  const [dry, setDry] = useState<DecidedMany | null>(null);
  const decide = (ruling: unknown, dry_run: boolean, hours?: string) =>
    post<DecidedMany>("/v1/dead-letters/decide", {
      by, fingerprint, decision: ruling, dry_run,
      ...(Number(hours) > 0 ? { expires_in_ms: Math.round(Number(hours) * HOURS_MS) } : {}),
    });
  const refused = (done: DecidedMany) => {
    const bad = done.results.find((one) => one.error);
    if (bad?.error) throw new Failed(409, bad.error as never);
  };
  const preview = dry ? (
    <p role="status">
      {count(dry.results.length)} letters; {count(dry.results.filter((one) => one.error).length)} would be refused.
    </p>
  ) : null;
  return (
    <div class="row">
      <Act label="Which ones?" run={async () => setDry(await decide("retry", true))} />
      {preview}
      <Ask label="Replay all" title="Replay all of these" done={again}
        fields={[{ name: "hours", label: "Time they may take, in hours (empty: as before)", optional: true }]}
        run={async ({ hours }) => refused(await decide("retry", false, hours))} />
      <Ask label="Reroute all" title="Send all of these to somebody else" done={again}
        fields={[{ name: "to", label: "Agent, or *capability" }]}
        run={async ({ to }) => refused(await decide({ reroute: named(to ?? "") }, false))} />
      <Ask label="Discard all" title="Discard all of these" danger fields={[{ name: "reason", label: "Reason" }]} done={again}
        run={async ({ reason }) => refused(await decide({ abort: reason }, false))} />
    </div>
  );
}

export function named(text: string): { agent: string } | { capability: string } {
  return text.startsWith("*") ? { capability: text.slice(1) } : { agent: text };
}

export function LetterPage({ id }: { id: string }) {
  const { by } = useSeat();
  const may = useMay();
  const live = useLive<DeadLetter>(`letter ${id}`, (signal) => get(`/v1/dead-letters/${part(id)}`, {}, signal));
  const related = useLive<Groups>("groups", (signal) => get("/v1/dead-letters/groups", {}, signal));
  const act = <T,>(what: string, body: object) => post<T>(`/v1/dead-letters/${part(id)}/${what}`, { by, ...body });
  const span = (hours: string | undefined) =>
    Number(hours) > 0 ? { expires_in_ms: Math.round(Number(hours) * HOURS_MS) } : {};
  const hours = { name: "hours", label: "Time it may take now, in hours (empty: as before)", optional: true };
  return (
    <Asked live={live}>
      {(one) => {
        const open = one.state === "dead_lettered" && !one.dead_letter?.redriven_to && !one.dead_letter?.discarded && !one.dead_letter?.closed;
        const alike = related.value?.groups.find((group) => group.handoffs.includes(one.handoff_id));
        const others = alike?.handoffs.filter((other) => other !== one.handoff_id) ?? [];
        return (
          <>
            <h1>Dead letter <span class="id">{one.handoff_id}</span> <Badge word={open ? "undecided" : "decided"} tone={open ? "bad" : "good"} /></h1>
            {one.reviewer ? (
              <div class="note warn" role="status">{one.reviewer} is deciding on this{one.reviewer === by ? " (you)" : ""}.</div>
            ) : null}
            <Facts rows={[
              ["Task", <Id id={one.task_id} to={task(one.task_id)} />],
              ["From", one.from_agent],
              ["To", target(one.to)],
              ["Reason", one.dead_letter?.reason],
              ["Hint", alike?.hint],
              ["Offered", <When at={one.offered_at} />],
              ["Declined because", one.declines?.map((it) => `${pretty(it)}`).join("; ")],
              ["Waits in a circle", one.waits_in_circle],
              ["Discarded because", one.discarded_because],
              ["Rejected because", one.rejected_because],
              ["Went on as", one.dead_letter?.redriven_to ? <Id id={one.dead_letter.redriven_to} to={task(one.task_id)} /> : null],
              ["Related failures", others.length ? others.slice(0, 12).map((other) => <><Id id={other} to={letter(other)} /> </>) : null],
            ]} />
            {open ? (
              <div class="row">
                {may("dead_letter_take") && one.reviewer !== by
                  ? <Act label="Take for an hour" done={live.again} run={() => act("take", { for_ms: HOURS_MS })} /> : null}
                {may("dead_letter_take") && one.reviewer === by
                  ? <Act label="Give back" done={live.again} run={() => act("take", { for_ms: 0 })} /> : null}
                {may("dead_letter_redrive")
                  ? <Ask label="Replay" title="Replay it as it is" fields={[hours]} done={live.again}
                      run={(values) => act("redrive", span(values.hours))} /> : null}
                {may("dead_letter_amend") ? <Edit one={one} done={live.again} run={(body) => act("amend", body)} /> : null}
                {may("dead_letter_reroute")
                  ? <Ask label="Reroute" title="Send it to somebody else" fields={[{ name: "to", label: "Agent, or *capability" }, hours]}
                      done={live.again} run={(values) => act("reroute", { to: named(values.to ?? ""), ...span(values.hours) })} /> : null}
                {may("dead_letter_answer")
                  ? <Ask label="Answer" title="Decide what was open, and replay it with that" done={live.again}
                      fields={[{ name: "decision", label: "Decision", rows: 3 }, { name: "why", label: "Why", optional: true, rows: 2 }, hours]}
                      run={(values) => act("answer", {
                        decision: { decision: values.decision, ...(values.why ? { why: values.why } : {}) }, ...span(values.hours),
                      })} /> : null}
                {may("dead_letter_discard")
                  ? <Ask label="Discard" title="Discard it" danger fields={[{ name: "reason", label: "Reason" }]} done={live.again}
                      run={({ reason }) => act("discard", { reason })} /> : null}
              </div>
            ) : null}
            <h2>Attempts</h2>
            {one.reports.length === 0 && one.attempts.length === 0 ? <Empty>Nobody took it.</Empty> : (
              <Table label="Attempts" head={["Attempt", "Agent", "Ended", "Report"]}>
                {one.attempts.map((attempt) => {
                  const report = one.reports.find((it) => it.attempt === attempt.number);
                  return (
                    <tr key={attempt.number}>
                      <td>{attempt.number}</td>
                      <td>{attempt.agent}</td>
                      <td>{attempt.ended ? <Badge word={attempt.ended} /> : ""} {attempt.ended_at ? <When at={attempt.ended_at} /> : null}</td>
                      <td>{report ? <pre tabIndex={0}>{pretty(report.report)}</pre> : ""}</td>
                    </tr>
                  );
                })}
              </Table>
            )}
            <h2>Envelope</h2>
            <pre tabIndex={0}>{pretty(one.envelope_content)}</pre>
          </>
        );
      }}
    </Asked>
  );
}

/** Another payload or receiver: what would change is shown before it is sent. */
function Edit({ one, run, done }: { one: DeadLetter; run: (body: object) => Promise<unknown>; done: () => void }) {
  const before = pretty(one.envelope_content?.payload ?? {});
  const read = (text: string): { payload?: unknown; wrong?: string } => {
    try {
      return { payload: JSON.parse(text) };
    } catch (error) {
      return { wrong: String(error instanceof Error ? error.message : error) };
    }
  };
  return (
    <Ask label="Edit and replay" title="Edit and replay" done={done}
      fields={[
        { name: "payload", label: "Payload (JSON)", rows: 14, value: before },
        { name: "ask", label: "What it is asked to do (empty: as before)", optional: true, rows: 2 },
        { name: "to", label: "Agent, or *capability (empty: the same)", optional: true },
      ]}
      run={(values) => {
        const { payload, wrong } = read(values.payload ?? "");
        if (wrong) throw new Failed(400, { code: "invalid_json", message: wrong, hint: "correct the payload" });
        const changed = values.payload !== before;
        return run({
          ...(changed ? { payload } : {}),
          ...(values.ask ? { ask: values.ask } : {}),
          ...(values.to ? { to: named(values.to) } : {}),
        });
      }}>
      {(values) => {
        const { payload, wrong } = read(values.payload ?? "");
        if (wrong) return <Fault failed={new Failed(400, { code: "invalid_json", message: wrong, hint: "" })} />;
        return (
          <>
            <h3>What changes</h3>
            <Changes changes={lines(before, pretty(payload))} />
          </>
        );
      }}
    </Ask>
  );
}

