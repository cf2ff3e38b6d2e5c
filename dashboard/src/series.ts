// SPDX-License-Identifier: Apache-2.0
// The broker's metrics, as its text for Prometheus has them.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPED: Record<string, string> = { "\\n": "\n", '\\"': '"', "\\\\": "\\" };

export function series(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const [, name, told = "", value] = LINE.exec(line) ?? [];
    if (!name || value === undefined) return [];
    const labels: Record<string, string> = {};
    for (const [, label, raw] of told.matchAll(LABEL)) {
      if (label !== undefined && raw !== undefined) labels[label] = raw.replace(/\\./g, (it) => ESCAPED[it] ?? it);
    }
    return [{ name, labels, value: Number(value) }];
  });
}
