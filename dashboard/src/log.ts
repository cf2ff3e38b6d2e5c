// SPDX-License-Identifier: Apache-2.0
// Entries of the log, read from the stream that has them, up to where the log ends.
import { address, failure } from "./api.ts";

export interface LogEvent {
  position: string;
  hash: string;
  record: { at: string; actor: string; kind: string; task_id: string; handoff_id?: string; v: number } & Record<string, unknown>;
}

/** So many entries after a position, or as many as there are. */
export async function events(after: string, max: number, signal: AbortSignal): Promise<LogEvent[]> {
  const reply = await fetch(address("/v1/events", { after, follow: false }), { credentials: "same-origin", signal });
  if (!reply.ok || !reply.body) throw await failure(reply);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  const all: LogEvent[] = [];
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return all;
    const pieces = (rest + value).split("\n\n");
    rest = pieces.pop() ?? "";
    for (const piece of pieces) {
      const data = piece.split("\n").find((line) => line.startsWith("data:"));
      if (!data) continue;
      const read = JSON.parse(data.slice(5)) as Partial<LogEvent>;
      if (read.record) all.push(read as LogEvent);
      if (all.length === max) {
        void reader.cancel();
        return all;
      }
    }
  }
}
