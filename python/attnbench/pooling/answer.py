"""All that rows of several machines say, with notes on what was left out and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..plots.rows.crossing import Searches, searches_of
from ..plots.rows.learned import EXACT
from ..plots.rows.read import FAILURES, PYTHON, PYTHON_NOTE, Rows
from ..plots.rows.settings import MEANINGS
from .crossings import crossings
from .figures import Difference, Group
from .lines import Line, listed, numbered, of_crossings, of_errors, of_ratios, of_scores
from .machines import Fleet, Place
from .ratios import is_exact, ratios, without_exact
from .scores import cut_off, differences, fidelity, memory, without_error

MEASURES = ("speed", "memory", "accuracy", "fidelity")
EXACT_WORDS = "exact attention"
OF_SOURCES = {"variant": "the variant", "task": "the task", "data": "the task's data", "exact": EXACT_WORDS}  # by their names in rows
MOST_NAMED = 6  # variants in one note


@dataclass(frozen=True)
class Answer:
    lines: tuple[Line, ...]
    left_out: tuple[str, ...]  # why figures are missing
    hints: tuple[str, ...]  # how to read what is there

    @property
    def notes(self) -> list[str]:
        return [*self.left_out, *self.hints]


def chosen(fleet: Fleet, variants: Sequence[str]) -> set[Place]:
    """The places whose variant is one of these: `linear`, or `truncated[window=16]` with some of its parameters."""
    return {m.place for m in (*fleet.cells, *fleet.gated) if not variants or any(_is(m.place, text) for text in variants)}


def _is(place: Place, text: str) -> bool:
    name, _, params = text.partition("[")
    wanted = {word.strip() for word in params.rstrip("]").split(",") if word.strip()}
    return place.variant.removesuffix(PYTHON) == name and wanted <= {f"{key}={value}" for key, value in place.params}


def answer(fleet: Fleet, files: Sequence[Rows], *, measure: str | None = None, variants: Sequence[str] = ()) -> Answer:
    """`files` are the rows that the machines come from: the program is asked about those that are searches."""
    places = chosen(fleet, variants)
    asked = _only(fleet, places)

    def wanted(groups: Iterable[Group]) -> list[Group]:
        """After the figures are made: a run's cells steady each other's variances, whichever are asked for."""
        return [group for group in groups if group.place in places]

    lines: list[Line] = []
    left_out: list[str] = []
    hints: list[str] = []
    if measure in (None, "speed"):
        groups = wanted(ratios(fleet))
        searches = _searches(files)
        lines += of_ratios("speed", groups) + of_crossings(crossings(groups, fleet, searches))
        left_out += [*_versions("times", groups), *_alone(asked, "speed", "times")]
        hints += [*dict.fromkeys(s.note for s in searches.values() if s.note), *_floors(groups)]
    if measure in (None, "memory"):
        groups = wanted(memory(fleet))
        lines += of_ratios("memory", groups)
        left_out += [*_versions("bytes", groups), *_alone(asked, "memory", "bytes")]
    if measure in (None, "accuracy"):
        groups = wanted(differences(fleet))
        metrics = {m.place: m.cell.scored_by for m in asked.of("accuracy") if m.cell.ok}
        lines += of_scores(groups, metrics)
        left_out += [*_versions("scores", groups), *_cut(asked)]
    if measure in (None, "fidelity"):
        groups = wanted(fidelity(fleet))
        lines += of_errors(groups)
        left_out += [*_versions("relative errors", groups), *_zeros(asked)]
    left_out += [*_failures(asked, measure), *_gated(asked, measure)]
    return Answer(tuple(lines), tuple(left_out), (*hints, *_hints(fleet, lines)))


def _floors(groups: Iterable[Group]) -> list[str]:
    """What a machine's noise floor hides, which else reads as a contradiction: an interval below 1 that decides nothing."""
    shares: dict[int, list[float]] = {}
    for group in groups:
        for figure in group.figures:
            if figure.floor > 0:
                shares.setdefault(figure.machine, []).append(100 * math.expm1(figure.floor))
    return [
        f"machine {number} decides no difference below its noise floor (attnbench noise), {min(own):.1f} to {max(own):.1f} % here"
        for number, own in sorted(shares.items())
    ]


def _only(fleet: Fleet, places: set[Place]) -> Fleet:
    """With exact attention, which each figure is held against."""
    cells, gated = (tuple(m for m in own if m.place in places or is_exact(m, fleet)) for own in (fleet.cells, fleet.gated))
    return replace(fleet, cells=cells, gated=gated)


def _searches(files: Iterable[Rows]) -> dict[str, Searches]:
    """What the program says of each run of a file that holds a search."""
    found: dict[str, Searches] = {}
    for rows in files:
        told = searches_of(rows)
        if told.lines or told.faults:
            found.update({head["run"]: told for head in rows.runs if (head.get("config") or {}).get("find") == "crossing"})
    return found


