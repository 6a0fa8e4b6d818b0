"""Peers: how many times longer other libraries take for the same answers, from rows of scripts/peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnbench.plots.rows.read import RowsError, UnreadableError, parse_object
from attnbench.plots.rows.units import length_text

from .book import Json, rounded, section, table

SCHEMA = "attnbench-peers/1"
COMPARISONS = (
    ("variant", "text"),
    ("against", "text"),
    ("pass", "text"),
    ("length", "number"),
    ("threads", "number"),
    ("ours", "seconds"),
    ("theirs", "seconds"),
    ("theirs over ours", "ratio"),
    ("low", "ratio"),
    ("high", "ratio"),
    ("answers differ by", "number"),
    ("of FMA peak: ours", "number"),
    ("theirs of it", "number"),
    ("no ratio", "text"),
)


@dataclass(frozen=True)
class PeersFile:
    """The lines of one file of scripts/peers."""

    path: Path
    rows: list[dict[str, Any]]

    @property
    def runs(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["kind"] == "run"]


def is_peers_file(path: Path) -> bool:
    """Whether the first line is of scripts/peers. False where it cannot be read: who reads the rows
    says why."""
    try:
        with path.open("rb") as file:
            return parse_object(file.readline().rstrip(b"\n")).get("schema") == SCHEMA
    except (OSError, ValueError):
        return False


def read_peers(path: Path) -> PeersFile:
    """Error of one line, as of rows, where a line is no row of scripts/peers."""
    from attnbench.peers import record  # its validator is made when it is imported

    if not path.is_file():
        raise UnreadableError(f"{path}: cannot be read")
    try:
        return PeersFile(path, record.read_rows(path))
    except record.RowsError as fault:
        raise RowsError(str(fault)) from None


def peers(files: Sequence[PeersFile]) -> Json | None:
    if not files:
        return None
    from attnbench.peers.table import Chosen, comparisons, runs_of, without_peer

    rows = [row for file in files for row in file.rows]
    runs, found = runs_of(rows), comparisons(rows, Chosen())
    groups: dict[tuple[Any, ...], list[Json]] = {}
    for row in found:
        if row["status"] == "ok":
            axes = row["axes"]
            key = (row["peer"], axes["mode"], axes["length"], axes["threads"])
            groups.setdefault(key, []).append(row)
    none = "; ".join(f"{name}: {why}" for name, why in without_peer(runs, Chosen()).items())
    methods = [run.get("method", {}) for run in runs.values()]
    told = dict.fromkeys(m[k] for m in methods for k in ("ratio", "interval", "threads") if k in m)
    return section(
        "peers",
        "Peers",
        "How many times as long other libraries take as attnbench for the same answers: above \u00d71 "
        "attnbench is faster. Bars are 95 % intervals.",
        [_panel(key, members) for key, members in groups.items()],
        table("comparisons", "Comparisons", COMPARISONS, (_row(row, runs) for row in found)),
        note=". ".join([*told, *([f"No peer for {none}"] if none else [])]) + ".",
    )


def _panel(key: tuple[Any, ...], rows: list[Json]) -> Json:
    from attnbench.peers.plan import TITLES
    from attnbench.peers.table import PASSES, subject_text

    peer, mode, length, threads = key
    lines = [
        {
            "series": None,
            "name": subject_text(row),
            "points": [[*(rounded(row["metrics"]["ratio"][k]) for k in ("median",)), None,
                        *(rounded(row["metrics"]["ratio"][k]) for k in ("low", "high")), []]],
        }
        for row in sorted(rows, key=lambda row: -row["metrics"]["ratio"]["median"])
    ]  # fmt: skip
    shape = dict.fromkeys(f"{r['axes']['heads']} heads of {r['axes']['head_dim']}" for r in rows)
    return {
        "kind": "scores",
        "title": f"{TITLES[peer]}: {PASSES[mode]}, {length_text(length)} tokens",
        "facets": {"peer": TITLES[peer]},
        "context": f"{threads} thread{'s' * (threads > 1)}; {', '.join(shape)}",
        "x": {"title": "their time over ours", "kind": "ratio", "log": True},
        "y": {"title": "", "kind": "series"},
        "lines": lines,
        "levels": [["even", "as fast", 1]],
    }


def _row(row: Json, runs: dict[str, Json]) -> list[Any]:
    from attnbench.peers.plan import TITLES
    from attnbench.peers.table import PASSES, difference, shares, subject_text

    axes, metrics = row["axes"], row["metrics"]
    what = [subject_text(row), TITLES[row["peer"]], PASSES[axes["mode"]], axes["length"]]
    if row["status"] != "ok":
        return [*what, axes["threads"], *[None] * 8, f"{row['status']}: {row['reason']}"]
    ratio = [rounded(metrics["ratio"][k]) for k in ("median", "low", "high")]
    both = [rounded(s) for s in shares(row, runs) or (None, None)]
    times = [rounded(metrics[k]) for k in ("ours_s", "peer_s")]
    return [*what, axes["threads"], *times, *ratio, rounded(difference([row])), *both, ""]
