// SPDX-License-Identifier: Apache-2.0
// One task: who owns it now, what happened, what was passed on, and what can be done about it.
import { useState } from "preact/hooks";
import { address, get, part, post } from "../api.ts";
import { Bar, Graph, Waterfall } from "../charts.tsx";
import { between, type Change } from "../diff.ts";
import { useLive } from "../live.ts";
import { useMay, useSeat } from "../me.ts";
import { Act, Ask, Asked, Badge, Empty, Facts, Id, Panel, Table, Tabs, When } from "../parts.tsx";
import { letter, link, refine, task as taskLink, usePlace } from "../route.ts";
import type { Artifacts, ChainEvent, Envelope, Handoff, HandoffWithResult, HolderMessages, Prompt, TaskChain, TaskWithParts, WaitsFor } from "../wire.ts";
import { count, pretty, short, span, target } from "../words.ts";

interface Seen {
  task: TaskWithParts;
  chain: TaskChain;
}

const TABS = ["Run", "Handoffs", "Diff", "Prompt", "Constraints", "Audit"];

export function TaskPage({ id }: { id: string }) {
  const { at, query } = usePlace();
  const tab = TABS.includes(query.get("tab") ?? "") ? (query.get("tab") as string) : "Run";
  const live = useLive<Seen>(`task ${id}`, async (signal) => {
    const [task, chain] = await Promise.all([
      get<TaskWithParts>(`/v1/tasks/${part(id)}`, {}, signal),
      get<TaskChain>(`/v1/tasks/${part(id)}/events`, {}, signal),
    ]);
    return { task, chain };
  });
  return (
    <Asked live={live}>
      {({ task, chain }) => (
        <>
          <h1>Task <span class="id">{task.task_id}</span> <Badge word={task.state} /></h1>
          <Now task={task} chain={chain} again={live.again} />
          <Tabs label="Parts of the task" names={TABS} now={tab} pick={(name) => refine(at, { tab: name })} />
          <Panel name={tab}>
            {tab === "Run" ? <Run task={task} /> : null}
            {tab === "Handoffs" ? <Hops task={task} again={live.again} /> : null}
            {tab === "Diff" ? <Diffs task={task} /> : null}
            {tab === "Prompt" ? <Read task={task} /> : null}
            {tab === "Constraints" ? <Constraints task={task} /> : null}
            {tab === "Audit" ? <Log chain={chain} /> : null}
          </Panel>
        </>
      )}
    </Asked>
  );
}

const byHop = (one: Handoff, other: Handoff) => one.hop - other.hop || one.offered_at.localeCompare(other.offered_at);

function intentOf(chain: TaskChain): string | null {
  for (const { body } of chain.events) {
    const intent = (body as { intent?: unknown } | null | undefined)?.intent;
    if (typeof intent === "string") return intent;
  }
  return null;
}

