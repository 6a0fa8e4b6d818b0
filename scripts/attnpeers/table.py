"""The comparisons as text, for a person: a line each."""

from __future__ import annotations

from typing import Any

from attnplot.units import Units, in_units

from .plan import TITLES
from .ratios import Ratio

RATIO = "times faster [95 %] (range)"
HEAD = ("what", "length", "threads", "pass", "against", "ours", "theirs", RATIO)
SECONDS: Units = ((" s", 1.0), (" ms", 1e-3), (" us", 1e-6))  # in ASCII, for any terminal
PASSES = {"forward": "forward", "train": "fwd+bwd", "step": "step"}


def subject_text(row: dict[str, Any]) -> str:
    """`linformer rank=128`, `linear causal`, `step d_model=64`."""
    if row["subject"] == "step":
        return f"step d_model={row['model']['d_model']}"
    words = [row["subject"], *(f"{k}={v}" for k, v in row["variant"]["params"].items())]
    return " ".join(words + ["causal"] * row["axes"]["causal"])


def result_text(row: dict[str, Any]) -> tuple[str, str, str]:
    if row["status"] != "ok":
        return "", "", f"{row['status']}: {row['reason']}"
    metrics = row["metrics"]
    ratio = metrics["ratio"]
    return (
        in_units(metrics["ours_s"], SECONDS),
        in_units(metrics["peer_s"], SECONDS),
        Ratio(**ratio).text(),
    )


def table(rows: list[dict[str, Any]]) -> str:
    lines = [HEAD]
    for row in rows:
        axes = row["axes"]
        lines.append(
            (
                subject_text(row),
                str(axes["length"]),
                str(axes["threads"]),
                PASSES[axes["mode"]],
                TITLES[row["peer"]],
                *result_text(row),
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    right = {1, 2, 5, 6}
    return "\n".join(
        "  ".join(
            word.rjust(width) if i in right else word.ljust(width)
            for i, (word, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in lines
    )
