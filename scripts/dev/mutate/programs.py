"""The programs with mutants: runs of them, and what reaches which place without a mutant."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock

from attnbench._place import ROOT

from .tree import BUILD, COPY, BuildError

PROGRAM = BUILD / "attnbench"
TESTS = {"float": BUILD / "tests" / "attn_tests", "double": BUILD / "tests" / "attn_tests_f64"}
MEMORY = 8 << 30  # bytes of addresses of a trial: a changed size may ask for anything
PATIENCE_S = 900  # of the clock: a deadlock uses no processor
# Idle threads sleep: spinning ones would take the cores from the other trials.
CALM = {"OMP_WAIT_POLICY": "passive", "GTEST_COLOR": "no", "GTEST_BRIEF": "1"}
CHOICES = "Catalog/VariantConformance.Holds/"  # the contract in full with each choice of parameters
# Folders of tests that are about the code that is changed.
TESTED = ("core", "variants", "conformance", "harness/check", "harness/model")
NOT_TESTS = {"VariantConformance", "TaskConformance"}  # the contract, and what has no variant
SUITE = re.compile(r"^TEST(?:_F|_P)?\((\w+),", re.M)
FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.M)


def run(command: list[str], seconds: float, **variables: str) -> tuple[int, str]:
    """The exit status and what was said. `seconds` of the processor are what it takes as it is."""
    limit = int(20 + 8 * seconds)

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=limits,
        env={**os.environ, **CALM, **variables},
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        said, _ = process.communicate()
    return process.returncode, said


def check(level: str, variant: str) -> list[str]:
    """The contract of a variant: quick, in full, or in full with each choice of parameters."""
    if level == "choices":
        filters = f"--gtest_filter={CHOICES}{variant}_*"
        return [str(TESTS["float"]), filters, "--gtest_fail_fast"]
    return [str(PROGRAM), "check", variant, *(["--quick"] if level == "quick" else [])]


@cache
def families() -> dict[str, str]:
    """Of each variant the folder that it is in."""
    listed = (ROOT / "variants" / "CMakeLists.txt").read_text().partition("attn_library")[0]
    return {name: family for family, name in re.findall(r"^  (\w+)/(\w+)\)?$", listed, re.M)}


def test_filter() -> str:
    suites = {
        suite
        for folder in TESTED
        for path in (ROOT / "tests" / folder).rglob("*_test.cc")
        for suite in SUITE.findall(path.read_text())
    }
    return ":".join(f"{suite}.*:*/{suite}.*" for suite in sorted(suites - NOT_TESTS))


@cache
def mutated_code() -> str:
    parts = ("core/libattn_core.a", "variants/libattn_variants.a", "harness/check/libattn_check.a")
    return hashlib.sha256(b"".join((BUILD / part).read_bytes() for part in parts)).hexdigest()


class Reach:
    """What reaches a place: names, with the seconds that they take. Traced when first asked, and
    kept on disk until the code changes."""

    def __init__(self, name: str) -> None:
        self.path, self.stamp = COPY.parent / f"reach-{name}.json", mutated_code()
        stored = json.loads(self.path.read_text()) if self.path.is_file() else {}
        if stored.get("program") != self.stamp:
            stored = {"seconds": {}, "places": {}}
        self.seconds: dict[str, float] = stored["seconds"]
        self.places = {name: set(ids) for name, ids in stored["places"].items()}
        self.locks: dict[str, Lock] = {}
        self.lock = Lock()

    def once(self, key: str, make: Callable[[], dict[str, tuple[float, set[int]]]]) -> None:
        """`make` gives the seconds and the places of names, of which one is the key."""
        with self.lock:
            own = self.locks.setdefault(key, Lock())
        with own:
            if key in self.seconds:
                return
            made = make()
            with self.lock:
                for name, (seconds, ids) in made.items():
                    self.seconds[name], self.places[name] = seconds, ids
                places = {name: sorted(ids) for name, ids in self.places.items()}
                kept = {"program": self.stamp, "seconds": self.seconds, "places": places}
                self.path.write_text(json.dumps(kept))

    def of(self, place: int) -> list[str]:
        names = [name for name, ids in self.places.items() if place in ids]
        return sorted(names, key=lambda name: self.seconds[name])


def traced(command: list[str], may_fail: bool = False) -> list[tuple[str, float, set[int]]]:
    """What reached which places: (name, seconds, places)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        status, said = run(command, PATIENCE_S, ATTN_MUTANT="-1", ATTN_MUTANT_TRACE=str(path))
        if status and not may_fail:
            raise BuildError(f"{' '.join(command)} fails without a mutant: {said[-300:]}")
        lines = [line.split("\t") for line in path.read_text().splitlines()]
    return [(name, float(seconds), {int(i) for i in ids.split()}) for name, seconds, ids in lines]


def trace_check(level: str, variant: str) -> dict[str, tuple[float, set[int]]]:
    lines = traced(check(level, variant))
    seconds = sum(seconds for _, seconds, _ in lines)
    return {variant: (seconds, set().union(*(ids for _, _, ids in lines)))}


def trace_tests(kind: str) -> dict[str, tuple[float, set[int]]]:
    """Without tests that fail without a mutant: those that read the sources, which have changed."""
    command = [str(TESTS[kind]), f"--gtest_filter={test_filter()}"]
    failing = set(FAILED.findall(run(command, PATIENCE_S)[1]))
    result: dict[str, tuple[float, set[int]]] = {}
    pending: set[int] = set()
    for name, seconds, ids in traced(command, may_fail=True):
        pending |= ids
        if name != "process":  # a program that the test has started
            if name not in failing:
                result[name] = (seconds, pending)
            pending = set()
    return result