function Now({ task, chain, again }: { task: TaskWithParts; chain: TaskChain; again: () => void }) {
  const { by } = useSeat();
  const may = useMay();
  const open = task.state === "open";
  const underWay = task.handoffs.find((one) => one.handoff_id === task.live_handoff);
  const letters = task.handoffs.filter((one) => one.state === "dead_lettered" && !one.dead_letter?.discarded && !one.dead_letter?.redriven_to);

  return (
    <>
      <div class="note">
        Owned by <strong>{task.owner}</strong>
        {underWay ? <>, offered to <strong>{target(underWay.to)}</strong>, <Badge word={underWay.state} /></> : null}
        {underWay?.holder ? <> with {underWay.holder.agent}, lease {span(underWay.holder.lease_left_ms)}</> : null}
        {task.on_hold ? <> · held by the dead letter <Id id={task.on_hold} to={letter(task.on_hold)} /></> : null}
        {task.taints?.length ? <> · <Badge word="tainted" /> by {task.taints.map((one) => short(one.source)).join(", ")}</> : null}
      </div>
      {letters.map((one) => (
        <div class="note bad" key={one.handoff_id}>
          Hop {one.hop} to {target(one.to)} is a dead letter ({one.dead_letter?.reason}).{" "}
          <a href={letter(one.handoff_id)}>Decide on it</a>
        </div>
      ))}
      <Facts rows={[
        ["Intent", intentOf(chain)],
        ["Opened", <><When at={task.opened_at} /> by {task.opened_by}</>],
        ["Ended", task.ended_at ? <><When at={task.ended_at} />, after {span(Date.parse(task.ended_at) - Date.parse(task.opened_at))}</> : null],
        ["Deadline", task.deadline ? <When at={task.deadline} /> : null],
        ["Project", task.project],
        ["Correlation", task.correlation_id],
        ["Coordinator", task.coordinator],
        ["Below", task.parent_task_id ? <Id id={task.parent_task_id} to={taskLink(task.parent_task_id)} /> : null],
        ["Spent", task.spent ? `${count(task.spent.tokens)} tokens, ${task.spent.cost}` : null],
        ["Budget", task.budget ? `${task.budget.tokens == null ? "" : `${count(task.budget.tokens)} tokens `}${task.budget.cost ?? ""}` : null],
      ]} />
      <div class="row">
        {open && may("task_cancel") ? (
          <Ask label="Cancel task" title="Cancel this task" danger fields={[{ name: "reason", label: "Reason" }]} done={again}
            run={({ reason }) => post(`/v1/tasks/${part(task.task_id)}/cancel`, { reason, by })} />
        ) : null}
        {underWay?.holder && may("handoff_message") ? (
          <Ask label="Message to the holder" title={`Tell ${underWay.holder.agent} something`}
            fields={[{ name: "text", label: "Message", rows: 4 }]} done={again}
            run={({ text }) => post(`/v1/handoffs/${part(underWay.handoff_id)}/messages`, { text, by })} />
        ) : null}
        <a href={address(`/v1/tasks/${part(task.task_id)}/export`)} download={`${task.task_id}.json`}>Export the chain</a>
      </div>
    </>
  );
}

function Run({ task }: { task: TaskWithParts }) {
  const [asItRan, setAsItRan] = useState(false);
  if (task.handoffs.length === 0) return <Empty>Nothing was handed over.</Empty>;
  return (
    <>
      <h2>Hops, attempts and waits</h2>
      <Waterfall handoffs={[...task.handoffs].sort(byHop)} />
      <h2>Graph</h2>
      <label class="line">
        <input type="checkbox" checked={asItRan} onChange={() => setAsItRan(!asItRan)} /> as it ran, a box for each hop
      </label>
      <Graph task={task} asItRan={asItRan} />
      {task.children.length ? (
        <>
          <h2>Tasks below</h2>
          <Table label="Tasks below" head={["Task", "State", "Owner", "Opened"]}>
            {task.children.map((child) => (
              <tr key={child.task_id}>
                <td><Id id={child.task_id} to={taskLink(child.task_id)} /></td>
                <td><Badge word={child.state} /></td>
                <td>{child.owner}</td>
                <td><When at={child.opened_at} /></td>
              </tr>
            ))}
          </Table>
        </>
      ) : null}
      {task.output ? <><h2>Result</h2><pre tabIndex={0}>{pretty(task.output.payload)}</pre></> : null}
    </>
  );
}

export function why(wait: WaitsFor): string {
  switch (wait.kind) {
    case "approval": return `approval${wait.approvers?.length ? ` by ${wait.approvers.join(", ")}` : ""}`;
    case "task": return `task ${short(wait.task_id)}, which is ${wait.state}`;
    case "time": return `the time ${wait.until}`;
    case "breaker": return `the breaker of ${target(wait.target)}, which is ${wait.breaker}`;
    case "paused": return `${target(wait.target)}, which is paused`;
    case "letter": return `the dead letter ${short(wait.handoff_id)}`;
    case "claim": return wait.listening ? `${target(wait.target)} to claim it` : `${target(wait.target)}, for whom nobody listens`;
    case "holder": return `${wait.agent}, who works on it`;
    case "decision": return `a decision (${wait.reason})`;
    default: return "something";
  }
}

