"""An answer in words: three lines at most, what they rest on, what is undecided and what would decide it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attnbench.plots.rows.read import Cell
from attnbench.plots.rows.settings import CUT, DISTURBED, SHORT, marks_of, shape_text, written
from attnbench.plots.rows.units import bytes_text, factor_text, ratio_text

from .choosing import Answer, Line, Open
from .deciding import ALPHA
from .evidence import Evidence
from .memory import Held
from .scoring import KEEP, Score, Scored
from .standing import MANY, Ratio, Standing, Timing

NAMED = 6  # variants that a list names before it counts
VERDICTS = {
    "take": "take the first of these",
    "any": "take any of place 1: the rows do not tell them apart in time",
    "exact": "take exact attention: every other variant here is slower or left out",
    "none": "nothing in these rows fits",
    "undecided": "undecided",
}
LOSING = f"left out, keep less than {KEEP:.0%} of the score above a shortcut's"
SLOWER = "left out, slower than exact attention"


def listed(names: Iterable[str], most: int = NAMED) -> str:
    found = list(names)
    more = len(found) - most
    return ", ".join(found[:most]) + (f" and {more} more" if more > 0 else "")


def time_text(standing: Standing) -> str:
    """Returns `×0.31 of exact attention's time (0.28 to 0.35), faster on 3 of 3 machines`."""
    if standing.time == "exact":
        return "exact attention itself"
    ratio = standing.ratio
    if ratio is None:
        return standing.why_time
    told = f"{ratio_text(ratio.value)} of exact attention's time ({factor_text(ratio.low)} to {factor_text(ratio.high)}{_each(ratio)})"
    return f"{told}, {_verdict(standing, ratio)}"


def _each(ratio: Ratio) -> str:
    return " over both machines" if ratio.machines == MANY - 1 else ""


def _verdict(standing: Standing, ratio: Ratio) -> str:
    count = ratio.machines
    machines = f"{count} of {count} machine{'' if count == 1 else 's'}"
    if standing.time in ("faster", "slower"):
        return f"{standing.time} on {machines}"
    return standing.why_time


def memory_text(standing: Standing, exact: Standing | None) -> str:
    """Returns `33 MiB (exact attention 512 MiB)`."""
    held = standing.held
    if held is None:
        return "memory not measured"
    own = _bytes(held) + ("" if held.what == "peak" else " of state")
    beside = exact.held if exact and exact is not standing else None
    if beside is None or (beside.shape, beside.what) != (held.shape, held.what):
        return own
    return f"{own} (exact attention {_bytes(beside)})"


def _bytes(held: Held) -> str:
    return bytes_text(held.high) if held.low == held.high else f"{bytes_text(held.low)} to {bytes_text(held.high)}"


def score_text(standing: Standing) -> str:
    """Returns the score on the task on which the variant keeps least; "" where no task was asked for."""
    if not standing.score:
        return ""
    if not standing.scores:
        return standing.why_score
    worst = min(standing.scores, key=lambda s: s.kept)
    many = len({s.setting for s in standing.scores})
    told = one_score(worst) + (f", the worst of {many} settings" if many > 1 else "")
    return told if standing.score in ("keeps", "loses") else f"{told}; {standing.why_score}"


def one_score(score: Score) -> str:
    """Returns `scores 0.985 ± 0.004 on mqar of length 64, full 0.99`: of the length that was trained, not of the question's."""
    own = written(score.mean, score.metric) + (f" \u00b1 {score.half:.2g}" if score.half is not None else "")
    length = next((c.length for c in score.cells if c.length), None)
    against = "" if score.mean == score.reference else f", {score.control} {written(score.reference, score.metric)}"
    return f"scores {own} on {score.task}{f' of length {length}' if length else ''}{against}"


def marks_text(standing: Standing, exact: Standing | None) -> str:
    """Returns what the marks of both times say, but for those that never count."""
    cells = [*standing.cells, *(exact.cells if exact else ())]
    return "; ".join(SHORT[m] for m in marks_of(cells) if m not in (CUT, DISTURBED))


def line_text(line: Line, answer: Answer) -> str:
    s = line.standing
    parts = [time_text(s), memory_text(s, answer.table.exact), score_text(s), marks_text(s, answer.table.exact)]
    return f"{line.place}. {s.label}: {'; '.join(p for p in parts if p)}"


