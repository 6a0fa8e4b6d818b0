"""Which places are tried, results on disk, and tables of a run: who notices how many mutants, by folder and
by kind, and survivors with reasons."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .tree import Place
from .trial import LEVELS, noticed

KINDS = {  # of an operator's first word
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), "bound"),
    **dict.fromkeys(("&&", "||", "!x", "c", "true,"), "condition"),
    **dict.fromkeys(("n", "x"), "constant"),
    **dict.fromkeys(("+", "-", "*", "/", "%", "+=", "-=", "*=", "/=", "-x"), "arithmetic"),
    "statement": "statement",
}


def kind(place: Place) -> str:
    return KINDS.get(place.operator.split()[0], "function")


def sampled(places: list[Place], count: int, seed: int) -> list[Place]:
    """A file's share grows with the square root of its places; in it kinds are equally likely."""
    files: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        files[place.file].append(place)
    count = min(count, len(places))
    draw = random.Random(seed)
    drawn = {
        file: _shuffled(files[file], random.Random(f"{seed} {file}")) for file in sorted(files)
    }
    taken = {file: 0 for file in drawn}
    chosen: list[Place] = []
    while len(chosen) < count:  # the file that is furthest behind its share; of equals, one by lot
        file = max(
            (f for f in drawn if taken[f] < len(drawn[f])),
            key=lambda f: (math.sqrt(len(drawn[f])) / (taken[f] + 1), draw.random()),
        )
        chosen.append(drawn[file][taken[file]])
        taken[file] += 1
    return sorted(chosen, key=lambda p: p.id)


def _shuffled(places: list[Place], draw: random.Random) -> list[Place]:
    kinds: dict[str, list[Place]] = defaultdict(list)
    for place in sorted(places, key=lambda p: p.id):
        kinds[kind(place)].append(place)
    for group in kinds.values():
        draw.shuffle(group)
    result = []
    while kinds:
        name = draw.choice(sorted(kinds))
        result.append(kinds[name].pop())
        if not kinds[name]:
            del kinds[name]
    return result


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


TITLE = (
    "# Mutants: who notices a change of the mathematics",
    "",
    "`scripts/mutate` changes operators, constants, bounds, conditions, calls and statements of "
    "`variants/`, `core/simd` and `core/ops`, one at a time, and asks who notices. This page is "
    "what `scripts/mutate report FILE` prints; reasons are kept in `results/mutation_survivors.json`. "
    "`same`: the program answers the same. `speed`: time, memory or a count within its tolerance "
    "differ. `open`: a gap.",
    "",
    "The contract is counted where a check of a variant reaches the change. All tests hold the "
    "contract over the catalogue.",
    "",
)
Result = dict[str, Any]
Reasons = list[dict[str, str]]


def by_contract(result: Result) -> bool:
    return noticed(result, *LEVELS)


def by_any(result: Result) -> bool:
    return by_contract(result) or noticed(result, "tests", "double")  # the tests hold the contract


def reached_by_contract(result: Result) -> bool:
    return any(result.get(level, "unreached") != "unreached" for level in LEVELS)


def folder(result: Result) -> str:
    return "/".join(result["file"].split("/")[:2])


class Report:
    def __init__(self, run: dict[str, Any], results: list[Result], reasons: Reasons) -> None:
        self.run, self.reasons = run, reasons
        self.all = results
        self.equal = [r for r in results if not by_any(r) and self._verdict(r) in ("same", "speed")]
        equal = {r["id"] for r in self.equal}
        self.counted = [r for r in results if r["id"] not in equal]

    def _verdict(self, result: Result) -> str | None:
        entry = reason_of(result, self.reasons)
        return entry["verdict"] if entry else None

    def survivors(self) -> list[Result]:
        return [r for r in self.all if not by_any(r)]

    def score(self, results: Iterable[Result], test: Callable[[Result], bool]) -> str:
        results = list(results)
        killed = sum(map(test, results))
        return f"{killed} of {len(results)}" + (
            f", {100 * killed / len(results):.1f} %" if results else ""
        )

    def lines(self) -> list[str]:
        reached = [r for r in self.counted if reached_by_contract(r)]
        levels = [
            (
                "contract at its quick level (`attnbench check NAME --quick`)",
                reached,
                lambda r: noticed(r, "quick"),
            ),
            (
                "contract in full (`attnbench check NAME`)",
                reached,
                lambda r: noticed(r, "quick", "full"),
            ),
            ("contract in full, with each choice of parameters", reached, by_contract),
            (
                "tests without the contract over the catalogue",
                self.counted,
                lambda r: noticed(r, "tests", "double"),
            ),
            ("all tests", self.counted, by_any),
        ]
        out = [
            *TITLE,
            f"Commit {self.run.get('commit', '?')}, seed {self.run.get('seed', '?')}. "
            f"{len(self.all)} mutants, of which {len(self.equal)} change no answer (see below) and "
            f"{len(self.counted) - len(reached)} lie in code that no check of a variant runs. "
            + ("Mutants were in the float build alone." if self.run.get("float") else ""),
            "", *filter(None, [self.run.get("note")]),
            "", "| who notices | mutants |", "|---|---|",
            *(f"| {name} | {self.score(results, test)} |" for name, results, test in levels), "",
        ]  # fmt: skip
        for title, key in (("folder", folder), ("kind of change", lambda r: r["kind"])):
            out += [f"| {title} | mutants | contract | all tests |", "|---|---|---|---|"]
            for name in sorted({key(r) for r in self.counted}):
                part = [r for r in self.counted if key(r) == name]
                within = [r for r in part if reached_by_contract(r)]
                out.append(
                    f"| {name} | {len(part)} | {self.score(within, by_contract)} "
                    f"| {self.score(part, by_any)} |"
                )
            out.append("")
        out += self._listed("Survivors of all tests", self.survivors())
        out += self._listed(
            "Noticed by a test alone, where the contract comes",
            [r for r in reached if by_any(r) and not by_contract(r)],
        )
        return out

    def _listed(self, title: str, results: list[Result]) -> list[str]:
        out = [
            f"{title}: {len(results)}",
            "",
            "| mutant | where | change | why |",
            "|---|---|---|---|",
        ]
        for r in results:
            entry = reason_of(r, self.reasons)
            by = next((r[s]["by"] for s in ("tests", "double") if isinstance(r.get(s), dict)), None)
            why = (
                f"noticed by `{by or 'a crash'}`"
                if by is not None
                else f"{entry['verdict']}: {entry['reason']}"
                if entry
                else "not read yet"
            )
            change = f"`{r['was']}` to `{r['became'] or 'nothing'}`".replace("|", "\\|")
            out.append(
                f"| {r['id']} | {r['file']}:{r['line']} {r['function']} | {change} | {why} |"
            )
        return [*out, ""]
