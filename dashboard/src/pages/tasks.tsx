// SPDX-License-Identifier: Apache-2.0
// All tasks, newest first. Only the rows that can be seen are in the page, however many there are.
import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api.ts";
import { useLive } from "../live.ts";
import { Badge, Empty, Fault, Id, When } from "../parts.tsx";
import { refine, task, usePlace } from "../route.ts";
import type { Handoffs, Task, Tasks } from "../wire.ts";
import { count, span, now, target, useTick } from "../words.ts";

const STATES = ["", "open", "dead_lettered", "completed", "cancelled", "failed"];
const PAGE = 1000;
const ROW_PX = 36;
/** How many rows beyond the visible ones are rendered. */
const SPARE = 12;
const PAGES_MAX = 100;

/** A row: a task, with what is known of its handoff under way. */
interface Row {
  task: Task;
  note?: string;
}

interface Filters {
  state: string;
  owner: string;
  project: string;
  correlation: string;
  to: string;
  error: string;
  older: string;
  text: string;
}

const NONE: Filters = { state: "", owner: "", project: "", correlation: "", to: "", error: "", older: "", text: "" };

async function load(filters: Filters, pages: number, signal: AbortSignal): Promise<{ rows: Row[]; more: boolean }> {
  // Who it was offered to is known of handoffs.
  if (filters.to !== "" || filters.error !== "") {
    const [kind, name] = filters.to.startsWith("*")
      ? ["to_capability", filters.to.slice(1)] : ["to_agent", filters.to];
    const state = filters.error !== "" ? "dead_lettered" : "";
    const found = await get<Handoffs>("/v1/handoffs", { state, [kind as string]: name, limit: PAGE }, signal);
    const ids = [...new Set(found.handoffs.map((one) => one.task_id))].slice(0, 200);
    const tasks = await Promise.all(ids.map((id) => get<Task>(`/v1/tasks/${id}`, {}, signal)));
    const reason = new Map(found.handoffs.map((one) => [one.task_id, one.dead_letter?.reason]));
    const rows = tasks.map((one) => ({ task: one, note: reason.get(one.task_id) }));
    return { rows: rows.filter((row) => !filters.state || row.task.state === filters.state), more: false };
  }
  const rows: Row[] = [];
  let before: string | null | undefined;
  for (let page = 0; page < pages; page += 1) {
    const found: Tasks = await get<Tasks>("/v1/tasks", {
      state: filters.state, owner: filters.owner, project: filters.project,
      correlation_id: filters.correlation, before, limit: PAGE,
    }, signal);
    rows.push(...found.tasks.map((one) => ({ task: one })));
    before = found.next;
    if (!before) break;
  }
  return { rows, more: Boolean(before) };
}

function fits(row: Row, filters: Filters): boolean {
  const { task: one, note } = row;
  if (filters.owner && one.owner !== filters.owner) return false;
  if (filters.project && one.project !== filters.project) return false;
  if (filters.error && !(note ?? "").includes(filters.error)) return false;
  const minutes = Number(filters.older);
  if (minutes > 0 && now() - Date.parse(one.opened_at) < minutes * 60_000) return false;
  const text = filters.text.toLowerCase();
  if (text === "") return true;
  const all = [one.task_id, one.owner, one.opened_by, one.project, one.correlation_id, note, one.channel];
  return all.some((piece) => piece?.toLowerCase().includes(text));
}

