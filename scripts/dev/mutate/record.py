"""Results on disk: a line of JSON for the run and one for each mutant; what a reader found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .place import Place
from .sample import kind

CONTRACT, TESTS = ("quick", "full", "choices"), ("tests", "double")


class Record:
    """A file that a later run of the same sample continues."""

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        self.path = path
        lines = []
        if path.is_file():
            whole = path.read_text().rpartition("\n")[0]  # a run that was killed may cut its last line
            path.write_text(whole + "\n" if whole else "")
            lines = [json.loads(line) for line in whole.splitlines()]
        if lines and any(lines[0].get(key) != run[key] for key in run if key != "commit"):
            raise ValueError(f"{path} is of another run: {lines[0]}; name another file")
        self.done = {line["id"]: line for line in lines[1:]}
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write({"kind": "run", **run})

    def add(self, result: dict[str, Any]) -> None:
        self.done[result["id"]] = result
        self._write(result)

    def _write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def described(place: Place, source: bytes) -> dict[str, Any]:
    def shown(text: bytes) -> str:
        return " ".join(text.decode().split())

    return {
        "id": place.id, "file": place.file, "line": place.line, "function": place.function,
        "operator": place.operator, "kind": kind(place),
        "was": shown(source[place.start : place.end]), "became": shown(place.changed(source)),
    }  # fmt: skip


def read(paths: list[Path]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The run, and the last result of each mutant: a later trial replaces an earlier one."""
    run: dict[str, Any] = {}
    results: dict[int, dict[str, Any]] = {}
    for path in paths:
        for line in map(json.loads, path.read_text().splitlines()):
            if line.get("kind") == "run":
                run = run or line
            else:
                results[line["id"]] = line
    return run, sorted(results.values(), key=lambda r: r["id"])


def reasons(path: Path) -> list[dict[str, str]]:
    """What a reader found of survivors: the fields of a result that name it, a verdict and why."""
    if not path.is_file():
        return []
    entries = json.loads(path.read_text())
    for entry in entries:
        missing = {"file", "function", "was", "became", "verdict", "reason"} - set(entry)
        if missing or entry["verdict"] not in VERDICTS:
            raise ValueError(
                f"{path}: {entry} needs file, function, was, became, reason "
                f"and a verdict of {', '.join(VERDICTS)}"
            )
    return entries


# same: the program behaves the same; speed: only time or memory differ, within what is promised;
# open: a gap that no test closes yet.
VERDICTS = ("same", "speed", "open")


def reason_of(result: dict[str, Any], entries: list[dict[str, str]]) -> dict[str, str] | None:
    keys = ("file", "function", "was", "became")
    return next((e for e in entries if all(e[k] == result[k] for k in keys)), None)
