#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `tasuki demo` and draws what it printed as an animated SVG, docs/pictures/demo.svg.

    python3 docs/pictures/demo.py target/debug/tasuki

Every line is the demo's own, up to what `tasuki explain` says, and its last count of promises. Only
the pace is ours: most lines come within milliseconds, so each stays long enough to be read. The
times in the lines are those of the run. Where nothing moves, the first lines are shown.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from xml.sax.saxutils import escape

COLUMNS, ROWS = 104, 26
WIDTH_OF_A_CHARACTER, LINE, EDGE = 7.83, 19, 16
SECONDS_PER_LINE, SECONDS_AT_THE_END = 0.55, 6.0
INDENT = " " * 21
STYLE = """
.back { fill: #0d1117 } .bar { fill: #161b22 } .dot { fill: #30363d }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
text { fill: #c9d1d9; white-space: pre } .time { fill: #8b949e }
.head text { fill: #79c0ff; font-weight: 600 } .kept text { fill: #56d364 }
@media (prefers-reduced-motion: reduce) { g { animation: none !important } }
"""


def recorded(binary: str) -> list[str]:
    """What the demo prints, without the part of `tasuki explain`."""
    ran = subprocess.run([binary, "demo"], check=True, capture_output=True, text=True, timeout=120)
    lines = ran.stdout.splitlines()
    explained = next(i for i, line in enumerate(lines) if line.startswith("What `tasuki explain`"))
    count = next(line for line in lines if "promises kept" in line)
    return [*lines[:explained], count]


def wrapped(lines: list[str]) -> list[list[str]]:
    """Each line in as many rows as it needs."""
    return [textwrap.wrap(line, COLUMNS, subsequent_indent=INDENT) or [""] for line in lines]


def kind(line: str) -> str:
    """The class that colours a line."""
    if "promises kept" in line or line[9:].lstrip().startswith("kept"):
        return "kept"
    return "" if line.startswith(" ") else "head"


def drawn(lines: list[list[str]]) -> str:
    """The picture: a window in which one line after the other appears, and old ones move out."""
    total = len(lines) * SECONDS_PER_LINE + SECONDS_AT_THE_END
    rules, texts, scrolls = [], [], []
    row = 0
    for number, rows in enumerate(lines):
        at = 100 * number * SECONDS_PER_LINE / total
        # Opaque from the moment at which it comes; the step before it is as close as can be.
        hidden, shown = (
            f"0%, {at:.3f}% {{ opacity: 0 }}",
            f"{at + 0.001:.3f}%, 100% {{ opacity: 1 }}",
        )
        rules.append(f"@keyframes l{number} {{ {hidden} {shown} }}")
        spans = []
        for piece in rows:
            spans.append(f'<text x="{EDGE}" y="{(row + 1) * LINE}">{escape(piece)}</text>')
            row += 1
        style = kind(rows[0])
        name = f' class="{style}"' if style else ""
        moves = f'style="animation: l{number} {total:.2f}s step-end infinite"'
        texts.append(f"<g{name} {moves}>{''.join(spans)}</g>")
        scrolls.append((at, max(0, row - ROWS) * LINE))
    steps = " ".join(f"{at:.3f}% {{ transform: translateY(-{by}px) }}" for at, by in scrolls)
    last = scrolls[-1][1]
    rules.append(f"@keyframes scroll {{ {steps} 100% {{ transform: translateY(-{last}px) }} }}")
    rules.append(f".all {{ animation: scroll {total:.2f}s step-end infinite }}")
    width = round(COLUMNS * WIDTH_OF_A_CHARACTER + 2 * EDGE)
    height = ROWS * LINE + 3 * EDGE + 14
    size = f'width="{width}" height="{height}"'
    dots = "".join(
        f'<circle class="dot" cx="{EDGE + 4 + 18 * i}" cy="15" r="5"/>' for i in range(3)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size}'
            ' role="img" aria-label="The output of tasuki demo">',
            "<style>" + STYLE + "\n".join(rules) + "</style>",
            f'<rect class="back" width="{width}" height="{height}" rx="8"/>',
            f'<path class="bar" d="M0 30V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V30z"/>{dots}',
            f'<text class="time" x="{EDGE + 64}" y="20">tasuki demo</text>',
            f'<svg x="0" y="{EDGE + 22}" width="{width}" height="{ROWS * LINE + 8}">',
            '<g class="all">',
            *texts,
            "</g></svg>",
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    Path(__file__).with_suffix(".svg").write_text(drawn(wrapped(recorded(sys.argv[1]))), "utf-8")