function Hops({ task, again }: { task: TaskWithParts; again: () => void }) {
  return (
    <>
      {[...task.handoffs].sort(byHop).map((one) => (
        <Hop key={one.handoff_id} id={one.handoff_id} task={task} again={again} />
      ))}
    </>
  );
}

function Hop({ id, task, again }: { id: string; task: TaskWithParts; again: () => void }) {
  const { by } = useSeat();
  const may = useMay();

  const live = useLive<HandoffWithResult>(`hop ${id}`, (signal) => get(`/v1/handoffs/${part(id)}`, {}, signal));
  const [open, setOpen] = useState(false);
  return (
    <Asked live={live}>
      {(one) => (
        <section class="card" style="margin:.6rem 0" aria-label={`Hop ${one.hop} to ${target(one.to)}`}>
          <strong>Hop {one.hop}: {one.from_agent} → {target(one.to)}</strong> <Badge word={one.state} />{" "}
          <span class="faint">status {one.status.replaceAll("_", " ")}</span>
          <Facts rows={[
            ["Handoff", <span class="id">{one.handoff_id}</span>],
            ["Offered", <When at={one.offered_at} />],
            ["Delivered", one.delivered_at ? <When at={one.delivered_at} /> : "not yet"],
            ["Waits for", one.waits_for?.length ? one.waits_for.map(why).join("; ") : null],
            ["Held by", one.holder ? `${one.holder.agent}, lease ${span(one.holder.lease_left_ms)}` : null],
            ["Tried before", one.tried?.length ? one.tried.map(target).join(", ") : null],
            ["Envelope", <span class="id">{one.envelope}</span>],
            ["Instead of", one.redrive_of ? <Id id={one.redrive_of} to={letter(one.redrive_of)} /> : null],
          ]} />
          {one.attempts.length ? (
            <Table label={`Attempts of hop ${one.hop}`} head={["Attempt", "Agent", "Claimed", "Ended", "How"]}>
              {one.attempts.map((attempt) => (
                <tr key={attempt.number}>
                  <td>{attempt.number}</td>
                  <td>{attempt.agent}</td>
                  <td><When at={attempt.claimed_at} /></td>
                  <td>{attempt.ended_at ? <When at={attempt.ended_at} /> : "under way"}</td>
                  <td>{attempt.ended ? <Badge word={attempt.ended} /> : null}{attempt.late ? " with a late report" : ""}</td>
                </tr>
              ))}
            </Table>
          ) : null}
          <div class="row">
            <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>Envelope and words</button>
            {may("task_branch") ? (
              <Act label={`Branch from hop ${one.hop}`} done={again}
                run={async () => {
                  const made = await post<{ task_id: string }>(`/v1/tasks/${part(task.task_id)}/branch`, { hop: one.hop, by });
                  location.hash = taskLink(made.task_id);
                }} />
            ) : null}
            {one.question && may("question_answer") ? <a href={link(["inbox"])}>Answer its question</a> : null}
          </div>
          {open ? <Words id={id} /> : null}
          {one.output ? <details><summary>Result</summary><pre tabIndex={0}>{pretty(one.output)}</pre></details> : null}
        </section>
      )}
    </Asked>
  );
}

function Words({ id }: { id: string }) {
  const live = useLive(`words ${id}`, async (signal) => {
    const [envelope, messages, artifacts] = await Promise.all([
      get<Envelope>(`/v1/handoffs/${part(id)}/envelope`, {}, signal),
      get<HolderMessages>(`/v1/handoffs/${part(id)}/messages`, {}, signal).catch(() => ({ messages: [] })),
      get<Artifacts>(`/v1/handoffs/${part(id)}/artifacts`, {}, signal).catch(() => ({ artifacts: [] })),
    ]);
    return { envelope, messages: messages.messages, artifacts: artifacts.artifacts };
  });
  return (
    <Asked live={live}>
      {({ envelope, messages, artifacts }) => (
        <>
          {messages.length ? (
            <ul class="plain">
              {messages.map((one) => (
                <li key={one.number}>
                  <strong>{one.by}</strong>: {one.text ?? pretty(one.details)}{" "}
                  <span class="faint">{one.acknowledged_by ? `read by ${one.acknowledged_by}` : "not read yet"}</span>
                </li>
              ))}
            </ul>
          ) : null}
          {artifacts.length ? (
            <ul class="plain">
              {artifacts.map((one) => (
                <li key={`${one.name}${one.version}`}>
                  <code>{one.name}</code> version {one.version}, {one.type}, {count(one.bytes)} bytes, by {one.by}
                </li>
              ))}
            </ul>
          ) : null}
          <h3>Envelope</h3>
          <pre tabIndex={0}>{pretty(envelope)}</pre>
        </>
      )}
    </Asked>
  );
}