def _versions(what: str, groups: Iterable[Group]) -> list[str]:
    """A line for each machine whose figures are of another protocol or of other sources than those that were pooled."""
    names: dict[tuple[int, str], dict[str, None]] = {}
    for group in groups:
        for machine, difference in group.others:
            names.setdefault((machine, _why(difference)), {})[group.place.variant] = None
    return [f"not pooled: machine {machine}'s {what} of {_listed(list(own))}: {why}" for (machine, why), own in names.items()]


def _why(difference: Difference) -> str:
    if difference.protocol:
        return f"another protocol, {difference.protocol}"
    own = {EXACT_WORDS if source.startswith(f"{EXACT} ") else OF_SOURCES.get(source.rpartition(" ")[2], source) for source in difference.sources}
    return f"measured with other sources of {_listed(sorted(own))}"


def _alone(fleet: Fleet, measure: str, what: str) -> list[str]:
    why = "where the run has none of exact attention on the same axes"
    return [f"left out: {what} of {names} {why}" for names in _by_machine(without_exact(fleet, measure))]


def _zeros(fleet: Fleet) -> list[str]:
    return [f"left out: relative errors of {names}, which are 0 and have no logarithm" for names in _by_machine(without_error(fleet))]


def _by_machine(places: Iterable[tuple[int, Place]]) -> list[str]:
    """`linear and topk on machines 1 and 3`, for each list of variants that machines share."""
    names: dict[int, dict[str, None]] = {}
    for machine, place in places:
        names.setdefault(machine, {})[place.variant] = None
    machines: dict[str, list[int]] = {}
    for machine, own in sorted(names.items()):
        machines.setdefault(_listed(list(own)), []).append(machine)
    return [f"{variants} on {numbered(own)}" for variants, own in machines.items()]


def _cut(fleet: Fleet) -> list[str]:
    places: dict[tuple[str, int], dict[str, None]] = {}
    for place, machine in cut_off(fleet):
        places.setdefault((place.task_spec.partition("[")[0], machine), {})[place.variant] = None
    return [
        f"left out: machine {machine}'s scores of {_listed(list(own))} on {task}: a training, its own or exact attention's, was stopped by its number of steps"
        for (task, machine), own in places.items()
    ]


def _failures(fleet: Fleet, measure: str | None) -> list[str]:
    """Cells that ran and gave nothing: a variant that fails on a machine does not hold there."""
    names: dict[tuple[int, str], dict[str, None]] = {}
    for m in fleet.cells:
        if m.cell.status in FAILURES and measure in (None, m.cell.measure):
            names.setdefault((m.machine, m.cell.status), {})[m.cell.variant] = None
    return [f"without a figure: {_listed(list(own))} on machine {machine} ({status})" for (machine, status), own in names.items()]


def _gated(fleet: Fleet, measure: str | None) -> list[str]:
    red = [(m.machine, m.place) for m in fleet.gated if measure in (None, m.cell.measure)]
    return [f"left out: {names}: a contract check is red" for names in _by_machine(red)]


def _hints(fleet: Fleet, lines: Sequence[Line]) -> list[str]:
    marks = {mark for line in lines for one in line.machines for mark in one.marks}
    told = [f"{mark} {meaning}" for mark, meaning in MEANINGS.items() if mark in marks]
    if any(line.place.variant.endswith(PYTHON) for line in lines):
        told.append(PYTHON_NOTE)
    pooled = [line.pooled for line in lines if line.pooled and not math.isnan(line.pooled.tau)]
    by_seed = [line for line in lines if line.pooled and math.isnan(line.pooled.tau)]
    if len(fleet.machines) == 1:
        told.append("one machine: nothing is pooled, and the intervals are of its own visits")
    elif pooled:
        told.append(
            "pooled: the mean over machines with its 95 % interval (random effects, Hartung and Knapp); machines differ by one standard deviation of their "
            "true values, I\u00b2 is the share of their scatter that is no error of measurement, p the chance of it where all are alike"
        )
        if any(p.machines == 2 for p in pooled):
            told.append("two machines leave one degree of freedom: their pooled interval is 12.7 standard errors to either side; three decide far more")
        if any(_is_narrower(line) for line in lines):
            told.append(
                "a pooled interval follows from how far machines lie apart alone: some here lie closer together than their own intervals let expect, which "
                "makes it narrow; read it beside the intervals of the machines"
            )
    if by_seed:
        told.append("scores are pooled by seed, each with its mean over machines: machines that trained the same seeds add nothing")
    return [*told, *(f"note: {words}" for words in fleet.notes)]


def _is_narrower(line: Line) -> bool:
    """Whether the pooled interval is under half as long as errors of measurement alone would make it, were machines alike: under half of the
    shortest of their own, over the root of their number."""
    if line.pooled is None or math.isnan(line.pooled.tau):
        return False
    shown = line.pooled_as_shown
    own = [one.high - one.low for one in line.machines if math.isfinite(one.high - one.low)]
    return bool(own) and shown["high"] - shown["low"] < min(own) / (2 * math.sqrt(len(line.machines)))


def _listed(names: list[str]) -> str:
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more variants"
    return listed(names)
