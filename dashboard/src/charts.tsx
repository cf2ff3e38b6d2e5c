// SPDX-License-Identifier: Apache-2.0
// Pictures of a task: what happened when, and who handed to whom. Each has the same as a table or
// text beside it for those who do not see it.
import type { Handoff, Pipeline, PipelineStage, TaskWithParts } from "./wire.ts";
import { now, span, target } from "./words.ts";

const LABEL_PX = 230;
const BAR_PX = 22;
const WIDTH_PX = 900;

const ENDS: Record<string, string> = {
  completed: "good", passed_on: "good", handed_on: "good", failed: "bad", lease_lost: "bad", lost: "bad",
  released: "warn", expired: "bad", cancelled: "bad",
};

export function Waterfall({ handoffs }: { handoffs: Handoff[] }) {
  const starts = handoffs.map((one) => Date.parse(one.offered_at));
  const ends = handoffs.map((one) => (one.ended_at ? Date.parse(one.ended_at) : now()));
  const from = Math.min(...starts);
  const all = Math.max(1, Math.max(...ends) - from);
  const x = (at: number) => LABEL_PX + ((at - from) / all) * (WIDTH_PX - LABEL_PX - 20);
  const height = handoffs.length * (BAR_PX + 8) + 30;
  return (
    <div class="chart" role="region" aria-label="When what happened" tabIndex={0}>
      <svg width={WIDTH_PX} height={height} role="img" aria-label={`${handoffs.length} hops within ${span(all)}`}>
        {handoffs.map((one, index) => {
          const y = index * (BAR_PX + 8) + 4;
          const end = ends[index] ?? from;
          const name = `${one.hop}: ${one.from_agent} → ${target(one.to)}`;
          return (
            <g key={one.handoff_id}>
              <text x={6} y={y + 15}>{name.length > 34 ? `${name.slice(0, 33)}…` : name}</text>
              <rect class="idle" x={x(starts[index] ?? from)} y={y + 7} width={Math.max(2, x(end) - x(starts[index] ?? from))} height={8}>
                <title>waits, or between attempts</title>
              </rect>
              {one.attempts.map((attempt) => {
                const begin = Date.parse(attempt.claimed_at);
                const over = attempt.ended_at ? Date.parse(attempt.ended_at) : now();
                const failed = attempt.ended?.startsWith("failed") || attempt.ended?.startsWith("lost");
                const tone = attempt.ended ? (ENDS[attempt.ended] ?? (failed ? "bad" : "warn")) : "busy";
                return (
                  <rect key={attempt.number} class={tone} x={x(begin)} y={y} rx={3} width={Math.max(3, x(over) - x(begin))} height={BAR_PX}>
                    <title>{`attempt ${attempt.number} by ${attempt.agent}: ${attempt.ended ?? "under way"}, ${span(over - begin)}`}</title>
                  </rect>
                );
              })}
            </g>
          );
        })}
        <line class="axis" x1={LABEL_PX} x2={WIDTH_PX - 20} y1={height - 20} y2={height - 20} />
        <text class="tip" x={LABEL_PX} y={height - 5}>0</text>
        <text class="tip" x={WIDTH_PX - 20} y={height - 5} text-anchor="end">{span(all)}</text>
      </svg>
    </div>
  );
}

interface Box {
  id: string;
  name: string;
  tone: string;
  column: number;
}

interface Arrow {
  from: string;
  to: string;
  name: string;
}

const TONE: Record<string, string> = {
  completed: "good", dead_lettered: "bad", failed: "bad", cancelled: "bad", claimed: "busy", in_progress: "busy",
};

/** With a box for each agent, or for each hop. */
function drawn(task: TaskWithParts, asItRan: boolean): { boxes: Box[]; arrows: Arrow[] } {
  const boxes = new Map<string, Box>();
  const arrows = new Map<string, Arrow & { times: number }>();
  const box = (id: string, name: string, column: number, tone: string) => {
    const known = boxes.get(id);
    if (known) known.tone = tone === "idle" ? known.tone : tone;
    else boxes.set(id, { id, name, column, tone });
  };
  const arrow = (from: string, to: string, name: string) => {
    const known = arrows.get(`${from} ${to}`);
    if (known) {
      known.times += 1;
      known.name = `×${known.times}`;
    } else arrows.set(`${from} ${to}`, { from, to, name, times: 1 });
  };
  const hops = [...task.handoffs].sort((one, other) => one.hop - other.hop);
  for (const one of hops) {
    const who = one.attempts.at(-1)?.agent ?? target(one.to);
    if (asItRan) {
      const before = hops.find((it) => it.hop === one.hop - 1 && (it.attempts.at(-1)?.agent ?? target(it.to)) === one.from_agent);
      const from = before ? before.handoff_id : `from ${one.from_agent}`;
      if (!before) box(from, one.from_agent, one.hop, "idle");
      box(one.handoff_id, `${one.hop}: ${who}`, one.hop + 1, TONE[one.state] ?? "idle");
      arrow(from, one.handoff_id, "");
    } else {
      box(one.from_agent, one.from_agent, boxes.get(one.from_agent)?.column ?? one.hop, "idle");
      box(who, who, boxes.get(who)?.column ?? one.hop + 1, TONE[one.state] ?? "idle");
      arrow(one.from_agent, who, "");
    }
  }
  const deepest = Math.max(0, ...[...boxes.values()].map((one) => one.column));
  for (const child of task.children) {
    box(child.task_id, `task of ${child.owner}`, deepest + 1, TONE[child.state] ?? "busy");
    const owner = [...boxes.values()].find((one) => one.name === child.opened_by || one.name.endsWith(`: ${child.opened_by}`));
    if (owner) arrow(owner.id, child.task_id, "below");
  }
  return { boxes: [...boxes.values()], arrows: [...arrows.values()] };
}

