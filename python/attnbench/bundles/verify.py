"""attnbench verify NAME.attnbundle: is it what it says, and do a sample of its cells say the same when they are measured again? Exit 0 agree, 2 refused
as hostile or malformed, 3 disagree, 4 nothing could be compared, 6 a file that cannot be read."""

from __future__ import annotations

import argparse
import json
import re
import secrets
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from ..plots.command import Parser
from .archive import Bundle, read_bundle
from .brought import brought_by
from .consistency import faults_of_rows, first_of_each
from .container import BundleError, UnreadableBundle, plain
from .judging import AGREE, DISAGREE, NEITHER, missed
from .program import ProgramMissing, own_names, told
from .remeasure import Remeasured, remeasured
from .sandbox import Sandbox, fence
from .signature import Signature, check

CODES = {AGREE: 0, DISAGREE: 3, NEITHER: 4}
LONGEST = "2m"
UNITS = {"s": 1, "m": 60, "h": 3600}
CANNOT_BE_CAUGHT = """What verify cannot catch: cells that were measured and left out; figures that were made up so that they fit each other, of cells that
the sample does not hold, or of times of another processor; a C++ source that is not the one behind the binary that was measured, where it gives the
same figures; a plug-in that attacks the process that measures it, in which it runs. Read a stranger's source before you say yes."""


def main(arguments: list[str]) -> int:
    parser = Parser("verify", f"Checks an archive of submit, and measures a sample of its cells anew. {CANNOT_BE_CAUGHT}")
    parser.add_argument("bundle", type=Path, metavar="NAME.attnbundle", help="the archive")
    parser.add_argument("--sample", type=int, default=8, metavar="N", help="cells to measure anew; default: 8; 0: none")
    parser.add_argument("--longest", default=LONGEST, metavar="TIME", help=f"cells that are forecast to take longer are not drawn; default: {LONGEST}")
    parser.add_argument("--ratios", action="store_true", help="compare times across processors too, as ratios to exact attention")
    parser.add_argument("--signers", type=Path, metavar="FILE", help="keys to trust, as ssh's allowed_signers lists them")
    parser.add_argument("--nonce", metavar="HEX", help="draw the same sample as the verification that printed it")
    parser.add_argument("-y", "--yes", action="store_true", help="build and run what the archive brings without asking")
    parser.add_argument("--json", action="store_true", help="the verdict as JSON")
    given = parser.parse_args(arguments)
    if given.sample < 0:
        parser.stop(2, f"--sample {given.sample}: a number of cells, 0 or more")
    if given.nonce is not None and not re.fullmatch(r"[0-9a-f]{1,64}", given.nonce):
        parser.stop(2, f"--nonce {plain(given.nonce)}: up to 64 hexadecimal digits")
    if not (time := re.fullmatch(r"(\d+)([smh])", given.longest)):
        parser.stop(2, f"--longest {plain(given.longest)}: a time such as 90s, 2m or 1h")
    _stop_unread(parser, given.signers)
    try:
        return _verify(parser, given, int(time[1]) * UNITS[time[2]])
    except UnreadableBundle as error:
        parser.stop(6, f"{plain(str(given.bundle))}: {error}")
    except ProgramMissing as error:
        parser.stop(6, str(error))
    except BundleError as error:
        if given.json:
            print(json.dumps({"bundle": str(given.bundle), "verdict": "refused", "reason": str(error)}, indent=1))
        parser.stop(2, f"{plain(str(given.bundle))}: refused: {error}")
    except OSError as error:
        parser.stop(6, f"{error.filename or given.bundle}: {error.strerror}")
    except KeyboardInterrupt:
        parser.stop(130, "interrupted; there is no verdict")


def _stop_unread(parser: Parser, signers: Path | None) -> None:
    """Of a file of signers that is not there, ssh-keygen says that it does not name the key."""
    try:
        if signers:
            signers.open("rb").close()
    except OSError as error:
        parser.stop(6, f"--signers {plain(str(signers))}: cannot be read: {error.strerror}")


def _verify(parser: Parser, given: argparse.Namespace, longest_s: int) -> int:
    bundle = read_bundle(given.bundle)
    signature = check(bundle, given.signers)
    with tempfile.TemporaryDirectory(prefix="attnbench-verify-", ignore_cleanup_errors=True) as folder:
        trusted = Path(folder) / "own"
        trusted.mkdir()
        own = Sandbox(trusted, is_fenced=False)
        protocol = told(own, ["protocol"])
        _refuse_faults(bundle, protocol)
        sources = {name.partition("/")[2]: content for name, content in bundle.sources.items()}
        brought = brought_by(sources, bundle.cells, bundle.runs, *own_names(own))
        nonce = given.nonce or secrets.token_hex(16)
        tell = partial(print, file=sys.stderr, flush=True) if given.json else parser.tell  # flushed, since a cell may take minutes
        for line in _facts(bundle, signature, nonce, longest_s):
            tell(line)
        found = Remeasured(nonce=nonce)
        if (bundle.protocol["name"], bundle.protocol_hash) != (protocol["name"], protocol["hash"]):
            found.left_out["of another protocol than this program's"] = len(bundle.cells)
        elif given.sample:
            if sources:
                _ask(bundle, given)
            apart = Path(folder) / "theirs"
            apart.mkdir()
            found = remeasured(bundle, brought, sources, Sandbox(apart), nonce=nonce, count=given.sample, longest_s=longest_s,
                               across=given.ratios, tell=tell)  # fmt: skip
    state = found.state
    parser.tell(json.dumps(_as_json(bundle, signature, found), indent=1) if given.json else _last_lines(found))
    return CODES[state]


