"""results/reproductions.md and the pictures, from the rows alone."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnbench.plots.layout.caption import disturbed, provenance
from attnbench.plots.layout.page import Picture, save
from attnbench.plots.rows.read import Rows
from attnbench.plots.rows.settings import MEANINGS, marks_of
from attnbench.plots.rows.units import bytes_text, markdown, seconds_text

from .chart import drawn
from .entries import FOLDER, ROOT, Entry, read_entries, read_left_out
from .estimates import Estimate
from .evidence import Evidence, is_measured, judged
from .judging import Finding, Verdict
from .product import Product

PAGE = ROOT / "results" / "reproductions.md"
HEAD = """# Published results, measured again

Each entry below takes one published result, measures it again with attnbench, and judges by code whether the claim holds. What is tested is an ordering, a ratio, a slope or a closed form, never an absolute time of another machine.
`scripts/reproduce report` writes this page from the rows; nothing on it is written by hand.

```
scripts/reproduce list                # the entries, and which are measured
scripts/reproduce run R7              # measures an entry and judges it; rows that are there are kept
scripts/reproduce run all --small     # all of them at a small size, into a temporary folder: shows that they run
scripts/reproduce report              # writes this page, its pictures and findings.md
```

An entry is a folder of [results/reproductions](reproductions): `entry.toml` (the claim, and the published figures with their
source), sweep files or a short program, their rows, and `verdict.py`, which makes findings of the rows. A finding *holds* where its whole
95 % interval keeps its bounds, *fails* where the whole interval breaks them, and is *unclear* otherwise. One that is marked *(of the machine)* may
come out otherwise on another machine or with another program. The outcome follows:

- **disagrees**: a finding fails that no machine can change. Of k findings that lie on their bounds, one fails by chance in at most
  k · 2.5 % of runs; where the intervals of an entry are made to hold together, in at most 2.5 %.
- **undecided**: a finding is unclear, or a figure is missing.
- **hardware**: what fails depends on the machine (which of two programs is faster), and everything else holds.
- **agrees**: every finding holds. A claim that needs all of its findings is confirmed by chance in at most 2.5 % of runs.