const BOX = { width: 150, height: 34, right: 70, down: 18 };

export function Graph({ task, asItRan }: { task: TaskWithParts; asItRan: boolean }) {
  const { boxes, arrows } = drawn(task, asItRan);
  const rows = new Map<number, number>();
  const at = new Map<string, { x: number; y: number }>();
  for (const one of boxes) {
    const row = rows.get(one.column) ?? 0;
    rows.set(one.column, row + 1);
    at.set(one.id, { x: 12 + one.column * (BOX.width + BOX.right), y: 12 + row * (BOX.height + BOX.down) });
  }
  const width = Math.max(...[...at.values()].map((one) => one.x), 0) + BOX.width + 60;
  const height = Math.max(...[...at.values()].map((one) => one.y), 0) + BOX.height + 40;
  const told = arrows.map((one) => {
    const name = (id: string) => boxes.find((it) => it.id === id)?.name ?? id;
    return `${name(one.from)} to ${name(one.to)}`;
  });
  return (
    <div class="chart" role="region" aria-label="Who handed to whom" tabIndex={0}>
      <svg width={width} height={height} role="img" aria-label={told.join("; ")}>
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path class="tip" d="M0 0L8 4L0 8z" />
          </marker>
        </defs>
        {arrows.map((one) => {
          const [a, b] = [at.get(one.from), at.get(one.to)];
          if (!a || !b) return null;
          const back = b.x <= a.x;
          const [x1, y1] = [a.x + (back ? BOX.width / 2 : BOX.width), a.y + (back ? BOX.height : BOX.height / 2)];
          const [x2, y2] = [b.x + (back ? BOX.width / 2 : 0), b.y + (back ? BOX.height : BOX.height / 2)];
          const path = back
            ? `M${x1} ${y1}C${x1} ${y1 + 34} ${x2} ${y2 + 34} ${x2} ${y2 + 2}`
            : `M${x1} ${y1}C${x1 + 35} ${y1} ${x2 - 35} ${y2} ${x2 - 1} ${y2}`;
          return (
            <g key={`${one.from} ${one.to}`}>
              <path class="edge" d={path} marker-end="url(#tip)" />
              {one.name ? <text class="tip" x={(x1 + x2) / 2} y={(y1 + y2) / 2 - 4} text-anchor="middle">{one.name}</text> : null}
            </g>
          );
        })}
        {boxes.map((one) => {
          const place = at.get(one.id) ?? { x: 0, y: 0 };
          return (
            <g key={one.id}>
              <rect class="node" x={place.x} y={place.y} width={BOX.width} height={BOX.height} rx={6} />
              <rect class={one.tone} x={place.x} y={place.y} width={5} height={BOX.height} rx={2} />
              <text x={place.x + 14} y={place.y + 21}>{one.name.length > 19 ? `${one.name.slice(0, 18)}…` : one.name}</text>
              <title>{one.name}</title>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

/** Where a stage leads: the next ones, what it fans out to, and where those come together. */
function leads(stage: PipelineStage): { to: string; name: string }[] {
  return stage.next.flatMap((rule) => {
    const it = rule as { to?: string; when?: unknown; fan?: { stages: string[]; join: string; need?: number | null } };
    if (it.to) return [{ to: it.to, name: it.when ? "if" : "" }];
    return it.fan ? it.fan.stages.map((to) => ({ to, name: "all" })) : [];
  });
}

function joins(stage: PipelineStage): { from: string; to: string; name: string }[] {
  return stage.next.flatMap((rule) => {
    const { fan } = rule as { fan?: { stages: string[]; join: string; need?: number | null } };
    return fan ? fan.stages.map((from) => ({ from, to: fan.join, name: fan.need ? `${fan.need} needed` : "join" })) : [];
  });
}

const STAGE = { width: 170, height: 58, right: 80, down: 22 };

/** A declared route with what is on it now. */
export function Route({ pipeline, at }: { pipeline: Pipeline; at: (stage: string) => { busy: number; dead: number } }) {
  const arrows = [
    ...pipeline.stages.flatMap((one) => leads(one).map(({ to, name }) => ({ from: one.name, to, name }))),
    ...pipeline.stages.flatMap(joins),
  ];
  // A stage stands right of the first that leads to it; ways back do not move anything.
  const column = new Map<string, number>([[pipeline.first, 0]]);
  const next = [pipeline.first];
  for (let name = next.shift(); name !== undefined; name = next.shift()) {
    for (const arrow of arrows.filter((one) => one.from === name && !column.has(one.to))) {
      column.set(arrow.to, (column.get(name) ?? 0) + 1);
      next.push(arrow.to);
    }
  }
  const rows = new Map<number, number>();
  const places = new Map<string, { x: number; y: number }>();
  for (const one of pipeline.stages) {
    const across = column.get(one.name) ?? 0;
    const down = rows.get(across) ?? 0;
    rows.set(across, down + 1);
    places.set(one.name, { x: 12 + across * (STAGE.width + STAGE.right), y: 12 + down * (STAGE.height + STAGE.down) });
  }
  const width = Math.max(...[...places.values()].map((one) => one.x)) + STAGE.width + 24;
  const turns = arrows.some((one) => (places.get(one.to)?.x ?? 0) <= (places.get(one.from)?.x ?? 0));
  const deepest = Math.max(...[...places.values()].map((one) => one.y)) + STAGE.height;
  const height = deepest + (turns && rows.size > 0 && Math.max(...rows.values()) === 1 ? 46 : 16);
  const told = arrows.map((one) => `${one.from} to ${one.to}`).join("; ");
  return (
    <div class="chart" role="region" aria-label={`Route of ${pipeline.name}`} tabIndex={0}>
      <svg width={width} height={height} role="img" aria-label={told || `${pipeline.first} alone`}>
        <defs>
          <marker id={`tip-${pipeline.name}`} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path class="tip" d="M0 0L8 4L0 8z" />
          </marker>
        </defs>
        {arrows.map((one) => {
          const [a, b] = [places.get(one.from), places.get(one.to)];
          if (!a || !b) return null;
          const back = b.x <= a.x;
          const [x1, y1] = back ? [a.x + STAGE.width / 2, a.y + STAGE.height] : [a.x + STAGE.width, a.y + STAGE.height / 2];
          const [x2, y2] = back ? [b.x + STAGE.width / 2 + 14, b.y + STAGE.height + 2] : [b.x - 1, b.y + STAGE.height / 2];
          const path = back
            ? `M${x1} ${y1}C${x1} ${y1 + 42} ${x2} ${y2 + 42} ${x2} ${y2}`
            : `M${x1} ${y1}C${x1 + 40} ${y1} ${x2 - 40} ${y2} ${x2} ${y2}`;
          return (
            <g key={`${one.from} ${one.to}`}>
              <path class="edge" d={path} marker-end={`url(#tip-${pipeline.name})`} />
              {one.name ? <text class="tip" x={(x1 + x2) / 2} y={(y1 + y2) / 2 + (back ? 30 : -5)} text-anchor="middle">{one.name}</text> : null}
            </g>
          );
        })}
        {pipeline.stages.map((one) => {
          const place = places.get(one.name) ?? { x: 0, y: 0 };
          const { busy, dead } = at(one.name);
          const name = one.name.length > 19 ? `${one.name.slice(0, 18)}…` : one.name;
          const to = target(one.to);
          return (
            <g key={one.name}>
              <rect class="node" x={place.x} y={place.y} width={STAGE.width} height={STAGE.height} rx={8} />
              <rect class={dead ? "bad" : busy ? "busy" : "idle"} x={place.x} y={place.y} width={5} height={STAGE.height} rx={2} />
              <text class="strong" x={place.x + 14} y={place.y + 19}>{name}</text>
              <text class="tip" x={place.x + 14} y={place.y + 34}>{to.length > 22 ? `${to.slice(0, 21)}…` : to}</text>
              <text class={dead ? "alarm" : "tip"} x={place.x + 14} y={place.y + 50}>{`${busy} under way${dead ? `, ${dead} dead` : ""}`}</text>
              <title>{`${one.name}, to ${to}: ${busy} under way, ${dead} dead letters`}</title>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

/** A share as a bar, beside the figure that says the same. */
export function Bar({ share, tone }: { share: number; tone: string }) {
  const width = Math.max(0, Math.min(1, share)) * 90;
  return (
    <svg class="bar" width={92} height={10} aria-hidden="true">
      <rect class="idle" x={0} y={1} width={92} height={8} rx={4} />
      <rect class={tone} x={1} y={2} width={width} height={6} rx={3} />
    </svg>
  );
}
