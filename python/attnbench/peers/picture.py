"""One picture of all comparisons: how many times longer the others take, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from attnbench.plots.layout.axes import fixed_ticks
from attnbench.plots.layout.caption import provenance, unique
from attnbench.plots.layout.page import Page, Picture, save
from attnbench.plots.rows.read import Rows
from attnbench.plots.rows.style import GREY, INK
from attnbench.plots.rows.units import length_text

from .plan import DECODE, STEP, TITLES
from .record import LEAST, Record
from .table import against, subject_text

ROW, CHARACTER = 0.17, 0.064  # inches: a line's height, a name's character
MOST_TOLD = 4  # failures in the caption
MOST_TICKS = 7  # beyond it every second power of two
MODES = ("forward", "train")
MODE_WORDS = {"forward": "forward", "train": "with backward", "step": "training step", "decode": "decode step"}
# Thread counts differ in fill and shape, so that they differ in grey too.
MARKS = (("o", "white"), ("D", INK), ("s", "#b0b0b0"), ("^", "white"), ("v", INK))
Row = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Panels that share their lines, one a mode."""

    title: str
    modes: tuple[str, ...]
    rows: list[Row]

    @property
    def lines(self) -> list[tuple[str, int]]:
        """Labels in the order measured, each with all its lengths."""
        labels = unique(_label(row) for row in self.rows)
        every = {(_label(row), row["axes"]["length"]) for row in self.rows}
        return sorted(every, key=lambda line: (labels.index(line[0]), line[1]))

    @property
    def texts(self) -> list[str]:
        return [f"{label}  {length_text(length)}" for label, length in self.lines]


def draw(record: Record) -> list[Path]:
    """Writes peers.png, .svg and .csv beside the rows; nothing when no comparison has a ratio."""
    rows = [row for row in record.comparisons() if row["status"] == "ok"]
    if not rows:
        return []
    picture = _picture(record, rows)
    return save([picture], record.path.with_name(f"{record.path.stem}-plots"))


def _label(row: Row) -> str:
    if row["subject"] == "full":
        return TITLES[row["peer"]]
    if row["subject"] == DECODE:
        return f"{row['axes']['kv_dtype']}: {against(row)}"
    return subject_text(row) + {"compiled": ", compiled", "flex": ", flex"}.get(row["peer"], "")


def _groups(rows: list[Row]) -> list[Group]:
    chosen = [
        ("full", MODES, [r for r in rows if r["subject"] == "full"]),
        ("others", MODES, [r for r in rows if r["subject"] not in ("full", STEP, DECODE)]),
        ("", (DECODE,), [r for r in rows if r["subject"] == DECODE]),
        ("", (STEP,), [r for r in rows if r["subject"] == STEP]),
    ]
    return [Group(*group) for group in chosen if group[2]]


def _picture(record: Record, rows: list[Row]) -> Picture:
    groups = _groups(rows)
    threads = sorted({row["axes"]["threads"] for row in rows})
    marks = {n: MARKS[i % len(MARKS)] for i, n in enumerate(threads)}
    page = Page(
        "attnbench against other libraries",
        "how many times longer they take on the same inputs; right of 1 attnbench is faster",
        _caption(record, rows),
        [(Line2D([], [], **_style(marks[n])), f"{n} thread{'s' * (n > 1)}") for n in threads],
        [ROW * (len(group.lines) + 0.6) for group in groups],
        len(MODES),
        gaps=[0.32] + [0.78] * (len(groups) - 1),
        left=0.1 + CHARACTER * max(len(text) for group in groups for text in group.texts),
    )
    limits = _limits(rows)
    for place, group in enumerate(groups):
        for column, mode in enumerate(group.modes):
            axes = page.panel(place, column)
            axes.set_title(": ".join(filter(None, [group.title, MODE_WORDS[mode]])))
            own = [row for row in group.rows if row["axes"]["mode"] == mode]
            _draw_panel(axes, group, own, marks, limits, names=column == 0)
    return Picture("peers", page.figure, _table(rows), page.caption)


def _style(mark: tuple[str, str]) -> dict[str, Any]:
    return {
        "marker": mark[0], "markerfacecolor": mark[1], "markeredgecolor": INK, "color": INK,
        "linewidth": 1.3, "markersize": 4.4, "markeredgewidth": 0.9,
    }  # fmt: skip