An outcome carries the marks of the rows behind it; rows that are measured again lose them. """ + "; ".join(
    f"`{mark}`: {told}" for mark, told in MEANINGS.items()
) + """.
"""


@dataclass(frozen=True)
class Judged:
    entry: Entry
    verdict: Verdict | None  # None: not measured
    picture: Picture | None
    measured: Rows | None  # run lines, for the words of where it was measured, and cells

    @property
    def outcome(self) -> str:
        """With the marks of its rows: `agrees *`."""
        if self.verdict is None or self.measured is None:
            return "not measured yet"
        return f"{self.verdict.outcome.value}{self.marks}"

    @property
    def marks(self) -> str:
        marks = marks_of(self.measured.cells) if self.measured else ""
        return f" `{marks}`" if marks else ""


def judge_all(product: Product, folder: Path = FOLDER) -> list[Judged]:
    return [judge(entry, folder / entry.id, product) for entry in read_entries(folder)]


def judge(entry: Entry, rows: Path, product: Product) -> Judged:
    if not is_measured(entry, rows):
        return Judged(entry, None, None, None)
    verdict = judged(entry, rows, product)
    evidence = Evidence(entry, rows, product)
    read = [evidence.runs(one) for one in entry.measurements]
    whole = Rows(
        tuple(file for one in read for file in one.files),
        [run for one in read for run in one.runs],
        [cell for one in read for cell in one.cells],
    )
    picture = drawn(entry, verdict.panels, whole, whole.cells) if verdict.panels else None
    return Judged(entry, verdict, picture, whole)


def write(found: list[Judged], page: Path = PAGE, folder: Path = FOLDER) -> list[Path]:
    written = []
    for one in found:
        if one.picture:
            written += save([one.picture], folder / one.entry.id, is_noted=False)
    page.write_text(text_of(found, folder, page), encoding="utf-8")
    return [*written, page]


def text_of(found: list[Judged], folder: Path = FOLDER, page: Path = PAGE) -> str:
    parts = [HEAD, _summary(found)]
    parts += [_section(one, os.path.relpath(folder, page.parent)) for one in found]
    left_out = read_left_out(folder)
    if left_out:
        lines = [f"- **{name}, {one['title']}**: {one['why']}" for name, one in left_out.items()]
        parts.append("## Without an entry yet\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _summary(found: list[Judged]) -> str:
    lines = []
    for one in found:
        lines.append([f"[{one.entry.id}](#{anchor(one.entry)})", one.entry.title, one.outcome])
    return markdown(["", "published result", "outcome"], lines) + "\n"


def anchor(entry: Entry) -> str:
    """As GitHub makes it of the heading."""
    kept = (c for c in _heading(entry).lower() if c.isalnum() or c in " -_")
    return "".join(kept).replace(" ", "-")


def _heading(entry: Entry) -> str:
    return f"{entry.id}: {entry.title}"


def _section(one: Judged, folder: str) -> str:
    entry, verdict = one.entry, one.verdict
    parts = [
        f"## {_heading(entry)}",
        f"*{entry.paper}, {entry.place}.* **Claim:** {entry.claim}",
        f"**Set-up here:** {entry.scaled}",
        *([f"**Bounds:** {entry.bounds}"] if entry.bounds else []),
    ]
    if verdict is None or one.measured is None:
        idle = " on an idle machine" if entry.idle else ""
        parts.append(f"Not measured yet: `scripts/reproduce run {entry.id}`{idle}, {_minutes(entry)}.")
        return "\n\n".join(parts) + "\n"
    noise = disturbed(one.measured.cells, "behind it")
    parts.append(" ".join(filter(None, (f"**Outcome: {one.outcome}.** {verdict.why}", noise))))
    if verdict.findings:
        parts.append(_table(verdict.findings))
        parts += filter(None, [together(verdict.findings)])
    if one.picture:
        parts.append(f"![{entry.title}]({folder}/{entry.id}/{entry.id}.png)")
    sources = "; ".join(f"{p.source} ({p.unit})" for p in entry.published.values())
    links = ", ".join(
        f"[{m.name}.jsonl]({folder}/{entry.id}/{m.name}.jsonl)" for m in entry.measurements
    )
    where = provenance(one.measured).partition(". ")[2]
    told = [f"Rows: {links}. {where}"] + ([f"Published figures: {sources}."] if sources else [])
    told.append(f"Again: `scripts/reproduce run {entry.id} --force`, {_minutes(entry)}.")
    parts.append(" ".join(told))
    return "\n\n".join(parts) + "\n"


def _minutes(entry: Entry) -> str:
    return f"about {entry.minutes:g} minute{'s' * (entry.minutes != 1)} on two cores"


def _table(findings: tuple[Finding, ...]) -> str:
    lines = []
    for one in findings:
        machine = " (of the machine)" if one.of_machine else ""
        lines.append([f"{one.what}{machine}", figure(one.found, one.unit), bounds(one), one.published or "–", one.state.value])
    return markdown(["finding", "measured [95 %]", "must be", "published", ""], lines)


def together(findings: Sequence[Finding]) -> str:
    """What the intervals of several figures are, each of which alone would be narrower, and which of the others are not so."""
    size = sum(one.found.among > 1 for one in findings)
    if not size:
        return ""
    others = [one.what for one in findings if one.found.among == 1 and not one.found.exact]
    but = f", but for {' and '.join(f'“{what}”' for what in others)}," if others else ""
    return (
        f"The intervals here{but} are wider than those of single figures: each is one of {100 - 5 / size:.2f} %, so that all {size} of "
        "them hold together in 95 % of cases (Bonferroni)."
    )


def _number(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    texts = {"bytes": bytes_text, "seconds": seconds_text}
    return texts[unit](value) if unit in texts else f"{value:.3g}".replace("e+0", "e")


def figure(found: Estimate, unit: str = "") -> str:
    """`2.01 [1.98, 2.04]`; an exact figure has no interval."""
    ends = "" if found.exact else f" [{_number(found.low, unit)}, {_number(found.high, unit)}]"
    return _number(found.value, unit) + ends


def bounds(one: Finding) -> str:
    low, high = _number(one.least, one.unit), _number(one.most, one.unit)
    if one.least == -math.inf:
        return f"≤ {high}"
    return f"≥ {low}" if one.most == math.inf else f"{low} to {high}"
