"""The caption's facts: rows, machine, commit, intervals, noise floor, and what was skipped or
failed and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from ..rows.read import FAILURES, PYTHON_NOTE, PYTHON_SHORT, Cell, Rows, is_python
from ..rows.settings import DISTURBED, MEANINGS, SHORT, marks_of


def provenance(rows: Rows) -> str:
    """`Rows: a.jsonl. Machine: CPU, 2 cores, 2 threads. attnbench 0.1.0, commit abc1234. Protocol
    attnbench-1 (0123456789abcdef).` Rows of earlier versions name no protocol."""
    names = ", ".join(f.name for f in rows.files)
    told = unique(machine_words(r.get("environment") or {}) for r in rows.runs)
    tools = unique(tool_words(r.get("environment") or {}) for r in rows.runs)
    several = machines(rows)
    alike = f" that differ in {differences(rows)}" if len(told) == 1 else ""
    mixed = "Machine: " if several == "one machine" else f"Caution, {several}{alike}: "
    by = "; ".join(unique(filter(None, map(protocol_words, rows.runs))))
    return f"Rows: {names}. {mixed}{'; '.join(told)}. {'; '.join(tools)}.{f' Protocol {by}.' if by else ''}"


def protocol_words(head: dict[str, Any]) -> str:
    """Of the run lines of a run: `attnbench-1 (0123456789abcdef), departs in length, timeout`."""
    told = []
    for protocol in head.get("protocols") or []:
        departs = ", ".join(protocol["departs"])
        told.append(f"{protocol['name']} ({protocol['hash']}){f', departs in {departs}' if departs else ''}")
    return "; ".join(told)


MACHINE = {
    "cpu_model": "processor",
    "cores": "cores",
    "memory_bytes": "memory",
    "caches": "caches",
    "instruction_set": "instruction set",
}


def machines(rows: Rows) -> str:
    """`one machine` where nothing tells the runs' machines apart, else how many."""
    told = [r.get("environment") or {} for r in rows.runs]
    count = len({tuple(str(env.get(name)) for name in MACHINE) for env in told})
    words = ("one machine", "two machines", "three machines", "four machines")
    return words[count - 1] if 0 < count <= len(words) else f"{count} machines"


def differences(rows: Rows) -> str:
    """What tells the runs' machines apart: `memory and caches`."""
    told = [r.get("environment") or {} for r in rows.runs]
    differ = [w for name, w in MACHINE.items() if len({str(env.get(name)) for env in told}) > 1]
    return " and ".join(filter(None, (", ".join(differ[:-1]), *differ[-1:])))


def machine_words(env: dict[str, Any]) -> str:
    parts = [str(env.get("cpu_model") or "unknown CPU")]
    for name in ("cores", "threads"):
        if env.get(name) is not None:
            parts.append(f"{env[name]} {name if str(env[name]) != '1' else name[:-1]}")
    if env.get("instruction_set"):
        parts.append(
            str(env["instruction_set"]).split(" ")[0]
            if len(str(env["instruction_set"])) > 24
            else str(env["instruction_set"])
        )
    return ", ".join(parts)


def tool_words(env: dict[str, Any]) -> str:
    dirty = str(env.get("dirty", "")).lower() in ("true", "1", "yes")
    return (
        f"attnbench {env.get('version', '')}".strip()
        + f", commit {str(env.get('commit') or 'unknown')[:9]}"
        + (" with local changes" if dirty else "")
    )


MEDIANS = "Points are medians."


def repetitions(cells: list[Cell], marks: str = "bands") -> str:
    """How many, in how many processes, and what the marks of the intervals then mean."""
    done = [c for c in cells if c.ok]
    if not done:
        return ""
    n = _span(len(c.times()) or int(c.metric("time_s.n") or 0) for c in done)
    several = [c for c in done if len(c.visits) > 1]
    within = "95 % bootstrap intervals of the repetitions as if of one process"
    between = f"95 % t-intervals between {_span(len(c.visits) for c in several)} visits (processes)"
    if len(several) == len(done):
        meant = between
    else:
        meant = f"{between}, of other cells {within}" if several else within
    return f"{MEDIANS[:-1]}, {marks} {meant}, n = {n} repetitions."


def _span(counts: Iterable[int]) -> str:
    found = sorted(set(counts))
    return "\u2013".join(str(n) for n in dict.fromkeys((found[0], found[-1]))) if found else ""


NOISE = {  # the words of a row's `noisy`
    "stopped": "the process was stopped",
    "witness": "work that never changes took longer beside it",
    "steal": "the hypervisor took time",
    "switches": "another process took the core",
}


