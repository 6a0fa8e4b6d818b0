"""The page of one archive: who says what of it, how to check it, and every cell with its command. It has no script. Times stand here, and
only here: each table is of one run on one machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from attnbench.plots.rows.read import OF_RUN, RUN, Cell
from attnbench.plots.rows.settings import MEANINGS as MEANINGS_OF_CELLS
from attnbench.plots.rows.settings import mark_of, written
from attnbench.plots.rows.units import bytes_text, seconds_text

from .markup import Child, Html, joined, table, tag
from .runs import Run, runs_of
from .safe import plain
from .submissions import Submission
from .verdicts import MEANINGS, Verdict

Page = Callable[[str, Html, None], str]
HEADS = ("measure", "variant", "setting", "value", "95 % interval", "cell", "checksum of its line", "command")

OWN_SOURCES = "It brings sources of its own variants, a stranger's code: read it first. verify builds and runs it, and repro needs it by --plugin."


def state_text(verdict: Verdict) -> str:
    return f"{verdict.state} {verdict.mark}".strip()


def archive_page(s: Submission, page: Page) -> str:
    runs = list(runs_of(s))
    sections: list[Html | None] = [
        tag("nav", tag("a", "All archives", href="../index.html"), aria_label="Board"),
        _statement(s),
        _facts(s),
        _again(s, runs),
        _anew(s),
        _contract(s),
        _unlearned(s),
        *(_cells(run, s, number) for number, run in enumerate(runs, 1)),
        _marks(s, runs),
    ]
    head = tag("header", tag("h1", s.file), tag("p", f"An archive of attnbench submit: {state_text(s.verdict)}."))
    return page(s.file, joined([head, tag("main", sections, id="main", tabindex="-1")]), None)


def _statement(s: Submission) -> Html:
    said = tag("blockquote", tag("bdi", s.statement)) if s.statement else tag("p", "The submitter says nothing.")
    return tag("section", tag("h2", "What the submitter says", id="statement"), said, aria_labelledby="statement")


def _facts(s: Submission) -> Html:
    facts: list[tuple[str, Child]] = [
        ("SHA-256", tag("code", s.digest)),
        ("Signature", s.signature),
        ("Verification", f"{state_text(s.verdict)}: {s.verdict.words}"),
        ("Rows files", ", ".join(sorted(set(s.members.values())))),
        ("Sources it brings", ", ".join(f"{name} ({bytes_text(size)})" for name, size in s.sources.items()) or "none"),
    ]
    listed = [(tag("dt", name), tag("dd", value)) for name, value in facts]
    return tag("section", tag("h2", "What stands behind it", id="facts"), tag("dl", listed, class_="facts"), aria_labelledby="facts")


def _again(s: Submission, runs: list[Run]) -> Html:
    members = sorted({run.member for run in runs})
    lines = [f"attnbench verify {s.file}", *(f"unzip -p {s.file} {member} > {_local(member)}" for member in members)]
    words = (
        "The first command measures a sample of its cells anew. The others take out the rows, for the commands of single cells below: ",
        tag("code", "attnbench repro"),
        " measures one cell again, or with --print prints the line of ",
        tag("code", "attnbench run"),
        " that does.",
    )
    own = tag("p", OWN_SOURCES) if s.sources else None
    commands = tag("pre", "\n".join(lines), tabindex="0", role="region", aria_label="Commands")
    return tag("section", tag("h2", "To check it", id="again"), tag("p", words), commands, own, aria_labelledby="again")


def _local(member: str) -> str:
    return member.rpartition("/")[2]


def _anew(s: Submission) -> Html | None:
    if not s.verdict.cells:
        return None
    rows = [tag("tr", tag("th", tag("a", cell, href=f"#c-{cell}"), scope="row"), tag("td", words)) for cell, words in s.verdict.cells.items()]
    body = table(("cell", "what came of it"), rows, "Cells that were measured anew", class_="plain")
    return tag("section", tag("h2", "Measured anew", id="anew"), body, aria_labelledby="anew")


def _contract(s: Submission) -> Html | None:
    if not s.contract:
        return None
    rows = [tag("tr", tag("th", name, scope="row"), tag("td", said)) for name, said in sorted(s.contract.items())]
    body = table(("of", "what attnbench check said when it was made"), rows, "Contract checks", class_="plain")
    return tag("section", tag("h2", "Contract checks", id="contract"), body, aria_labelledby="contract")


def _unlearned(s: Submission) -> Html | None:
    if not s.rows.left_out:
        return None
    lines = [tag("li", plain(words)) for words in s.rows.left_out]
    lead = "Scores of these settings are on no page: exact attention has not learned them, so that they say nothing of a variant."
    return tag("section", tag("h2", "Left out", id="unlearned"), tag("p", lead), tag("ul", lines), aria_labelledby="unlearned")


def _cells(run: Run, s: Submission, number: int) -> Html:
    name = f"run-{number}"
    lead = f"{run.machine.text}; {run.place.instruction_set}; protocol {run.place.protocol}; {_local(run.member)}"
    body = table(HEADS, [_row(cell, run, s) for cell in run.cells], f"Cells of run {number}", class_="plain")
    return tag("section", tag("h2", f"Cells of run {number}", id=name), tag("p", lead), body, aria_labelledby=name)


def _row(cell: Cell, run: Run, s: Submission) -> Html:
    own = cell.id.partition(OF_RUN)[0]
    value, interval = told(cell) if cell.ok else (f"{cell.status}: {plain(cell.reason or 'no reason')}", "")
    marks = "" if cell.status == "skipped" else mark_of(cell) + s.verdict.mark
    spec = f"{cell.variant}[{','.join(f'{k}={v}' for k, v in cell.params if k != RUN)}]"
    task = f"{cell.task}[{','.join(f'{k}={v}' for k, v in cell.task_params)}]" if cell.task else ""
    setting = " ".join([task, *(f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in sorted(cell.axes.items()))]).strip()
    return tag(
        "tr",
        tag("td", cell.measure),
        tag("th", plain(spec.removesuffix("[]")), scope="row"),
        tag("td", plain(setting)),
        tag("td", f"{value}{marks}", class_="number"),
        tag("td", interval, class_="number"),
        tag("td", tag("code", plain(own))),
        tag("td", tag("code", s.checksums.get((cell.run, own), ""))),
        tag("td", tag("code", f"attnbench repro {_local(run.member)} {plain(own)}")),
        id=f"c-{plain(own)}",
    )


def told(cell: Cell) -> tuple[str, str]:
    """The cell's own figure and its interval in words."""
    if cell.measure == "speed":
        low, high = cell.metric("time_s.ci_low"), cell.metric("time_s.ci_high")
        ends = f"{seconds_text(low)} to {seconds_text(high)}" if low is not None and high is not None else ""
        return seconds_text(cell.metric("time_s.median") or 0.0), ends
    if cell.measure == "memory":
        state = cell.metric("state_bytes")
        return bytes_text(cell.metric("peak_bytes") or 0.0), "exact" + (f"; state {bytes_text(state)}" if state else "")
    if cell.measure == "accuracy":
        test, error = cell.metric("test") or 0.0, cell.metric("test_stderr")
        ends = f"{written(test - 1.96 * error, cell.scored_by)} to {written(test + 1.96 * error, cell.scored_by)}" if error else ""
        return written(test, cell.scored_by), ends
    name = "relative_error" if cell.measure == "fidelity" else "perturbation.past"
    return f"{cell.metric(name) or 0.0:.3g}", ""


def _marks(s: Submission, runs: Iterable[Run]) -> Html | None:
    seen = {mark for run in runs for cell in run.cells for mark in mark_of(cell)} | set(s.verdict.mark)
    lines = [tag("li", f"{mark} ", words) for mark, words in {**MEANINGS, **MEANINGS_OF_CELLS}.items() if mark in seen]
    return tag("section", tag("h2", "Marks", id="marks"), tag("ul", lines, class_="notes"), aria_labelledby="marks") if lines else None
