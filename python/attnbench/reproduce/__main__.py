"""scripts/reproduce: published results, each measured again and judged by one command.

Exit 0 all measured, 1 a cell failed, 2 wrong usage, 4 no entry, 6 input or output failed,
130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from .._place import require_clone

if __name__ == "__main__":
    require_clone("reproduce")  # before libraries load that a wheel does not bring along

from .entries import FOLDER, INTERRUPTED, IO, NOTHING, Entry, ReproduceError, chosen, read_entries
from .evidence import is_measured, judged
from .judging import State
from .product import Product, measure, say


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="scripts/reproduce",
        description="Measures published results again and judges them: results/reproductions.md.",
        allow_abbrev=False,
    )
    verbs = made.add_subparsers(dest="verb", metavar="list|run|report", required=True)
    verbs.add_parser("list", help="the entries, and which are measured", allow_abbrev=False)
    run = verbs.add_parser(
        "run",
        help="measures entries and prints their outcomes",
        description="Measures entries and prints their outcomes. Rows that are there are kept.",
        allow_abbrev=False,
    )
    run.add_argument("ids", nargs="+", metavar="ID", help="an entry, or all")
    run.add_argument("--small", action="store_true", help="sizes of a few seconds, which show that "
                     "an entry runs and decide nothing; rows go into a temporary folder")  # fmt: skip
    run.add_argument("-f", "--force", action="store_true", help="measures anew what is there")
    run.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="keeps the rows there, in "
                     "a folder for each entry; default results/reproductions")  # fmt: skip
    verbs.add_parser("report", help="writes results/reproductions.md, its pictures and "
                     "results/findings.md from the rows",
                     allow_abbrev=False)  # fmt: skip
    return made


def list_entries(entries: list[Entry]) -> int:
    width = max(len(entry.id) for entry in entries)
    for entry in entries:
        state = "measured" if is_measured(entry, entry.folder) else f"{entry.minutes:g} min"
        idle = ", needs an idle machine" if entry.idle else ""
        print(f"{entry.id:<{width}}  {entry.title} ({state}{idle})")
    return 0


def run(given: argparse.Namespace) -> int:
    entries = chosen(given.ids)
    product = Product.built()
    worst = 0
    with ExitStack() as held:
        folder = given.output or FOLDER
        if given.small and not given.output:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        for entry in entries:
            rows = (folder / entry.id).absolute()
            code = measure(entry, product, rows, small=given.small, force=given.force)
            worst = max(worst, code)
            verdict = judged(entry, rows, product)
            size = " at a small size, which decides nothing" if given.small else ""
            print(f"{entry.id}: {verdict.outcome.value}{size}. {entry.title}", flush=True)
            for finding in verdict.findings:
                if finding.state is not State.holds:
                    print(f"  {finding.state.value}: {finding.what}")
            if not verdict.findings:
                print(f"  {verdict.why}")
    return worst


def report() -> int:
    from . import findings, page  # matplotlib takes a second to load

    product = Product.built()
    found = page.judge_all(product)
    for path in [*page.write(found), findings.write(found, product)]:
        print(os.path.relpath(path))
    return 0


def main(words: list[str]) -> int:
    given = parser().parse_args(words)
    if given.verb == "run":
        return run(given)
    entries = read_entries()
    if not entries:
        raise ReproduceError(f"{FOLDER} holds no entry", NOTHING)
    return list_entries(entries) if given.verb == "list" else report()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except ReproduceError as fault:
        say(str(fault))
        sys.exit(fault.code)
    except OSError as error:
        say(f"'{error.filename}': {error.strerror}")
        sys.exit(IO)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