function useEnvelopes(task: TaskWithParts) {
  const hops = [...task.handoffs].sort(byHop);
  const key = `envelopes ${hops.map((one) => one.envelope).join(" ")}`;
  return useLive(key, async (signal) => {
    const envelopes = await Promise.all(
      hops.map((one) => get<Envelope>(`/v1/handoffs/${part(one.handoff_id)}/envelope`, {}, signal).catch(() => null)),
    );
    return hops.map((handoff, index) => ({ handoff, envelope: envelopes[index] ?? null }));
  });
}

function Diffs({ task }: { task: TaskWithParts }) {
  const live = useEnvelopes(task);
  return (
    <Asked live={live}>
      {(hops) => hops.length < 2 ? <Empty>There is one hop, so there is nothing to compare.</Empty> : (
        <>
          {hops.slice(1).map(({ handoff, envelope }, index) => {
            const before = hops[index];
            if (!before?.envelope || !envelope) return <Empty key={handoff.handoff_id}>An envelope cannot be read.</Empty>;
            return (
              <section key={handoff.handoff_id}>
                <h2>Hop {before.handoff.hop} to hop {handoff.hop}</h2>
                <Changes changes={between(before.envelope, envelope)} />
              </section>
            );
          })}
        </>
      )}
    </Asked>
  );
}

export function Changes({ changes }: { changes: Change[] }) {
  if (changes.length === 0) return <Empty>Nothing differs.</Empty>;
  return (
    <div class="diff">
      {changes.map((change, index) => {
        const text = `${change.part}: ${change.text}`;
        if (change.how === "added") return <ins key={index}><span class="quiet">added </span>+ {text}</ins>;
        if (change.how === "gone") return <del key={index}><span class="quiet">gone </span>− {text}</del>;
        return <div key={index}>~ {text}</div>;
      })}
    </div>
  );
}

function Read({ task }: { task: TaskWithParts }) {
  const hops = [...task.handoffs].sort(byHop);
  const [id, pick] = useState(hops.at(-1)?.handoff_id ?? "");
  const live = useLive<Prompt>(id ? `prompt ${id}` : null, (signal) => get(`/v1/handoffs/${part(id)}/prompt`, {}, signal));
  if (hops.length === 0) return <Empty>Nothing was handed over.</Empty>;
  return (
    <>
      <div class="row">
        <label>
          Hop
          <select value={id} onChange={(event) => pick((event.currentTarget as HTMLSelectElement).value)}>
            {hops.map((one) => <option key={one.handoff_id} value={one.handoff_id}>{one.hop}: to {target(one.to)}</option>)}
          </select>
        </label>
      </div>
      <Asked live={live}>
        {(prompt) => (
          <>
            <Facts rows={[
              ["Tokens", `${count(prompt.token_count)}${prompt.bound ? ` of ${count(prompt.bound)}` : ""}, counted as ${prompt.tokenizer}`],
              ["Of the envelope", `${count(prompt.assembled_tokens)}, and ${count(prompt.token_count - prompt.assembled_tokens)} of the claim`],
              ["Left out", prompt.left_out ? `${count(prompt.left_out.items)} items, ${count(prompt.left_out.tokens)} tokens` : "nothing"],
              ["Shortened", prompt.shortened ? "yes, to fit the reader" : null],
            ]} />
            <h3>As the receiver reads it</h3>
            <pre tabIndex={0}>{prompt.prompt}</pre>
            <Parts id={id} prompt={prompt} />
          </>
        )}
      </Asked>
    </>
  );
}

