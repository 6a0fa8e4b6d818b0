"""The comparisons as a table: for a person a line each, or as Markdown for a document."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from attnbench.plots.rows.units import Units, in_units

from .plan import DECODE, TITLES
from .record import Ratio

Row = dict[str, Any]
RATIO = "times faster [95 %] (range)"
HEAD = ("what", "length", "threads", "pass", "against", "ours", "theirs", "of FMA peak",
        "differ by", RATIO)  # fmt: skip
SECONDS: Units = ((" s", 1.0), (" ms", 1e-3), (" us", 1e-6))  # in ASCII, for any terminal
PASSES = {"forward": "forward", "train": "fwd+bwd", "step": "step", "decode": "decode step"}
MARKDOWN = ("variant", "against", "pass", "n", "times as long as ours", "answers differ by",
            "of FMA peak: ours", "theirs")  # fmt: skip
NONE = "–"


@dataclass(frozen=True)
class Chosen:
    """What of the rows is shown; empty: all."""

    subjects: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()

    def shows(self, row: Row) -> bool:
        axes = row["axes"]
        return all(
            not wanted or value in wanted
            for wanted, value in (
                (self.subjects, row["subject"]), (self.peers, row["peer"]),
                (self.lengths, axes["length"]), (self.threads, axes["threads"]),
            )
        )  # fmt: skip


def comparisons(rows: Iterable[Row], chosen: Chosen) -> list[Row]:
    """Of these rows the comparisons that are chosen; of several of one thing the last."""
    found: dict[tuple[str, ...], Row] = {}
    for row in rows:
        if row["kind"] == "comparison" and chosen.shows(row):
            axes = {**row["axes"], **(row["model"] or {})}
            found[subject_text(row), row["peer"], repr(sorted(axes.items()))] = row
    return list(found.values())


def subject_text(row: Row) -> str:
    """`linformer rank=128`, `linear causal`, `step d_model=64`."""
    if row["subject"] == "step":
        return f"step d_model={row['model']['d_model']}"
    if row["subject"] == DECODE:
        return f"full kv_dtype={row['axes']['kv_dtype']}"
    words = [row["subject"], *(f"{k}={v}" for k, v in row["variant"]["params"].items())]
    return " ".join(words + ["causal"] * row["axes"]["causal"])


def against(row: Row) -> str:
    """`PyTorch`, `ggml q8_0`."""
    return " ".join([TITLES[row["peer"]], *filter(None, [row.get("peer_cache")])])


def shares(row: Row, runs: dict[str, Row]) -> tuple[float, float] | None:
    """Of the FMA peak of so many threads, ours and theirs, both by the FLOPs that our formula
    counts; None where there is no formula or no peak."""
    metrics = row["metrics"]
    peak = runs[row["run"]].get("peak", {}).get(str(row["axes"]["threads"]))
    if not metrics or not metrics["flops"] or not peak:
        return None
    return tuple(metrics["flops"] / metrics[side] / peak for side in ("ours_s", "peer_s"))


def difference(rows: Iterable[Row]) -> float:
    """The largest relative difference of an answer or gradient that was verified."""
    return max(max(row["agreement"].values()) for row in rows)


def result_text(row: Row, runs: dict[str, Row]) -> tuple[str, ...]:
    if row["status"] != "ok":
        return "", "", "", "", f"{row['status']}: {row['reason']}"
    metrics = row["metrics"]
    both = shares(row, runs)
    return (
        in_units(metrics["ours_s"], SECONDS),
        in_units(metrics["peer_s"], SECONDS),
        f"{both[0]:.2f} / {both[1]:.2f}" if both else "",
        f"{difference([row]):.0e}",
        Ratio(**metrics["ratio"]).text(),
    )


def runs_of(rows: Iterable[Row]) -> dict[str, Row]:
    return {row["run"]: row for row in rows if row["kind"] == "run"}


def without_peer(runs: dict[str, Row], chosen: Chosen = Chosen()) -> dict[str, str]:
    """The variants of the catalogue that no run has a peer for, and why; of chosen variants none."""
    every = {name: why for run in runs.values() for name, why in run.get("no_peer", {}).items()}
    return {} if chosen.subjects else every


def table(rows: list[Row], chosen: Chosen = Chosen()) -> str:
    runs = runs_of(rows)
    lines = [HEAD]
    for row in comparisons(rows, chosen):
        axes = row["axes"]
        lines.append(
            (
                subject_text(row),
                str(axes["length"]),
                str(axes["threads"]),
                PASSES[axes["mode"]],
                against(row),
                *result_text(row, runs),
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    right = {1, 2, 5, 6, 7, 8}
    texts = [
        "  ".join(
            word.rjust(width) if i in right else word.ljust(width)
            for i, (word, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    ]
    missing = without_peer(runs, chosen).items()
    return "\n".join(texts + [f"{name}: {why}" for name, why in missing])


def markdown(rows: list[Row], chosen: Chosen = Chosen()) -> str:
    """A line for each variant, peer and pass, with its lengths in order; a table for each number of
    threads. What failed, or what a peer cannot do, follows with the reason."""
    runs = runs_of(rows)
    shown = comparisons(rows, chosen)
    counts = sorted({row["axes"]["threads"] for row in shown})
    parts = []
    for threads in counts:
        own = [row for row in shown if row["axes"]["threads"] == threads]
        title = f"{threads} thread{'s' * (threads > 1)}:\n\n" if len(counts) > 1 else ""
        parts.append(title + _table_of([row for row in own if row["status"] == "ok"], runs))
    parts += [f"{why} ({', '.join(things)})." for why, things in _left_out(shown).items()]
    parts += [f"`{name}`: {why}." for name, why in without_peer(runs, chosen).items()]
    return "\n\n".join(parts)


def _left_out(rows: list[Row]) -> dict[str, list[str]]:
    """What has no ratio, by the reason."""
    found: dict[str, dict[str, set[int]]] = {}
    for row in rows:
        if row["status"] != "ok":
            what = f"`{subject_text(row)}` {PASSES[row['axes']['mode']]}"
            why = found.setdefault(f"{row['status'].capitalize()}: {row['reason']}", {})
            why.setdefault(what, set()).add(row["axes"]["length"])
    return {
        why: [f"{what} {'/'.join(map(str, sorted(n)))}" for what, n in things.items()]
        for why, things in found.items()
    }


def _table_of(rows: list[Row], runs: dict[str, Row]) -> str:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        mode = PASSES[row["axes"]["mode"]]
        groups.setdefault((subject_text(row), against(row), mode), []).append(row)
    lines = [MARKDOWN, tuple("---" for _ in MARKDOWN)]
    for (what, peer, mode), group in groups.items():
        group.sort(key=lambda row: row["axes"]["length"])
        both = [shares(row, runs) for row in group]
        lines.append(
            (
                f"`{what}`",
                peer,
                mode,
                " / ".join(str(row["axes"]["length"]) for row in group),
                " / ".join(Ratio(**row["metrics"]["ratio"]).text() for row in group),
                f"{difference(group):.0e}",
                *(
                    " / ".join(f"{share[side]:.2f}" if share else NONE for share in both)
                    for side in (0, 1)
                ),
            )
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
