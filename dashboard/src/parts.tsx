// SPDX-License-Identifier: Apache-2.0
// What several pages are made of.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Failed } from "./api.ts";
import type { Live } from "./live.ts";
import { ago, short, useTick } from "./words.ts";

const TONES: Record<string, string> = {
  completed: "good", done: "good", closed: "good", active: "good", live: "good", resolved: "good",
  claimed: "busy", in_progress: "busy", open: "busy", pending: "idle", scheduled: "warn",
  awaiting_approval: "warn", input_required: "warn", half_open: "warn", draining: "warn", paused: "warn",
  failed: "bad", dead_lettered: "bad", cancelled: "bad", aborted: "bad", rejected: "bad",
  firing: "bad", critical: "bad", warning: "warn", info: "busy", held: "warn", tainted: "warn",
};

export function Badge({ word, tone }: { word: string; tone?: string }) {
  const usual = TONES[word] ?? (word.startsWith("failed") || word.startsWith("lost") ? "bad" : "idle");
  return <span class={`badge ${tone ?? usual}`}>{word.replaceAll("_", " ")}</span>;
}

export function Id({ id, to }: { id: string; to?: string }) {
  const text = <span class="id" title={id}>{short(id)}</span>;
  return to ? <a href={to}>{text}</a> : text;
}

export function When({ at }: { at: string | null | undefined }) {
  useTick();
  return at ? <time dateTime={at} title={at}>{ago(at)}</time> : <span class="faint">never</span>;
}

/** An error as the broker said it: what failed and what to do next. */
export function Fault({ failed }: { failed: Failed | undefined }) {
  if (!failed) return null;
  const { code, message, hint } = failed.problem;
  return (
    <div class="note bad" role="alert">
      <strong>{code}</strong>: {message}
      {hint ? <div class="faint">{hint}</div> : null}
    </div>
  );
}

/** What is asked for, or that it is still being asked for, or why it cannot be had. */
export function Asked<T>({ live, children }: { live: Live<T>; children: (value: T) => ComponentChildren }) {
  return (
    <>
      <Fault failed={live.failed} />
      {live.value === undefined
        ? live.failed ? null : <p class="faint" role="status">Loading…</p>
        : children(live.value)}
    </>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="faint">{children}</p>;
}

/** A table that scrolls by itself where the page is narrow, also by keyboard. */
export function Table({ label, head, children }: {
  label: string;
  head: (string | { text: string; num: true })[];
  children: ComponentChildren;
}) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      <table>
        <caption class="quiet">{label}</caption>
        <thead>
          <tr>
            {head.map((one) => one === ""
              // Above buttons, where a heading would have no words.
              ? <td key="acts" />
              : typeof one === "string"
              ? <th scope="col" key={one}>{one}</th>
              : <th scope="col" class="num" key={one.text}>{one.text}</th>)}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  );
}

export function Tabs({ names, now, pick, label }: {
  names: string[];
  now: string;
  pick: (name: string) => void;
  label: string;
}) {
  const onKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const next = names[(names.indexOf(now) + step + names.length) % names.length];
    if (next) pick(next);
    const list = (event.currentTarget as HTMLElement).querySelectorAll("button");
    list[names.indexOf(next ?? now)]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKey}>
      {names.map((name) => (
        <button type="button" role="tab" key={name} id={`tab-${name}`} aria-selected={name === now}
          aria-controls={`panel-${name}`} tabIndex={name === now ? 0 : -1} onClick={() => pick(name)}>
          {name}
        </button>
      ))}
    </div>
  );
}

export function Panel({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <section role="tabpanel" id={`panel-${name}`} aria-labelledby={`tab-${name}`} tabIndex={0}>{children}</section>
  );
}

/**
 * A button that does something at the broker: it cannot be pressed twice, and says what came of it.
 */
export function Act({ label, run, danger, main, done }: {
  label: string;
  run: () => Promise<unknown>;
  danger?: boolean;
  main?: boolean;
  done?: () => void;
}) {
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState<Failed | undefined>(undefined);
  const press = async () => {
    setBusy(true);
    setFailed(undefined);
    try {
      await run();
      done?.();
    } catch (error) {
      if (error instanceof Failed) setFailed(error);
      else throw error;
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button type="button" class={danger ? "danger" : main ? "main" : ""} disabled={busy} onClick={() => void press()}>
        {label}
      </button>
      <Fault failed={failed} />
    </>
  );
}

/** A dialog that asks for words before something is done. */
export function Ask({ label, title, fields, run, danger, children, done }: {
  label: string;
  title: string;
  fields: { name: string; label: string; rows?: number; value?: string; optional?: boolean }[];
  run: (values: Record<string, string>) => Promise<unknown>;
  danger?: boolean;
  children?: (values: Record<string, string>) => ComponentChildren;
  done?: () => void;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [values, setValues] = useState<Record<string, string>>({});
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (open) dialog.current?.showModal();
  }, [open]);
  const start = () => {
    setValues(Object.fromEntries(fields.map((field) => [field.name, field.value ?? ""])));
    setOpen(true);
  };
  const set = (name: string) => (event: Event) => {
    const text = (event.currentTarget as HTMLInputElement).value;
    setValues((was) => ({ ...was, [name]: text }));
  };
  const ready = fields.every((field) => field.optional || (values[field.name] ?? "").trim() !== "");
  return (
    <>
      <button type="button" class={danger ? "danger" : ""} onClick={start}>{label}</button>
      {open ? (
        <dialog ref={dialog} aria-label={title} onClose={() => setOpen(false)}>
          <h2>{title}</h2>
          {fields.map((field) => (
            <p key={field.name}>
              <label>
                {field.label}
                {field.rows
                  ? <textarea rows={field.rows} value={values[field.name] ?? ""} onInput={set(field.name)} />
                  : <input value={values[field.name] ?? ""} onInput={set(field.name)} />}
              </label>
            </p>
          ))}
          {children?.(values)}
          <div class="row">
            <button type="button" onClick={() => dialog.current?.close()}>Back</button>
            {ready ? (
              <Act label={label} main={!danger} danger={danger ?? false} run={() => run(values)}
                done={() => { dialog.current?.close(); done?.(); }} />
            ) : <button type="button" disabled>{label}</button>}
          </div>
        </dialog>
      ) : null}
    </>
  );
}
