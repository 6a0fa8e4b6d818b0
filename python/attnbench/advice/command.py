"""python -m attnbench advise [ROWS...] --length N: which variants the rows recommend. Exit 0 answered, undecided included, 2 wrong
usage or rows, 4 rows without a cell that ran, 6 a file that cannot be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from attnbench._place import IS_CLONE, ROOT
from attnbench.plots.command import Parser
from attnbench.plots.rows.read import Rows
from attnbench.plots.rows.settings import MODES

from .choosing import Answer, Open, choose
from .evidence import Evidence
from .fields import fields
from .kinds import known_words, nearest
from .question import Question, bytes_of, length_of
from .remedy import forecast, remedy, reproduce
from .standing import table
from .words import head_text, left_out_texts, line_text, listed, open_text, rests_text

REFERENCE = ("quick", "standard5", "performance-avx512", "settings")  # in results/reference, each of one build
OPEN = 3  # reasons that the text tells


def main(words: list[str]) -> int:
    parser = _parser()
    given = parser.parse_intermixed_args(words)
    question = _question(parser, given)
    rows = parser.rows_of(given.rows or _default_rows(parser), "advise on")
    if question.task:
        _check_task(parser, question.task, rows)
    evidence = Evidence(rows)
    answer = choose(table(evidence, question))
    commands = [remedy(found, answer.table, evidence) for found in answer.undecided]
    told = {command: forecast(command) for command in dict.fromkeys(commands[:OPEN])}
    text = _json(answer, evidence, commands, told) if given.json else _text(answer, evidence, commands, told, given.explain)
    parser.tell(text)
    return 0


def _parser() -> Parser:
    parser = Parser("advise", "Says which variants the rows recommend, and what they do not decide. Several machines are pooled.")
    parser.add_argument("rows", nargs="*", type=Path, metavar="ROWS", help="rows files; default: the newest in results/, else the reference rows")
    parser.add_argument("--length", required=True, metavar="N", help="tokens of a sequence")
    parser.add_argument("--mode", default="forward", metavar="NAME", help="forward, train or decode; default: forward")
    parser.add_argument("--memory", metavar="SIZE", help="the most that may be used: 64M, 2G")
    parser.add_argument("--task", default="", metavar="NAME", help="a task, or what it stands for: recall, copying, tracking, language")
    parser.add_argument("--causal", action="store_true", help="attention that looks back alone; decoding always does")
    parser.add_argument("--explain", action="store_true", help="the rows behind each line")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _question(parser: Parser, given: Any) -> Question:
    try:
        length = length_of(given.length)
    except ValueError as error:
        parser.stop(2, f"--length {error}")
    try:
        memory = None if given.memory is None else bytes_of(given.memory)
    except ValueError as error:
        parser.stop(2, f"--memory {error}")
    if given.mode not in MODES:
        near = nearest(given.mode, list(MODES))
        parser.stop(2, f"--mode '{given.mode}' is no mode; expected {', '.join(MODES)}" + (f"; did you mean {near}?" if near else ""))
    return Question(length, given.mode, given.causal, memory, given.task)


def _check_task(parser: Parser, word: str, rows: Rows) -> None:
    known = known_words({str(c.task) for c in rows.trainings() if c.task})
    if word not in known:
        near = nearest(word, known)
        parser.stop(2, f"--task '{word}' is no task and no kind; " + (f"did you mean {near}?" if near else f"kinds are {listed(known, 11)}"))


def _default_rows(parser: Parser) -> list[Path]:
    """Returns the newest rows, as of `plot`; where there are none, the reference rows of the repository."""
    newest = parser.newest()
    if newest is None and IS_CLONE:
        folder = ROOT / "results" / "reference"
        found = [file for name in REFERENCE if (file := folder / f"{name}.jsonl").is_file()]
        if found:
            names = ", ".join(f.stem for f in found)
            parser.say(f"reads the reference rows of the repository, {names}: there are none of yours in results/")
            return found
    return parser.newest_rows("reads")


def _text(answer: Answer, evidence: Evidence, commands: list[str], told: dict[str, str], explain: bool) -> str:
    out = [head_text(answer)]
    for line in answer.lines:
        out.append(line_text(line, answer))
        if explain:
            out += [f"     {command}" for command in reproduce(evidence, line.standing)]
    if answer.more:
        out.append(f"   and {listed(f'{l.place}. {l.standing.label}' for l in answer.more)}")
    out.append(rests_text(answer, evidence))
    out += _open(answer.undecided, commands, told)
    out += left_out_texts(answer)
    if not answer.table.question.task and answer.verdict == "take":
        out.append("no task was named: what a variant costs in score is not weighed; --task says for what")
    if explain and not answer.lines:
        exact = answer.table.exact
        behind = [*(s for found in answer.undecided for s in found.standings), *answer.over, *([exact] if exact and exact not in answer.over else [])]
        for standing in behind:
            out += [f"{standing.label}:", *(f"     {command}" for command in reproduce(evidence, standing))]
    return "\n".join(out)


def _open(undecided: Iterable[Open], commands: list[str], told: dict[str, str]) -> list[str]:
    found = list(undecided)
    out = []
    for one, command in list(zip(found, commands, strict=True))[:OPEN]:
        takes = told.get(command)
        out += [open_text(one), f"  run: {command}" + (f"   ({takes})" if takes else "")]
    if len(found) > OPEN:
        out.append(f"undecided for {len(found) - OPEN} more reasons, which --json tells")
    return out


def _json(answer: Answer, evidence: Evidence, commands: list[str], told: dict[str, str]) -> str:
    return json.dumps(fields(answer, evidence, commands, told), indent=2, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
