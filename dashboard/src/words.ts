// SPDX-License-Identifier: Apache-2.0
// How times, ids and targets are written.
import { useEffect, useState } from "preact/hooks";

export type TargetWire = { agent?: string; capability?: string; channel?: string } | string;

export function target(to: unknown): string {
  if (typeof to === "string") return to;
  if (to && typeof to === "object") {
    const it = to as { agent?: string; capability?: string; channel?: string };
    if (it.agent) return it.agent;
    if (it.capability) return `*${it.capability}`;
    if (it.channel) return `#${it.channel}`;
  }
  return "?";
}

/** The end of an id, which is what tells two of them apart. */
export function short(id: string): string {
  if (id.startsWith("sha256:")) return id.slice(7, 15);
  return id.length <= 16 ? id : `${id.slice(0, id.indexOf("_") + 1)}…${id.slice(-8)}`;
}

export function span(ms: number): string {
  const abs = Math.abs(ms);
  if (abs < 1000) return `${Math.round(ms)} ms`;
  if (abs < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (abs < 90_000) return `${Math.round(ms / 1000)} s`;
  if (abs < 5_400_000) return `${Math.round(ms / 60_000)} min`;
  if (abs < 129_600_000) return `${Math.round(ms / 3_600_000)} h`;
  return `${Math.round(ms / 86_400_000)} d`;
}

/** Times of the broker are compared with times of the broker: the clock of a browser may be off. */
let ahead = 0;
export function heardTime(now: string): void {
  ahead = Date.parse(now) - Date.now();
}
export const now = (): number => Date.now() + ahead;

export function ago(at: string): string {
  const past = now() - Date.parse(at);
  return past >= 0 ? `${span(past)} ago` : `in ${span(-past)}`;
}

/** Renders again every few seconds, for what says how long ago something was. */
export function useTick(everyMs = 5000): void {
  const [, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) set((n) => n + 1);
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}

export const count = (n: number): string => n.toLocaleString("en");

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 ** 2) return `${(n / 1024).toFixed(1)} KiB`;
  if (n < 1024 ** 3) return `${(n / 1024 ** 2).toFixed(1)} MiB`;
  return `${(n / 1024 ** 3).toFixed(1)} GiB`;
}

export const pretty = (value: unknown): string => JSON.stringify(value, null, 2);
