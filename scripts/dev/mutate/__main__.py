"""scripts/mutate: changes the mathematics of variants and kernels and counts who notices.

Exit 0 done, 1 the build or a trial could not be made, 2 wrong usage,
130 interrupted (the same command goes on).
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

from attnbench._place import ROOT

from .find import FindError, all_places, sources_hash
from .report import Record, Report, described, read, reasons, sampled
from .tree import BuildError, Place, Tree
from .trial import Trials

REASONS = ROOT / "results" / "mutation_survivors.json"
FAILED, USAGE, INTERRUPTED = 1, 2, 130
STAGES = {  # and the program that each runs
    "quick": "attnbench",
    "full": "attnbench",
    "choices": "attn_tests",
    "tests": "attn_tests",
    "double": "attn_tests_f64",
}


def say(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"mutate: {message}", file=sys.stderr)
        raise SystemExit(USAGE)


def parsed(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="scripts/mutate", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser(
        "run", help="build one program with all mutants of a sample and try each"
    )
    run.add_argument("--count", type=int, default=300, metavar="N", help="mutants (default 300)")
    run.add_argument(
        "--seed", type=int, default=1, metavar="N", help="draws the sample (default 1)"
    )
    run.add_argument("--only", default="", metavar="PATH", help="sources whose path begins so")
    run.add_argument("--ids", default="", metavar="ID,ID", help="these mutants instead of a sample")
    run.add_argument(
        "--stages", default=",".join(STAGES), help=f"of {','.join(STAGES)}; a later run may add one"
    )
    run.add_argument(
        "--float",
        action="store_true",
        help="mutants in the float build alone, half the compile time; the double one is that of "
        "build/native, so that checks in double notice nothing",
    )
    run.add_argument("-j", "--jobs", type=int, default=2, metavar="N", help="at a time (default 2)")
    run.add_argument(
        "-o",
        "--output",
        type=Path,
        default=ROOT / "build" / "mutate" / "results.jsonl",
        metavar="FILE",
    )
    report = verbs.add_parser(
        "report", help="who noticed, by folder and by kind of change; survivors"
    )
    report.add_argument("files", type=Path, nargs="+", metavar="FILE")
    show = verbs.add_parser("show", help="one mutant as a change of its source")
    show.add_argument("id", type=int)
    options = parser.parse_args(arguments)
    if options.verb == "run":
        for name in ("count", "jobs"):
            if getattr(options, name) < 1:
                parser.error(f"--{name} is {getattr(options, name)}: at least 1")
        options.stages = options.stages.split(",")
        if unknown := set(options.stages) - set(STAGES):
            parser.error(f"--stages names {unknown.pop()!r}: only {', '.join(STAGES)}")
        if not all(word.isdigit() for word in filter(None, options.ids.split(","))):
            parser.error(
                f"--ids is {options.ids!r}: numbers with commas between them, such as 17,203"
            )
    return options


def chosen(places: list[Place], options: argparse.Namespace) -> list[Place]:
    within = [
        p
        for p in places
        if p.file.startswith(options.only) and not p.function.endswith("_reference")  # the oracle
    ]
    if options.ids:
        wanted = {int(word) for word in options.ids.split(",")}
        within = [p for p in within if p.id in wanted]
    if not within:
        raise BuildError(f"no place to change: --only {options.only!r} --ids {options.ids!r}")
    return within if options.ids else sampled(within, options.count, options.seed)


def commit() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def run(options: argparse.Namespace) -> None:
    say("reading the sources")
    places = chosen(all_places(options.jobs), options)
    record = Record(
        options.output,
        {
            "commit": commit(),
            "sources": sources_hash(),
            "seed": options.seed,
            "count": options.count,
            "only": options.only,
            "ids": options.ids,
            "float": options.float,
        },
    )
    say(f"building a copy with {len(places)} switches")
    targets = sorted({STAGES[stage] for stage in options.stages})
    tree = Tree(places, sources_hash(), options.jobs, say)
    places = tree.make(targets, not options.float)
    trials = Trials(options.stages, options.jobs)

    def one(place: Place) -> None:
        begun = time.monotonic()
        result = described(place, (ROOT / place.file).read_bytes()) | record.done.get(place.id, {})
        if set(options.stages) <= set(result.get("stages", [])):
            return
        result = trials.of(place, result)
        result["stages"] = sorted(set(options.stages) | set(result.get("stages", [])))
        result["seconds"] = round(result.get("seconds", 0) + time.monotonic() - begun, 1)
        record.add(result)
        say(
            f"{len(record.done)}/{len(places)} {place.id} {place.file}:{place.line} "
            f"{verdict(result)}"
        )

    random.Random(options.seed).shuffle(places)  # a run that is cut short is a smaller sample
    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            for future in [pool.submit(one, place) for place in places]:
                future.result()
        except BaseException:  # an interruption too: only the mutants under way are waited for
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def verdict(result: dict[str, Any]) -> str:
    stages = ((s, result.get(s)) for s in ("quick", "full", "choices", "tests", "double"))
    return "; ".join(
        f"{s}: {v if isinstance(v, str) else v['how'] + ' ' + v['by'][:60]}" for s, v in stages if v
    )


def show(number: int) -> None:
    place = next((p for p in all_places(2) if p.id == number), None)
    if place is None:
        raise BuildError(f"there is no mutant {number}")
    source = (ROOT / place.file).read_bytes()
    changed = source[: place.start] + place.changed(source) + source[place.end :]
    first = source.count(b"\n", 0, place.start)
    last = source.count(b"\n", 0, place.end) + 1
    print(f"{place.file}:{place.line} {place.function}: {place.operator}")
    for sign, lines in (
        ("-", source.split(b"\n")[first:last]),
        ("+", changed.split(b"\n")[first : last + changed.count(b"\n") - source.count(b"\n")]),
    ):
        print("\n".join(f"{sign} {line.decode()}" for line in lines))


def main() -> int:
    options = parsed(sys.argv[1:])
    try:
        if options.verb == "run":
            run(options)
        elif options.verb == "show":
            show(options.id)
        else:
            print("\n".join(Report(*read(options.files), reasons(REASONS)).lines()))
    except KeyboardInterrupt:
        return INTERRUPTED
    except (BuildError, FindError, ValueError, OSError) as error:
        print(f"mutate: {error}", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
