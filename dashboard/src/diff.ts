// SPDX-License-Identifier: Apache-2.0
// What changed from one envelope to the next, part by part.
import type { Envelope } from "./wire.ts";

export interface Change {
  how: "added" | "gone" | "changed";
  part: string;
  text: string;
}

function sets(part: string, before: Map<string, string>, after: Map<string, string>): Change[] {
  const changes: Change[] = [];
  for (const [key, text] of before) {
    if (!after.has(key)) changes.push({ how: "gone", part, text });
  }
  for (const [key, text] of after) {
    if (!before.has(key)) changes.push({ how: "added", part, text });
  }
  return changes;
}

const words = (list: string[] | undefined): Map<string, string> => new Map((list ?? []).map((text) => [text, text]));

const FORMS = ["stub", "summary", "full"];

export function between(before: Envelope, after: Envelope): Change[] {
  const changes: Change[] = [];
  const single = (part: string, was: unknown, is: unknown) => {
    const [one, other] = [was, is].map((value) =>
      value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value));
    if (one === other) return;
    if (one) changes.push({ how: "gone", part, text: one });
    if (other) changes.push({ how: "added", part, text: other });
  };
  single("intent", before.intent, after.intent);
  single("from", before.from_agent, after.from_agent);
  single("to", before.to, after.to);
  single("action", before.action, after.action);
  single("ask", before.ask, after.ask);
  single("summary", before.summary, after.summary);
  single("deadline", before.deadline, after.deadline);
  single("budget", before.budget, after.budget);
  changes.push(
    ...sets("constraint",
      new Map((before.constraints ?? []).map((one) => [one.id, `${one.text} (${one.kind}, by ${one.issuer})`])),
      new Map((after.constraints ?? []).map((one) => [one.id, `${one.text} (${one.kind}, by ${one.issuer})`]))),
    ...sets("decision",
      new Map((before.decisions ?? []).map((one) => [one.id, `${one.decision}${one.why ? `, because ${one.why}` : ""} (${one.by})`])),
      new Map((after.decisions ?? []).map((one) => [one.id, `${one.decision}${one.why ? `, because ${one.why}` : ""} (${one.by})`]))),
    ...sets("open decision", words(before.open_decisions?.map((one) => JSON.stringify(one))), words(after.open_decisions?.map((one) => JSON.stringify(one)))),
    ...sets("tried", words(before.tried), words(after.tried)),
    ...sets("assumption", words(before.assumptions), words(after.assumptions)),
    ...sets("gap", words(before.gaps?.map((one) => one.reference)), words(after.gaps?.map((one) => one.reference))),
    ...sets("reference", words(before.memory_refs?.map((one) => one.id)), words(after.memory_refs?.map((one) => one.id))),
  );
  const was = new Map((before.context ?? []).map((one) => [one.id, one]));
  const is = new Map((after.context ?? []).map((one) => [one.id, one]));
  for (const [id, item] of was) {
    const now = is.get(id);
    const name = item.title ?? id;
    if (!now) changes.push({ how: "gone", part: "item", text: `${name} (${item.form}, ${item.tokens ?? 0} tokens)` });
    else if (now.form !== item.form) {
      const less = FORMS.indexOf(now.form) < FORMS.indexOf(item.form);
      changes.push({ how: less ? "gone" : "changed", part: less ? "trimmed" : "item", text: `${name}: ${item.form} → ${now.form}` });
    }
  }
  for (const [id, item] of is) {
    if (!was.has(id)) changes.push({ how: "added", part: "item", text: `${item.title ?? id} (${item.form}, ${item.tokens ?? 0} tokens)` });
  }
  const tokens = (envelope: Envelope) => envelope.reading?.token_count;
  if (tokens(before) !== tokens(after)) {
    changes.push({ how: "changed", part: "tokens", text: `${tokens(before) ?? "–"} → ${tokens(after) ?? "–"}` });
  }
  return changes;
}

/** Two texts line by line, for what was edited by hand. */
export function lines(before: string, after: string): Change[] {
  const [one, other] = [before.split("\n"), after.split("\n")];
  const LINES_MAX = 2000;
  if (one.length > LINES_MAX || other.length > LINES_MAX) {
    return before === after ? [] : [{ how: "changed", part: "text", text: "too long to compare by line" }];
  }
  const table = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  const at = (row: number, column: number) => table[row]?.[column] ?? 0;
  for (let row = one.length - 1; row >= 0; row -= 1) {
    for (let column = other.length - 1; column >= 0; column -= 1) {
      const line = table[row] as Uint16Array;
      line[column] = one[row] === other[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1));
    }
  }
  const changes: Change[] = [];
  let [row, column] = [0, 0];
  while (row < one.length || column < other.length) {
    if (row < one.length && column < other.length && one[row] === other[column]) {
      row += 1;
      column += 1;
    } else if (column < other.length && (row >= one.length || at(row, column + 1) > at(row + 1, column))) {
      changes.push({ how: "added", part: `line ${column + 1}`, text: other[column] ?? "" });
      column += 1;
    } else {
      changes.push({ how: "gone", part: `line ${row + 1}`, text: one[row] ?? "" });
      row += 1;
    }
  }
  return changes;
}
