"""R19: crossing lengths of time and memory against exact attention in two forms. Both are those of two programs: bytes are the same on every machine, and
others in another program."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import crossings_of, exact, quotient
from attnbench.reproduce.judging import Finding, Verdict

TILED, TEXTBOOK = "full[kernel=tiled]", "full[kernel=materialized]"
NAMES = {"truncated": "local"}  # as the paper calls them


def verdict(evidence):
    found = {
        (NAMES.get(name, name), measure, rival): length
        for (name, measure, rival), length in crossings_of(evidence.crossings("crossing")).items()
    }
    names = sorted({key[0] for key in found})
    told = evidence.published("efficiency_length")
    findings = []
    for name, (of_time, of_memory) in told.items():
        findings.append(
            Finding(f"{name}: length for time over length for memory, textbook form",
                    quotient(_decided(found, name, "speed"), _decided(found, name, "memory")), least=1,
                    of_machine=True, published=f"{of_time} over {of_memory}")  # fmt: skip
        )
    for place, (measure, word) in enumerate((("speed", "time"), ("memory", "memory"))):
        ratio = quotient(_decided(found, "local", measure), _decided(found, "performer", measure))
        findings.append(
            Finding(f"length for {word}, local over performer", ratio, least=1,
                    published=f"{told['local'][place]} over {told['performer'][place]}",
                    of_machine=True)  # fmt: skip
        )
    return Verdict(tuple(findings), _why(evidence, found, names), (_panel(evidence, found, names),))


def _decided(found, name, measure):
    if (name, measure, TEXTBOOK) not in found:
        raise MissingError(f"no crossing of {name} with the textbook form by {measure}")
    return found[name, measure, TEXTBOOK]


def _text(found):
    if found is None:
        return "undecided"
    if not math.isfinite(found.value):
        return "beyond the lengths measured"
    return f"at most {found.high:.0f}" if found.low <= 1 else f"{found.value:.0f}"


def _why(evidence, found, names):
    told = evidence.published("efficiency_length")
    parts = [
        f"{name}: time {_text(found.get((name, 'speed', TEXTBOOK)))} against the textbook form and "
        f"{_text(found.get((name, 'speed', TILED)))} against the tiled one (published {told[name][0]}), memory "
        f"{_text(found.get((name, 'memory', TEXTBOOK)))} and {_text(found.get((name, 'memory', TILED)))} (published {told[name][1]})"
        for name in names
        if name in told
    ]
    return f"""{'. '.join(parts)}. An efficiency length is one of two programs: it moves with how well each is written, and with the
        machine. What is counted as memory moves it too: the figures here include inputs and outputs."""


def _panel(evidence, found, names):
    rows = [(name, measure) for name in names for measure in ("speed", "memory")]
    words = {"speed": "time", "memory": "memory"}
    lines = []
    for rival, label in ((TEXTBOOK, "against the textbook form"), (TILED, "against the tiled form")):
        points = tuple(
            Point(i, found[(*row, rival)])
            for i, row in enumerate(rows)
            if found.get((*row, rival)) and math.isfinite(found[(*row, rival)].value)
        )
        lines.append(Line(label, points))
    told = evidence.published("efficiency_length")
    shown = tuple(
        Point(i, exact(told[name][0 if measure == "speed" else 1]))
        for i, (name, measure) in enumerate(rows)
        if name in told
    )
    lines.append(Line("against the textbook form", shown, published=True))
    return Panel(
        "from which length on less than exact attention", "", "sequence length", tuple(lines),
        names=tuple(f"{name}, {words[measure]}" for name, measure in rows), y_scale="length",
    )  # fmt: skip