export function TasksPage() {
  const { query } = usePlace();
  const filters: Filters = { ...NONE };
  for (const name of Object.keys(NONE) as (keyof Filters)[]) filters[name] = query.get(name) ?? "";
  const [pages, setPages] = useState(1);
  const asked = JSON.stringify([filters.state, filters.owner, filters.project, filters.correlation, filters.to, filters.error !== ""]);
  useEffect(() => setPages(1), [asked]);
  const live = useLive(`tasks ${asked} ${pages}`, (signal) => load(filters, pages, signal));
  const [kept, setKept] = useState<{ asked: string; rows: Row[]; more: boolean }>({ asked: "", rows: [], more: false });
  useEffect(() => {
    if (live.value) setKept({ asked, ...live.value });
  }, [live.value]);
  const shown = kept.asked === asked ? kept.rows.filter((row) => fits(row, filters)) : null;
  const change = (name: keyof Filters) => (event: Event) =>
    refine(["tasks"], { ...filters, [name]: (event.currentTarget as HTMLInputElement).value.trim() });
  const field = (name: keyof Filters, label: string) => (
    <label>
      {label}
      <input value={filters[name]} size={12} onChange={change(name)} />
    </label>
  );
  return (
    <>
      <h1>Tasks</h1>
      <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
        <label>
          State
          <select value={filters.state} onChange={change("state")}>
            {STATES.map((state) => (
              <option key={state} value={state}>{state === "" ? "any" : state.replaceAll("_", " ")}</option>
            ))}
          </select>
        </label>
        {field("owner", "Owner")}
        {field("to", "Offered to (*capability)")}
        {field("project", "Project")}
        {field("correlation", "Correlation id")}
        {field("error", "Error")}
        {field("older", "Older than, minutes")}
        {field("text", "Text")}
        <button type="button" onClick={() => refine(["tasks"], {})}>Clear</button>
      </form>
      <Fault failed={live.failed} />
      {shown === null
        ? live.failed ? null : <p class="faint" role="status">Loading…</p>
        : <Rows rows={shown} more={kept.more && pages < PAGES_MAX} next={() => setPages(pages + 1)} />}
    </>
  );
}

function Rows({ rows, more, next }: { rows: Row[]; more: boolean; next: () => void }) {
  useTick();
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  useEffect(() => {
    const fit = () => setHeight(Math.max(320, innerHeight - (box.current?.getBoundingClientRect().top ?? 0) - 40));
    fit();
    addEventListener("resize", fit);
    return () => removeEventListener("resize", fit);
  }, []);
  const first = Math.max(0, Math.floor(top / ROW_PX) - SPARE);
  const last = Math.min(rows.length, Math.ceil((top + height) / ROW_PX) + SPARE);
  const scrolled = () => {
    const at = box.current;
    if (!at) return;
    setTop(at.scrollTop);
    if (more && at.scrollTop + at.clientHeight > at.scrollHeight - 40 * ROW_PX) next();
  };
  return (
    <>
      <p class="faint" role="status">{count(rows.length)}{more ? " and more" : ""} tasks</p>
      {rows.length === 0 ? <Empty>No task fits.</Empty> : (
        <div class="scroll" role="region" aria-label="Tasks" tabIndex={0} ref={box} onScroll={scrolled}
          style={`max-height:${height}px`}>
          <table aria-rowcount={rows.length + 1}>
            <caption class="quiet">Tasks</caption>
            <thead>
              <tr>
                {["Task", "State", "Owner", "Opened by", "Project", "Correlation", "Opened", "Took", "Note"].map((head) => (
                  <th scope="col" key={head}>{head}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {first > 0 ? <tr aria-hidden="true" style={`height:${first * ROW_PX}px`} /> : null}
              {rows.slice(first, last).map(({ task: one, note }, index) => (
                <tr class="rows" key={one.task_id} aria-rowindex={first + index + 2}>
                  <td><Id id={one.task_id} to={task(one.task_id)} /></td>
                  <td>
                    <Badge word={one.state} />
                    {one.taints?.length ? <Badge word="tainted" /> : null}
                    {one.on_hold ? <Badge word="held" /> : null}
                  </td>
                  <td>{one.owner}</td>
                  <td>{one.opened_by}</td>
                  <td>{one.project ?? ""}</td>
                  <td>{one.correlation_id ?? ""}</td>
                  <td><When at={one.opened_at} /></td>
                  <td>{one.ended_at ? span(Date.parse(one.ended_at) - Date.parse(one.opened_at)) : ""}</td>
                  <td>{note ?? (one.channel ? target({ channel: one.channel }) : "")}</td>
                </tr>
              ))}
              {last < rows.length ? <tr aria-hidden="true" style={`height:${(rows.length - last) * ROW_PX}px`} /> : null}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
