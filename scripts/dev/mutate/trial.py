"""The programs with mutants, and one mutant against the contract and the tests. Crash, hang and error count
as a red check."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from attnbench._place import ROOT

from .tree import BUILD, COPY, BuildError, Place

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


LEVELS = ("quick", "full", "choices")
MOST = {"quick": 8, "full": 2, "choices": 2}  # variants, where many share the code
GROUPS_S = (0.02, 0.1, 0.4, 1.6, 6.4)  # tests are tried in groups, the shortest first
Noticed = dict[str, str] | str  # how and by whom, or why not


class Trials:
    """The stages that a mutant goes through: the contract, the tests, the tests in double."""

    def __init__(self, stages: list[str], jobs: int) -> None:
        self.levels = {level: Reach(level) for level in LEVELS if level in stages}
        self.tests: dict[str, Reach] = {}
        for stage, kind in (("tests", "float"), ("double", "double")):
            if stage in stages:
                self.tests[kind] = Reach(f"tests-{kind}")
                self.tests[kind].once("all", lambda kind=kind: self._all_tests(kind))
        self.quick = self.levels.get("quick") or Reach("quick")
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda name: self._trace("quick", self.quick, name), families()))

    def of(self, place: Place, result: dict[str, Any]) -> dict[str, Any]:
        """The result with what the stages add to it."""
        for level in LEVELS:
            if level in self.levels and level not in result and not noticed(result, *LEVELS):
                result[level] = self._by_contract(place, level)
        for name, kind in (("tests", "float"), ("double", "double")):
            if kind in self.tests and name not in result:
                if name == "double" and noticed(result, *LEVELS, "tests"):
                    continue
                result[name] = self._by_tests(place, kind)
        return result

    def _all_tests(self, kind: str) -> dict[str, tuple[float, set[int]]]:
        return {"all": (0.0, set()), **trace_tests(kind)}

    def _variants(self, place: Place, level: str) -> Iterator[str]:
        """Those whose checks reach the place: of its own family first, the shortest first."""
        family = place.file.split("/")[1]
        reached = set(self.quick.of(place.id))
        own = {n for n in families() if families()[n] == family}
        likely = sorted(
            reached if level == "quick" else reached | own,
            key=lambda n: (n not in own, self.quick.seconds[n]),
        )
        found = 0
        for name in likely:
            reach = self.levels[level]
            self._trace(level, reach, name)
            if place.id in reach.places[name]:
                yield name
                found += 1
            if found == MOST[level]:
                return

    def _trace(self, level: str, reach: Reach, variant: str) -> None:
        reach.once(variant, lambda: trace_check(level, variant))

    def _by_contract(self, place: Place, level: str) -> Noticed:
        reached = False
        for name in self._variants(place, level):
            reached = True
            stop = {} if level == "choices" else {"ATTN_MUTANT_STOP": "1"}
            seconds = self.levels[level].seconds[name]
            status, said = run(check(level, name), seconds, ATTN_MUTANT=str(place.id), **stop)
            if status:
                red = re.search(r"^RED +(\S+) +(.*)$", said, re.M) or FAILED.search(said)
                by = " ".join(red.groups())[:300] if red else f"{name}: {said.strip()[-200:]}"
                return {"how": how(status), "by": by}
        return "survived" if reached else "unreached"

    def _by_tests(self, place: Place, kind: str) -> Noticed:
        reach = self.tests[kind]
        groups: dict[int, list[str]] = defaultdict(list)
        for name in reach.of(place.id):
            groups[sum(reach.seconds[name] > edge for edge in GROUPS_S)].append(name)
        for _, group in sorted(groups.items()):
            with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
                flags.write(f"--gtest_filter={':'.join(group)}\n--gtest_fail_fast\n")
                flags.flush()
                command = [str(TESTS[kind]), f"--gtest_flagfile={flags.name}"]
                seconds = sum(reach.seconds[name] for name in group)
                status, said = run(command, seconds, ATTN_MUTANT=str(place.id))
            if status:
                failed = FAILED.search(said)
                return {"how": how(status), "by": failed[1] if failed else said.strip()[-200:]}
        return "survived" if groups else "unreached"


def noticed(result: dict[str, Any], *stages: str) -> bool:
    return any(isinstance(result.get(stage), dict) for stage in stages)


def how(status: int) -> str:
    if status in (-24, -9):  # out of processor time, or out of patience
        return "hang"
    return {5: "red", 1: "red"}.get(status, "crash" if status < 0 else "error")
