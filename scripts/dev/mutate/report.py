"""Tables of a run: who notices how many mutants, by folder and by kind; survivors with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .record import reason_of
from .trial import LEVELS, noticed

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
            f"{len(self.counted) - len(reached)} lie where no check of a variant comes. "
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
