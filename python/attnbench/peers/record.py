"""The rows file: JSON Lines, schema attnbench-peers/1, a run line, then a line a comparison."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from .plan import Block
from .ratios import Ratio

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
        "variant": {"name": "full", "params": {}}
        if block.subject == "step"
        else {"name": block.subject, "params": block.params},
        "model": model,
        "peer": peer,
        "axes": block.axes(mode),
        "agreement": agreement,
        "metrics": metrics,
        "samples": {"ours": ours, "peer": theirs} if metrics else None,
        "at": now(),
    }
