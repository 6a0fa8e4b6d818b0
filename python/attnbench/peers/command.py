"""The command line of scripts/peers: checked, and resolved into what is wanted."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import NoReturn

from .._place import ROOT
from .plan import PEERS, QUICK, SUBJECTS, TITLES, Wanted
from .sides import cores
from .table import Chosen

FAILED, USAGE, NOTHING, INTERRUPTED = 1, 2, 4, 130
LONGEST = 65536
ALL = "all"


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        stop(USAGE, message)


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def stop(code: int, message: str) -> NoReturn:
    say(f"peers: {message}")
    raise SystemExit(code)


def _parser() -> Parser:
    parser = Parser(
        prog="scripts/peers",
        description="Times attnbench and other libraries in turns on the same inputs and threads, "
        "after checking that their answers agree. Prints how many times longer the others take; "
        "writes rows and a picture.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="five variants, fewer shapes, about 2 minutes"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.jsonl",
        help="rows; default results/peers/<time>.jsonl",
    )  # fmt: skip
    parser.add_argument(
        "--variants", "--only", metavar="all|NAME,...",
        help=f"of {', '.join(SUBJECTS)} (the training step and a step of decoding); default all, --quick: "
        f"{', '.join(QUICK)}",
    )  # fmt: skip
    parser.add_argument(
        "--peers", metavar="all|NAME,...",
        help=f"of {', '.join(TITLES)}; default all but the last two",
    )  # fmt: skip
    parser.add_argument("--lengths", metavar="N,...", help="default 512,2048,8192; step 512,1024; decode 4096,16384")
    parser.add_argument("--threads", metavar="N,...", help="default 1 and all cores, 2 at most")
    parser.add_argument(
        "--python", type=Path, metavar="PATH",
        help="a Python that has torch (and jax, onnxruntime with onnx) instead of .venv-peers",
    )  # fmt: skip
    parser.add_argument(
        "--program", type=Path, metavar="PATH", help="an attnbench instead of build/native's"
    )
    parser.add_argument(
        "--table", type=Path, nargs="+", metavar="ROWS.jsonl",
        help="measure nothing: print the table of these rows; --variants, --peers, --lengths and "
        "--threads choose among them",
    )  # fmt: skip
    parser.add_argument(
        "--markdown", action="store_true", help="with --table: as a table of Markdown"
    )
    return parser


def parsed(arguments: list[str]) -> tuple[argparse.Namespace, Wanted | Chosen]:
    given = _parser().parse_args(arguments)
    return given, _chosen(given) if given.table else _wanted(given)


def _chosen(given: argparse.Namespace) -> Chosen:
    for option in ("quick", "output", "python", "program"):
        if getattr(given, option):
            stop(USAGE, f"--{option} measures, --table prints rows that exist; drop one of them")
    return Chosen(
        subjects=names("--variants", given.variants, SUBJECTS),
        peers=names("--peers", given.peers, tuple(TITLES)),
        lengths=numbers("--lengths", given.lengths, 1, LONGEST),
        threads=numbers("--threads", given.threads, 1, LONGEST),
    )


def _wanted(given: argparse.Namespace) -> Wanted:
    if given.markdown:
        stop(USAGE, "--markdown says how --table ROWS.jsonl prints; --table is missing")
    here = len(cores(LONGEST))
    lengths = numbers("--lengths", given.lengths, 8, LONGEST)
    threads = numbers("--threads", given.threads, 1, here)
    subjects = QUICK if given.quick and given.variants is None else SUBJECTS
    wanted = Wanted(
        subjects=names("--variants", given.variants, SUBJECTS) or subjects,
        peers=names("--peers", given.peers, tuple(TITLES)) or PEERS,
        lengths=lengths or ((512, 2048) if given.quick else (512, 2048, 8192)),
        step_lengths=lengths or ((512,) if given.quick else (512, 1024)),
        threads=threads or ((min(2, here),) if given.quick else tuple(sorted({1, min(2, here)}))),
        quick=given.quick,
        decode_lengths=lengths or (4096, 16384),
    )
    for option, path in (("--python", given.python), ("--program", given.program)):
        if path is not None and not path.is_file():
            stop(USAGE, f"{option} {path}: there is no such file")
        if path is not None and not os.access(path, os.X_OK):
            stop(USAGE, f"{option} {path} is not a program")
    if given.output is None:
        given.output = ROOT / "results/peers" / f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}.jsonl"
    if given.output.exists():
        stop(USAGE, f"{given.output} exists; -o names a new file")
    return wanted


def names(option: str, text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those named, in the order of `known` for `all`; none where the option is not given."""
    if text is None:
        return ()
    if text == ALL:
        return known
    for name in text.split(","):
        if name not in known:
            what = "stands alone" if name == ALL else "is unknown"
            stop(USAGE, f"{option} '{name}' {what}; expected {ALL}, or of {', '.join(known)}")
    return tuple(dict.fromkeys(text.split(",")))


def numbers(option: str, text: str | None, least: int, most: int) -> tuple[int, ...]:
    if text is None:
        return ()
    for word in text.split(","):
        if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
            stop(USAGE, f"{option} '{word}' is not valid; expected numbers from {least} to {most}")
    return tuple(sorted({int(word) for word in text.split(",")}))
