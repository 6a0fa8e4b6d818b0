"""The rows file: JSON Lines, schema attnbench-peers/1, a run line, then a line a comparison: the
ratio of two medians, and its bootstrap interval over interleaved rounds."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator, ValidationError

from .plan import Block

RESAMPLES, COVERAGE = 2000, 0.95
LEAST = 6  # rounds for an interval; of fewer, not even the full range covers 95 %


@dataclass(frozen=True)
class Ratio:
    """How many times longer the peer takes: above 1, attnbench is faster. `coverage` is of the
    interval; None: low and high are the range of the rounds' own ratios, too few for a level."""

    median: float
    low: float
    high: float
    coverage: float | None

    def text(self) -> str:
        brackets = "[]" if self.coverage else "()"
        return f"{self.median:.2f} {brackets[0]}{self.low:.2f}, {self.high:.2f}{brackets[1]}"


def ratio_of(ours: Sequence[float], peer: Sequence[float]) -> Ratio:
    """Sample i of both was taken in the same round, so rounds are resampled, not samples: what
    slows the whole machine for a while slows both."""
    n = len(ours)
    if n == 0 or n != len(peer):
        raise ValueError(f"a ratio needs pairs of samples, got {n} and {len(peer)}")
    mine, other = np.asarray(ours, float), np.asarray(peer, float)
    median = float(_of_medians(mine, other))
    if n < LEAST:
        ratios = [*(other / mine), median]
        return Ratio(median, float(min(ratios)), float(max(ratios)), None)
    from scipy.stats import bootstrap  # over a second to load, and needed only here

    found = bootstrap(
        (mine, other),
        _of_medians,
        paired=True,
        n_resamples=RESAMPLES,
        confidence_level=COVERAGE,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Ratio(median, float(found.low), float(found.high), COVERAGE)


def _of_medians(mine: np.ndarray, other: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.median(other, axis=axis) / np.median(mine, axis=axis)


SCHEMA = "attnbench-peers/1"
VALIDATOR = Draft202012Validator(json.loads(Path(__file__).with_name("schema.json").read_text()))


class RowsError(Exception):
    """Why a file of rows cannot be read, in one line."""


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a file, each checked against the schema, its comparisons after their run line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise RowsError(f"{path} cannot be read: {reason}") from error
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            VALIDATOR.validate(row)
        except ValueError as error:
            raise RowsError(f"{path}, line {number}: no JSON") from error
        except ValidationError as error:
            text = " ".join(error.message.split())[:150]
            raise RowsError(f"{path}, line {number}: no row of {SCHEMA}: {text}") from error
        if row["kind"] != "run" and row["run"] not in {r["run"] for r in rows}:
            raise RowsError(f"{path}, line {number}: a comparison before its run line")
        rows.append(row)
    return rows


def now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Record:
    """Every row is valid and on disk when `add` returns; nothing else writes to the file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path, self.rows = path, []
        self._file = path.open("x", encoding="utf-8")
        self._run = now().replace("-", "").replace(":", "")

    def add(self, kind: str, **fields: Any) -> dict[str, Any]:
        row = {"schema": SCHEMA, "kind": kind, "run": self._run, **fields}
        line = json.dumps(row, allow_nan=False)
        row = json.loads(line)  # tuples become the lists that a reader will see
        VALIDATOR.validate(row)
        self._file.write(line + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.rows.append(row)
        return row

    def close(self) -> None:
        """Leaves no file without rows."""
        self._file.close()
        if not self.rows:
            self.path.unlink()

    def comparisons(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == "comparison"]


def comparison(
    block: Block,
    peer: str,
    mode: str,
    *,
    status: str = "ok",
    reason: str | None = None,
    agreement: dict[str, float] | None = None,
    ours: list[float] | None = None,
    theirs: list[float] | None = None,
    ratio: Ratio | None = None,
    flops: float | None = None,
) -> dict[str, Any]:
    """The fields of a comparison, as schema.json has them."""
    model = None
    if block.subject == "step":
        model = {"d_model": block.width, "feed_forward": block.feed_forward}
    metrics = None
    if ratio and ours and theirs:
        metrics = {
            "ratio": asdict(ratio),
            "ours_s": statistics.median(ours),
            "peer_s": statistics.median(theirs),
            "rounds": min(len(ours), len(theirs)),
            "flops": flops,
        }
    return {
        "status": status,
        "reason": reason,
        "subject": block.subject,
        "variant": block.variant,
        "model": model,
        "peer": peer,
        **({"peer_cache": block.peer_cache(peer)} if block.kv_dtype else {}),
        "axes": block.axes(mode),
        "agreement": agreement,
        "metrics": metrics,
        "samples": {"ours": ours, "peer": theirs} if metrics else None,
        "at": now(),
    }
