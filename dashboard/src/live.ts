// SPDX-License-Identifier: Apache-2.0
// Keeps what is shown up to date: one stream says that something has changed, and what is on the page
// is asked for again. A page that nobody looks at asks for nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import { address, Failed } from "./api.ts";

type Heard = () => void;
const listeners = new Set<Heard>();
let source: EventSource | null = null;
let online = true;
const watchers = new Set<(online: boolean) => void>();

function tell(now: boolean): void {
  if (now === online) return;
  online = now;
  for (const watcher of watchers) watcher(now);
}

function open(): void {
  if (source || document.hidden || listeners.size === 0) return;
  source = new EventSource(address("/v1/changes"));
  source.addEventListener("open", () => {
    tell(true);
    for (const heard of listeners) heard();
  });
  source.addEventListener("changed", () => {
    for (const heard of listeners) heard();
  });
  source.addEventListener("error", () => {
    tell(false);
    // A stream that was refused is not tried again by the browser.
    if (source?.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(open, 3000);
    }
  });
}

function close(): void {
  source?.close();
  source = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) close();
  else open();
});

export function useOnline(): boolean {
  const [now, set] = useState(online);
  useEffect(() => {
    watchers.add(set);
    return () => void watchers.delete(set);
  }, []);
  return now;
}

export interface Live<T> {
  value: T | undefined;
  failed: Failed | undefined;
  /** Asks again now. */
  again: () => void;
}

/** At least this long between two answers for the same thing. */
const PACE_MS = 400;

/**
 * Asks when the key changes and whenever something has changed at the broker. `null` as a key asks
 * nothing. What was there stays while it is asked for again.
 */
export function useLive<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Live<T> {
  const [value, setValue] = useState<T | undefined>(undefined);
  const [failed, setFailed] = useState<Failed | undefined>(undefined);
  const asked = useRef(ask);
  asked.current = ask;
  const again = useRef<() => void>(() => {});

  useEffect(() => {
    setValue(undefined);
    setFailed(undefined);
    if (key === null) return;
    const stop = new AbortController();
    let running = false;
    let wanted = false;
    let last = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;

    const run = async () => {
      timer = undefined;
      running = true;
      wanted = false;
      try {
        const got = await asked.current(stop.signal);
        if (stop.signal.aborted) return;
        setValue(got);
        setFailed(undefined);
      } catch (error) {
        if (stop.signal.aborted) return;
        if (error instanceof Failed) setFailed(error);
        else throw error;
      } finally {
        running = false;
        last = performance.now();
        if (wanted) plan();
      }
    };
    const plan = () => {
      if (stop.signal.aborted) return;
      wanted = true;
      if (running || timer !== undefined) return;
      const pause = Math.max(0, last + PACE_MS - performance.now());
      timer = setTimeout(() => void run(), last === 0 ? 0 : pause);
    };
    const heard = () => {
      if (!document.hidden) plan();
    };
    again.current = plan;
    listeners.add(heard);
    open();
    plan();
    return () => {
      stop.abort();
      clearTimeout(timer);
      listeners.delete(heard);
      if (listeners.size === 0) close();
    };
  }, [key]);

  return { value, failed, again: () => again.current() };
}