def disturbed(cells: list[Cell], where: str = "shown here") -> str:
    """How many of the times were measured on a disturbed machine, and by what rule (`noisy` of the row)."""
    times = [c for c in cells if c.ok and c.measure == "speed"]
    noisy = [c for c in times if c.noisy]
    if not noisy:
        return ""
    why = {reason: sum(reason in c.noisy for c in noisy) for c in noisy for reason in c.noisy}
    reasons = "; ".join(f"{NOISE.get(r, r)} ({count})" for r, count in sorted(why.items()))
    if len(why) == 1:
        reasons = NOISE.get(next(iter(why)), next(iter(why)))
    verb = "was" if len(noisy) == 1 else "were"
    return f"{len(noisy)} of the {len(times)} times {where} {verb} measured on a disturbed machine: {reasons}."


def marks_key(cells: Iterable[Cell], marks: str | None = None) -> str:
    """What the signs of a picture say, between middle dots, and how many of its times were disturbed. It stands above the
    caption and is never cut. `marks`: those in the picture, where they are not those of the cells."""
    cells = list(cells)
    told = {mark: SHORT[mark] for mark in MEANINGS if mark in (marks_of(cells) if marks is None else marks)}
    times = [c for c in cells if c.ok and c.measure == "speed"]
    if DISTURBED in told and times:
        told[DISTURBED] += f": {sum(bool(c.noisy) for c in times)} of the {len(times)} times"
    python = [PYTHON_SHORT] if any(map(is_python, cells)) else []
    return " \u00b7 ".join([f"{mark} {said}" for mark, said in told.items()] + python)


def by_identities(cells: list[Cell]) -> str:
    """Which cells were compared with other answers of the variant alone, and which with nothing."""
    found = [c for c in cells if c.ok and c.verified.get("by") == "identities"]
    some = unique(c.variant for c in found if c.verified.get("identities"))
    none = unique(c.variant for c in found if not c.verified.get("identities"))
    alone = "no reference was compared at these lengths, only answers of the variant with each other"
    told = [(some, alone), (none, "nothing could be compared at these lengths")]
    return " ".join(f"{', '.join(names)}: {what}." for names, what in told if names)


def in_python(rows: Rows) -> str:
    """What the sign of variants in Python says, where the rows hold one."""
    return PYTHON_NOTE if any(map(is_python, rows.cells)) else ""


def missing(cells: list[Cell]) -> str:
    """What has no number: skipped cells and failures with their reason; equal ones told once."""
    told: dict[tuple[str, str, str], int] = {}
    for cell in cells:
        if not cell.ok:
            key = (cell.status, ", ".join(filter(None, (cell.variant, _where(cell)))), _why(cell))
            told[key] = told.get(key, 0) + 1
    out = []
    for title, chosen in (("Skipped", ("skipped",)), ("Failed, drawn as \u2715", FAILURES)):
        items = [
            f"{what}{'' if status == 'skipped' else ': ' + status}"
            f" ({'; '.join(filter(None, (reason, f'{n} cells' if n > 1 else '')))})"
            for (status, what, reason), n in told.items()
            if status in chosen
        ]
        shown = items[:6] + ([f"and {len(items) - 6} more, see the CSV"] if len(items) > 6 else [])
        if items:
            out.append(f"{title}: {'; '.join(shown)}.")
    return " ".join(out)


def _where(cell: Cell) -> str:
    return cell.task or ("causal" if cell.axes.get("causal") else "")


def _why(cell: Cell) -> str:
    """The reason as it reads after the variant's name."""
    reason = (cell.reason or "no reason given").rstrip(".")
    return reason.removeprefix(f"{cell.variant} ").removeprefix(f"{cell.variant}: ")