def head_text(answer: Answer) -> str:
    """Returns the verdict in a line."""
    table = answer.table
    alike = sum(line.place == 1 for line in (*answer.lines, *answer.more))
    verdict = "any" if answer.verdict == "take" and alike > 1 else answer.verdict
    return f"{table.question.text}{implied_text(table.question.task) if table.is_implied else ''}: {VERDICTS[verdict]}"


def implied_text(task: str) -> str:
    return f" (causal, as {task} is in these rows)"


def rests_text(answer: Answer, evidence: Evidence) -> str:
    """Returns how many machines, cells and seeds the answer rests on, at which measured lengths."""
    table = answer.table
    parts = [times_rest(table.timing, table.question.length, evidence), scores_rest(table.scored)]
    if not any(parts) or parts[0] == _left(table.timing):  # nothing but what was left out
        parts = ["no row", *parts]
    return f"rests on {'; '.join(filter(None, parts))}"


def times_rest(timing: Timing, length: int, evidence: Evidence) -> str:
    """Returns what the times and the memory of an answer rest on, "" for nothing."""
    times = [c for by_key in timing.behind(evidence.exact) for key, timed in by_key.items() if not evidence.is_control(key) for c in timed.cells]
    held = [c for h in timing.held.values() for c in h.cells]
    told = []
    if times:
        machines = evidence.machines_of(times)
        lengths = sorted({c.length or 0 for c in times})
        between = "" if lengths == [length] else f" about {length}"
        at = f"length{'' if len(lengths) == 1 else 's'} {listed(map(str, lengths))}{between}"
        told.append(f"{counted(len(machines), 'machine')} ({'; '.join(machines)})")
        told.append(f"{counted(len(_unique(times)), 'time')} at {at}, {shape_text(times[0])}")
    if held:
        same = timing.times is None or {h.shape for h in timing.held.values()} == {timing.times.shape}
        told.append(f"{counted(len(_unique(held)), 'figure')} of memory" + ("" if same else f", {shape_text(held[0])}"))
    return "; ".join(filter(None, [*told, _left(timing)]))


def _left(timing: Timing) -> str:
    """Returns how many times do not count, "" for none."""
    left = [f"{counted(len(timing.clock.disturbed), 'disturbed time')}"] if timing.clock.disturbed else []
    left += [f"{counted(len(timing.clock.single), 'time')} of a single visit"] if timing.clock.single else []
    return f"{' and '.join(left)} left out" if left else ""


def scores_rest(scored: Scored) -> str:
    """Returns what the scores of an answer rest on, "" for nothing."""
    own = [s for of in scored.by_variant.values() for s in of]
    if not own:
        return ""
    seeds = [s.seeds for s in own]
    few, many = min(seeds), max(seeds)
    count = f"{few} to {many} seeds" if few < many else counted(many, "seed")
    cells = counted(len(_unique(c for s in own for c in s.cells)), "score")
    return f"{cells} of {count} on {listed(scored.tasks)}, so few that {hidden_failures(many):.0%} of trainings could fail unseen"


def counted(count: int, name: str) -> str:
    return f"{count} {name}{'' if count == 1 else 's'}"


def _unique(cells: Iterable[Cell]) -> set[str]:
    return {c.id for c in cells}


def hidden_failures(seeds: int) -> float:
    """Returns the share of trainings that may fail without one of `seeds` having failed: the upper end of its 95 % interval
    (Clopper and Pearson 1934)."""
    return float(1 - ALPHA ** (1 / seeds))


def left_out_texts(answer: Answer) -> list[str]:
    """Returns who was left out and why, a line a reason."""
    limit = answer.table.question.memory
    out = []
    if answer.over and limit is not None:
        out.append(f"left out, over {bytes_text(limit)}: {listed(map(over_text, answer.over))}")
    if answer.losing:
        worst = [f"{s.label} ({score_text(s)})" for s in answer.losing]
        out.append(f"{LOSING}: {listed(worst, 3)}")
    if answer.slower and answer.lines:
        out.append(f"{SLOWER}: {listed(map(point_text, answer.slower))}")
    return out


def over_text(standing: Standing) -> str:
    held = standing.held
    if held is None:
        return standing.label
    return f"{standing.label} ({'' if held.low == held.high else 'at least '}{bytes_text(held.low)})"


def open_text(found: Open) -> str:
    names: Sequence[str] = [point_text(s) for s in found.standings]
    return f"undecided: {found.reason}" + (f": {listed(names)}" if names else "")


def point_text(standing: Standing) -> str:
    return standing.label + (f" ({ratio_text(standing.ratio.value)})" if standing.ratio else "")