/** What of the context is in it, in which form, and how many tokens all of it is. */
function Parts({ id, prompt }: { id: string; prompt: Prompt }) {
  const live = useLive<Envelope>(`parts ${id}`, (signal) => get(`/v1/handoffs/${part(id)}/envelope`, {}, signal));
  return (
    <Asked live={live}>
      {(envelope) => {
        const items = envelope.context ?? [];
        if (items.length === 0) return null;
        const most = Math.max(1, ...items.map((one) => one.tokens ?? 0));
        return (
          <>
            <h3>Its parts</h3>
            <Table label="Parts of the context" head={["Part", "Kind", "Passed as", { text: "Tokens of all of it", num: true }, ""]}>
              {items.map((one) => (
                <tr key={one.id}>
                  <td class="wrap">{one.title ?? one.about ?? one.id}{one.pinned ? <> <Badge word="pinned" /></> : null}</td>
                  <td>{one.kind ?? ""}</td>
                  <td>
                    <Badge word={String(one.form)} tone={one.form === "full" ? "good" : "warn"} />
                    {prompt.missing?.includes(one.id) ? <> <Badge word="not in the text" tone="bad" /></> : null}
                  </td>
                  <td class="num">{one.tokens == null ? "" : count(one.tokens)}</td>
                  <td>{one.tokens == null ? null : <Bar share={one.tokens / most} tone="busy" />}</td>
                </tr>
              ))}
            </Table>
            {prompt.fetch?.length ? <p class="faint">The rest is fetched from: {prompt.fetch.join(", ")}</p> : null}
          </>
        );
      }}
    </Asked>
  );
}

function Constraints({ task }: { task: TaskWithParts }) {
  const live = useEnvelopes(task);
  return (
    <Asked live={live}>
      {(hops) => {
        const first = new Map<string, { hop: number; text: string; kind: string; issuer: string; hard: boolean; last: number }>();
        for (const { handoff, envelope } of hops) {
          for (const one of envelope?.constraints ?? []) {
            const known = first.get(one.id);
            if (known) known.last = handoff.hop;
            else first.set(one.id, { hop: handoff.hop, last: handoff.hop, ...one });
          }
        }
        const last = hops.at(-1)?.handoff.hop ?? 0;
        if (first.size === 0) return <Empty>Nothing binds this task.</Empty>;
        return (
          <Table label="Constraints" head={["Constraint", "Kind", "By", "Since hop", "Still binds"]}>
            {[...first].map(([id, one]) => (
              <tr key={id}>
                <td class="wrap">{one.text}</td>
                <td>{one.kind}{one.hard ? "" : ", soft"}</td>
                <td>{one.issuer}</td>
                <td>{one.hop}</td>
                <td>{one.last === last ? <Badge word="yes" tone="good" /> : <Badge word={`until hop ${one.last}`} tone="warn" />}</td>
              </tr>
            ))}
          </Table>
        );
      }}
    </Asked>
  );
}

export function Log({ chain }: { chain: { events: ChainEvent[] } }) {
  return (
    <>
      <p class="faint">Each entry has the hash of the one before in its own. The <a href={link(["audit"])}>audit page</a> checks the whole log.</p>
      <Table label="Events" head={["#", "When", "Event", "By", "Handoff", "Hash", "Details"]}>
        {chain.events.map((one) => {
          const { at, actor, kind, handoff_id, task_id: _task, index, v: _v, ...rest } = one.record as Record<string, unknown> & {
            at: string; actor: string; kind: string; handoff_id?: string; index: number;
          };
          return (
            <tr key={one.hash}>
              <td class="num">{index}</td>
              <td><When at={at} /></td>
              <td>{kind.replaceAll("_", " ")}</td>
              <td>{String(actor)}</td>
              <td>{handoff_id ? <Id id={handoff_id} /> : ""}</td>
              <td><span class="id" title={one.hash}>{short(one.hash)}</span></td>
              <td><details><summary>Show</summary><pre tabIndex={0}>{pretty({ ...rest, ...(one.body ? { body: one.body } : {}) })}</pre></details></td>
            </tr>
          );
        })}
      </Table>
    </>
  );
}
