"""One mutant against the contract and the tests. Crash, hang and error count as a red check."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .place import Place
from .programs import (
    FAILED,
    TESTS,
    Reach,
    check,
    families,
    run,
    trace_check,
    trace_tests,
)

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
