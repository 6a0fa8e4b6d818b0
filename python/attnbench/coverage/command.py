"""attnbench coverage [ROWS...]; exit 0 told, 2 wrong usage or rows, 4 nothing to choose, 6 a file that cannot be read
or written."""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._place import COMMAND
from ..plots.command import Parser
from ..plots.rows.learned import EXACT
from ..plots.rows.read import Rows
from .asked import ProgramError, Unit, asked_for, catalogue, output_of, planned, units_of
from .held import held_by
from .sweep import sweep_text
from .table import Defaults, as_json, chosen_text, map_text, time_text, totals_text
from .worth import Candidate, Choice, Survey, priced

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
MOST_BYTES = 1 << 18  # of a sweep file
KNOWN_CODES = (2, 4, 6)


def main(words: list[str]) -> int:
    parser = _parser()
    asked = parser.parse_intermixed_args(words)  # files before and after options
    budget = _budget(parser, asked.budget)
    if asked.output and asked.output.suffix != ".toml":
        parser.stop(2, f"-o {asked.output}: a sweep file ends in .toml")
    if asked.output and asked.output.exists() and any(f.exists() and f.samefile(asked.output) for f in asked.rows):
        parser.stop(2, f"-o {asked.output}: that file is read; name another one")
    files = [f for f in asked.rows if f.suffix != ".toml"]
    sweeps = [f for f in asked.rows if f.suffix == ".toml"]
    if sweeps and asked.profile:
        parser.stop(2, f"--profile {asked.profile} and {sweeps[0]} are both given; they name two sweeps")
    files = files or parser.newest_rows("reads", needs_one=False)
    rows = parser.every_row(files) if files else None
    if rows is None:
        parser.say("there are no rows here or in results/: everything is missing")
    try:
        return _told(parser, asked, rows, _sweep_words(sweeps, asked.profile or "standard"), budget)
    except ProgramError as error:
        parser.stop(error.code if error.code in KNOWN_CODES else 2, str(error))


def _parser() -> Parser:
    parser = Parser(
        "coverage",
        "Tells which variants have no row at which settings, and what measuring them takes. With --budget it chooses the "
        "cells that tell most in that time.",
    )
    parser.add_argument(
        "rows",
        nargs="*",
        type=Path,
        metavar="ROWS",
        help="rows files, of one machine; default: the newest in results/. A FILE.toml is a sweep file whose settings are asked "
        "for in place of a profile's",
    )
    parser.add_argument("--profile", metavar="NAME", help="the settings asked for; default: standard")
    parser.add_argument(
        "-v", "--variant", action="append", default=[], metavar="NAME", help="these alone, beside exact attention; default: all"
    )
    parser.add_argument("--budget", metavar="TIME", help="the cells that tell most within it: 2h, 45m, 1h30m")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.toml", help="a sweep of the chosen cells")
    parser.add_argument("--json", action="store_true", help="as JSON")
    return parser


def _budget(parser: Parser, text: str | None) -> float | None:
    """Seconds of `1h30m`."""
    if text is None:
        return None
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        parser.stop(2, f"--budget {text}: expected a time such as 90s, 45m, 2h or 1h30m")
    seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
    if not 0 < seconds < math.inf:
        parser.stop(2, f"--budget {text}: a time is longer than 0")
    return seconds


def _sweep_words(sweeps: Sequence[Path], profile: str) -> list[list[str]]:
    return [[str(file)] for file in sweeps] or [["--profile", profile]]


def _told(parser: Parser, asked: Any, rows: Rows | None, sweeps: list[list[str]], budget: float | None) -> int:
    known = catalogue()
    defaults = {name: {p["name"]: p["default"] for p in info["params"]} for name, info in known.items()}
    units: dict[Any, Unit] = {}
    for sweep in sweeps:
        for unit in asked_for(sweep, asked.variant, EXACT, known):
            units.setdefault(unit.key, unit)
    held, others = held_by(list(units.values()), rows)
    if others:
        parser.say(f"{others} times of other machines were left out: pairs are of one machine, that with most times")
    survey = Survey(held, EXACT)
    is_choosing = budget is not None or asked.output is not None
    candidates = [*survey.first(), *_narrowing(survey, defaults)] if is_choosing else []
    chosen = survey.choose(candidates, math.inf if budget is None else budget) if is_choosing else None
    if asked.json:
        parser.tell(json.dumps({"coverage": as_json(survey, chosen, defaults)}, indent=2))
    elif chosen is None:
        parser.tell(map_text(survey, defaults) + "\n\n" + totals_text(survey))
    if chosen is None:
        return 0
    if not chosen:
        parser.stop(4, _why_nothing(survey, candidates, budget))
    if not asked.json:
        parser.tell(chosen_text(survey, chosen, defaults, budget))
    if asked.output:
        parser.write(asked.output, _text(parser, chosen, defaults, sweeps))
        parser.say(f"wrote {asked.output}; {COMMAND} run {asked.output} --dry-run shows its cells")
    return 0


def _narrowing(survey: Survey, defaults: Defaults) -> list[Candidate]:
    """The measurements that narrow an interval, with the times that the program forecasts for them."""
    wide = survey.wide()
    if not wide:
        return []
    families = {c.unit.variant: c.unit.family for c in wide}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "narrow.toml"
        file.write_text(sweep_text(wide, defaults, None), encoding="utf-8")
        found = {unit.key: unit.price for unit in units_of(planned([str(file)]), families)}
    return priced(wide, [found.get(c.unit.key, 0.0) for c in wide])


def _why_nothing(survey: Survey, candidates: Sequence[Candidate], budget: float | None) -> str:
    every = survey.choose(candidates, math.inf)
    if not every or budget is None:
        return "nothing to choose: every pair with exact attention is decided, or cannot be"
    cheapest = min(choice.candidate.seconds for choice in every)
    return f"nothing fits: the cheapest cell takes {time_text(cheapest)}, more than --budget {time_text(budget)}"


def _text(parser: Parser, chosen: Sequence[Choice], defaults: Defaults, sweeps: list[list[str]]) -> str:
    text = sweep_text([choice.candidate for choice in chosen], defaults, _timeout(sweeps))
    if len(text) > MOST_BYTES:
        parser.stop(2, f"a sweep of {len(chosen)} cells is longer than the 256 KiB of a sweep file; name fewer by --budget or -v")
    return text


def _timeout(sweeps: list[list[str]]) -> str | None:
    """The longest time of a cell that the sweeps allow."""
    found = []
    for words in sweeps:
        text = output_of("list", "profiles", "--show", words[1]) if len(words) > 1 else Path(words[0]).read_text(encoding="utf-8")
        if not (told := _at_top(text, "timeout")) and (extended := _at_top(text, "extends")):
            told = _at_top(output_of("list", "profiles", "--show", extended), "timeout")
        if told:
            found.append(told)
    return max(found, key=lambda t: float(t[:-1]) * SECONDS.get(t[-1], 1.0), default=None)


def _at_top(text: str, key: str) -> str:
    """A text at the top of a sweep file, whose grammar the program has checked; "" where it is not there."""
    top = re.split(r"^\s*\[", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.search(rf"""^\s*{key}\s*=\s*["']([^"']+)["']""", top, flags=re.MULTILINE)
    return found[1] if found else ""