def _refuse_faults(bundle: Bundle, protocol: dict[str, Any]) -> None:
    """Whatever submit refuses; and a protocol that bears the name of this program's and is another."""
    said = (bundle.protocol["name"], bundle.protocol_hash)
    if said[0] == protocol["name"] and said[1] != protocol["hash"]:
        raise BundleError(f"protocol {plain(said[0])} has one definition, hash {protocol['hash']}, and the archive's has hash {said[1]}")
    faults = (fault for name, lines in bundle.rows.items() for fault in faults_of_rows(name, lines, bundle.protocol))
    if lines := first_of_each(faults):
        raise BundleError(lines[0] + (f" (and {len(lines) - 1} faults of other kinds)" if len(lines) > 1 else ""))
    red = sorted(name for name, said in bundle.contract.items() if not isinstance(said, dict) or said.get("red") != 0)
    if red:
        raise BundleError(f"its own contract report is red for '{plain(red[0])}'")


def _facts(bundle: Bundle, signature: Signature, nonce: str, longest_s: int) -> list[str]:
    cells = ", ".join(f"{n} {status}" for status, n in sorted(Counter(cell["status"] for cell in bundle.cells).items()))
    departs = bundle.manifest["departs"]
    return [
        f"{plain(str(bundle.path))}: sha256 {bundle.digest}, {plain(signature.words)}",
        *(f"statement: {plain(line)}" for line in bundle.statement.splitlines()),
        f"rows: {len(bundle.cells)} cells ({plain(cells)}), strict, with their checksums, ids and figures in agreement",
        f"protocol: {plain(bundle.protocol['name'])} ({bundle.protocol_hash})" + (f", departs in {plain(', '.join(departs))}" if departs else ""),
        f"nonce: {nonce} (--nonce draws the same sample); cells forecast above {longest_s} s are not drawn",
    ]


def _ask(bundle: Bundle, given: argparse.Namespace) -> None:
    """Nothing of a stranger's is built or run before somebody said yes."""
    if given.yes:
        return
    print(f"{plain(str(given.bundle))} brings sources, which are a stranger's; to read them: unzip -p {plain(str(given.bundle))} NAME", file=sys.stderr)
    for name, said in sorted(bundle.manifest["members"].items()):
        if name in bundle.sources:
            print(f"  {name}  {said['bytes']} bytes  sha256 {said['sha256']}", file=sys.stderr)
    print(f"They would be built and run with your rights, {fence()[1]}, in a folder of their own.", file=sys.stderr)
    if not sys.stdin.isatty():
        raise BundleError("nobody said that its sources may be built and run: no terminal to ask on; --yes says so")
    print("Build and run them? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise BundleError("its sources were not built: the answer was no")


def _last_lines(found: Remeasured) -> str:
    lines = [f"not drawn: {count} {'cell' if count == 1 else 'cells'}: {reason}" for reason, count in sorted(found.left_out.items())]
    counts = {state: sum(one.verdict.state == state for one in found.cells) for state in (AGREE, DISAGREE, NEITHER)}
    said = ", ".join(f"{n} {state}" for state, n in counts.items() if n)
    power = ""
    if told := counts[AGREE] + counts[DISAGREE]:
        power = (f"; had a tenth of the {found.eligible} comparable cells been false, this sample would have missed all of them with probability "
                 f"{missed(found.eligible, told):.2f}")  # fmt: skip
    why = f": {found.fault}" if found.fault else ""
    measured = f"{said} of {len(found.cells)} cells measured anew" if found.cells else "no cell was measured anew"
    return "\n".join([*lines, f"verdict: {found.state}{why} ({measured}{power})"])


def _as_json(bundle: Bundle, signature: Signature, found: Remeasured) -> dict[str, Any]:
    cells = [{"cell": one.cell["cell"], "what": one.label, "state": one.verdict.state, "words": one.verdict.words, "interval": one.verdict.interval}
             for one in found.cells]  # fmt: skip
    return {
        "bundle": str(bundle.path), "sha256": bundle.digest, "signature": {"state": signature.state, "who": signature.who},
        "protocol": {"name": bundle.protocol["name"], "hash": bundle.protocol_hash, "departs": bundle.manifest["departs"]},
        "nonce": found.nonce, "eligible": found.eligible, "cells": cells, "left_out": dict(found.left_out), "contract": found.contract,
        "fault": found.fault, "verdict": found.state, "exit_code": CODES[found.state],
    }  # fmt: skip