def _draw_panel(
    axes: Axes,
    group: Group,
    rows: list[Row],
    marks: dict[int, tuple[str, str]],
    limits: tuple[float, float],
    *,
    names: bool,
) -> None:
    lines = group.lines
    apart = 0.44 / max(1, len(marks))  # between the marks of one line
    for row in rows:
        ratio = row["metrics"]["ratio"]
        order = list(marks).index(row["axes"]["threads"]) - (len(marks) - 1) / 2
        y = lines.index((_label(row), row["axes"]["length"])) + apart * order
        style = _style(marks[row["axes"]["threads"]])
        axes.plot([ratio["low"], ratio["high"]], [y, y], color=INK, linewidth=1.3, zorder=3)
        axes.plot([ratio["median"]], [y], **style, zorder=4)
    axes.axvline(1, color=GREY, linewidth=1.1, zorder=2)
    for y in range(1, len(lines)):
        if lines[y][0] != lines[y - 1][0]:
            axes.axhline(y - 0.5, color="#cccccc", linewidth=0.6, zorder=1)
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.set_yticks(range(len(lines)), group.texts if names else [""] * len(lines))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*limits)
    powers = np.arange(np.floor(np.log2(limits[0])), np.ceil(np.log2(limits[1])) + 1)
    if len(powers) > MOST_TICKS:
        powers = powers[powers % 2 == 0]
    fixed_ticks(axes.xaxis, 2.0**powers, _factor_text)
    axes.set_xlabel("peer's time / attnbench's time")


def _factor_text(x: float) -> str:
    return f"{x:g}" if x >= 1 else f"1/{1 / x:g}"


def _limits(rows: list[Row]) -> tuple[float, float]:
    ends = [row["metrics"]["ratio"][end] for row in rows for end in ("low", "high")]
    return min(0.9, min(ends)) / 1.1, max(2.2, max(ends)) * 1.1


def _caption(record: Record, rows: list[Row]) -> str:
    run = record.rows[0]
    counts = sorted({row["metrics"]["rounds"] for row in rows})
    span = str(counts[0]) if len(counts) == 1 else f"{counts[0]}\u2013{counts[-1]}"
    shapes = [row["axes"] for row in rows if row["subject"] not in (STEP, DECODE)]
    shape = max(shapes, key=lambda axes: axes["heads"], default=None)
    words = [
        "Beside each name the sequence length in tokens (1k = 1024). Points are ratios of medians, "
        f"bars 95 % bootstrap intervals over {span} interleaved rounds (below {LEAST}: the rounds' "
        "range); float32 unless named, the same inputs, weights and cores; answers were checked to agree first.",
    ]  # fmt: skip
    if shape:
        words.append(
            f"Attention: batch {shape['batch']}, {shape['heads']} heads, "
            f"head width {shape['head_dim']}; other variants and training against PyTorch. Each "
            "library takes its own layout (JAX, onnxruntime's q and ggml's output: heads beside "
            "width); what mixes whole rows has one head of that full width."
        )
    decoded = next((row["axes"] for row in rows if row["subject"] == DECODE), None)
    if decoded:
        words.append(
            f"Decode step: batch {decoded['batch']}, {decoded['heads']} query heads over "
            f"{decoded['kv_heads']} of keys, head width {decoded['head_dim']}; keys and values of "
            "the type named, ours first; ours also writes the step's own position."
        )
    if any(row["subject"] == STEP for row in rows):
        words.append("Training step: 2 layers, batch 32; forward, loss, backward, AdamW.")
    found = ", ".join(
        f"{TITLES[name]} {said['version']}" for name, said in run["libraries"].items()
    )
    every = record.comparisons()
    failed = unique(
        f"{_label(row)} {length_text(row['axes']['length'])} ({row['reason']})"
        for row in every
        if row["status"] == "failed"
    )
    skipped = unique(row["reason"] for row in every if row["status"] == "skipped")
    for title, items in (("Failed", failed), ("Skipped", skipped)):
        if items:
            more = ["\u2026"] if len(items) > MOST_TOLD else []
            words.append(f"{title}: {'; '.join(items[:MOST_TOLD] + more)}.")
    return "\n".join(
        [" ".join(words), f"{provenance(Rows((record.path,), [run], []))} Against {found}."]
    )


def _table(rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject": subject_text(row),
            "peer": row["peer"],
            **{
                k: row["axes"][k]
                for k in ("mode", "length", "threads", "batch", "heads", "head_dim")
            },
            **row["metrics"]["ratio"],
            **{k: row["metrics"][k] for k in ("ours_s", "peer_s", "rounds")},
        }
        for row in rows
    )