def brief(labels: list[str]) -> str:
    """`performer features=32, 128; linear`: what labels share is said once."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        head, sign, value = label.rpartition("=")
        groups.setdefault(head + sign, []).append(value)
    return "; ".join(head + ", ".join(values) for head, values in groups.items())


def unique(items: Any) -> list[Any]:
    return list(dict.fromkeys(items))


def caption(rows: Rows, cells: list[Cell], *notes: str) -> str:
    """All that there is to say: what is shown, what is missing, where it comes from, a paragraph
    each. The picture shows two lines of it, see `two_lines`; its CSV and its files hold the whole."""
    told = [*notes, not_learned(rows, cells), disturbed(cells), by_identities(cells), in_python(rows)]
    paragraphs = [" ".join(filter(None, told)), missing(cells), provenance(rows)]
    return "\n".join(filter(None, paragraphs))


def not_learned(rows: Rows, cells: list[Cell]) -> str:
    """The settings that a picture of scores leaves out, or one of trainings shows all the same; nothing under another picture."""
    if not rows.left_out or not any(c.measure == "accuracy" for c in cells):
        return ""
    is_shown = bool({c.id for c in rows.unlearned} & {c.id for c in cells})
    return left_out_text(rows, "Shown, though" if is_shown else "Left out, for")


def left_out_text(rows: Rows, lead: str = "Left out, for") -> str:
    return f"{lead} the control has not learned them: {'; '.join(rows.left_out)}."


def two_lines(text: str, fits: Callable[[str], bool]) -> list[str]:
    """Returns what stands under a picture: what it shows, in as many whole sentences as one line
    holds, and in the last line where it comes from."""
    shown, _, origin = text.rpartition("\n")
    line = ""
    for sentence in SENTENCE.split(shown.partition("\n")[0]):
        longer = f"{line} {sentence}".strip()
        line = longer if fits(longer) else line or _cut(sentence, fits)
    return [each for each in (line, _shorter(origin, fits)) if each]


SENTENCE = re.compile(r"(?<=[.)]) (?=[A-Z\d\u2013\u2021])")
LESS = (  # what an origin leaves out, in this order, until it fits, and what stands for it
    (re.compile(r"\(R\)|\(TM\)| Processor| CPU| @ [\d.]+ ?GHz"), ""),
    (re.compile(r", \d+ threads?\b(, [\w -]+(\.\d[\w -]*)*)?(?=[.;])"), ""),
    (re.compile(r", \d+ cores?\b"), ""),
    (re.compile(r", commit \w+ with local changes"), " with local changes"),
    (re.compile(r", commit \w+"), ""),
    (re.compile(r" \([0-9a-f]{16}\)"), ""),
)


def _shorter(origin: str, fits: Callable[[str], bool]) -> str:
    for words, instead in LESS:
        if fits(origin):
            break
        origin = words.sub(instead, origin)
    return origin if fits(origin) else _cut(origin, fits)


def _cut(text: str, fits: Callable[[str], bool]) -> str:
    """The beginning of a text that is too long for the line, up to the end of a word."""
    words = text.split(" ")
    while len(words) > 1 and not fits(" ".join(words) + " \u2026"):
        words.pop()
    return " ".join(words) + " \u2026"


MOST_SHOWN = 8  # floors in one note
Known = list[dict[str, Any]]


class Floors:
    """The floors of each run, by its id."""

    def __init__(self, runs: list[dict[str, Any]]) -> None:
        self._of_run: dict[str, Known] = {}
        for head in runs:
            if head.get("noise_floor"):
                self._of_run.setdefault(head["run"], head["noise_floor"])

    def _known(self, cell: Cell) -> Known:
        mode, threads = cell.axes.get("mode", "forward"), cell.axes.get("threads", 1)
        known = self._of_run.get(cell.run, [])
        return [f for f in known if (f["mode"], f["threads"]) == (mode, threads)]

    def share(self, cell: Cell) -> float | None:
        """The floor of the cell's mode and threads at the nearest measured length; of two that are
        as near, the higher one. None where none was measured."""
        here = cell.length
        if here is None:
            return None
        found = [
            (max(f["length"] / here, here / f["length"]), -f["share"]) for f in self._known(cell)
        ]
        return -min(found)[1] if found else None

    def shares(self, cells: tuple[Cell, ...]) -> dict[int, float]:
        """By length, of cells of one mode and number of threads; of several runs the highest."""
        out: dict[int, float] = {}
        for cell in cells:
            share = self.share(cell)
            if share is not None and cell.length is not None:
                out[cell.length] = max(share, out.get(cell.length, 0.0))
        return out

    def note(self, cells: list[Cell]) -> str:
        """A sentence for a caption; empty where no run of these cells quotes a floor."""
        told = unique(_sentence(c, self._known(c)) for c in cells if c.run in self._of_run)
        return " ".join(told)


def _sentence(cell: Cell, known: Known) -> str:
    mode, threads = cell.axes.get("mode", "forward"), cell.axes.get("threads", 1)
    if not known:
        plural = "" if threads == 1 else "s"
        return (
            f"No noise floor of this machine is known for {mode} with {threads} thread{plural} "
            "(attnbench noise)."
        )
    known = sorted(known, key=lambda f: int(f["length"]))
    texts = [f"{100 * f['share']:.1f} % at {f['length']}" for f in known]
    if len(texts) > MOST_SHOWN:
        shares = sorted(f["share"] for f in known)
        texts = [
            f"{100 * shares[0]:.1f} to {100 * shares[-1]:.1f} % at {known[0]['length']} to "
            f"{known[-1]['length']}"
        ]
    date = max(str(f["measured_at"])[:10] for f in known)
    return f"Noise floor of this machine, {mode}: {', '.join(texts)} (attnbench noise, {date})."


def floors_of(rows: Rows) -> Floors:
    return Floors(rows.runs)
