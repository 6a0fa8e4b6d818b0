"""One mutant against the contract and the tests. A crash, a hang and an error are noticed as a red check is."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from .place import Place
from .tree import BUILD

PROGRAM = BUILD / "attnbench"
TESTS = {"float": BUILD / "tests" / "attn_tests", "double": BUILD / "tests" / "attn_tests_f64"}
MEMORY = 8 << 30  # bytes of addresses of a trial: a changed size may ask for anything
PATIENCE_S = 900  # of the clock: a deadlock uses no processor
FULL_VARIANTS = 5  # a kernel that most variants share is tried in full with so many
CHUNKS_S = (2, 10, 40, 160)  # tests are tried in groups, the shortest first
CONFORMANCE = "Catalog/VariantConformance."
# Idle threads sleep: spinning ones would take the cores from the other trials.
CALM = {"OMP_WAIT_POLICY": "passive", "GTEST_COLOR": "no", "GTEST_BRIEF": "1"}
FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.M)


@dataclass
class Reach:
    """What reaches a place: names with the seconds that they take without a mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    names: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def of(self, place: int) -> list[str]:
        return sorted(self.names.get(place, ()), key=lambda name: self.seconds[name])


def run(command: list[str], seconds: float, **variables: str) -> tuple[int, str, float]:
    """The exit status, what was said, and the seconds of the processor that were allowed and used."""
    limit = int(20 + 8 * seconds)

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", preexec_fn=limits,
        env={**os.environ, **CALM, **variables}, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        said, _ = process.communicate()
    return process.returncode, said, seconds


def traced(command: list[str], **variables: str) -> list[tuple[str, float, list[int]]]:
    """What reached which places: (name, seconds, places)."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        run(command, PATIENCE_S, ATTN_MUTANT="-1", ATTN_MUTANT_TRACE=str(path), **variables)
        lines = [line.split("\t") for line in path.read_text().splitlines()]
    return [(name, float(seconds), [int(i) for i in ids.split()]) for name, seconds, ids in lines]


def reach_of_checks(variants: list[str], level: list[str]) -> Reach:
    reach = Reach()
    for name in variants:
        before = os.times()
        for _, _, ids in traced([str(PROGRAM), "check", name, *level]):
            for place in ids:
                reach.names[place].add(name)
        after = os.times()
        reach.seconds[name] = after.children_user - before.children_user
    return reach


def reach_of_tests(program: Path, only: str) -> tuple[Reach, set[str]]:
    """With the tests that fail without a mutant: those that read the sources, which have changed."""
    reach, pending = Reach(), set()
    failing = set(FAILED.findall(run([str(program), f"--gtest_filter={only}"], PATIENCE_S)[1]))
    for name, seconds, ids in traced([str(program), f"--gtest_filter={only}"]):
        pending.update(ids)
        if name == "process":  # a program that the test has started
            continue
        reach.seconds[name] = seconds
        if name not in failing:
            for place in pending:
                reach.names[place].add(name)
        pending = set()
    return reach, failing


def how(status: int) -> str:
    if status in (-24, -9):  # out of processor time
        return "hang"
    return {5: "red", 1: "red"}.get(status, "crash" if status < 0 else "error")


def by_checks(place: Place, reach: Reach, level: list[str], most: int) -> dict[str, str] | None:
    """The variant and the check that notice; None if none does. The place's own family comes first."""
    family = place.file.split("/")[1]
    names = sorted(reach.of(place.id), key=lambda name: HOME.get(name) != family)
    for name in names[:most]:
        status, said, _ = run(
            [str(PROGRAM), "check", name, *level], reach.seconds[name], ATTN_MUTANT=str(place.id), ATTN_MUTANT_STOP="1"
        )
        if status:
            red = re.search(r"^RED (\S+) (.*)$", said, re.M)
            by = f"{red[1]}: {red[2]}" if red else f"{name}: {said.strip()[-200:]}"
            return {"how": how(status), "by": by}
    return None


def by_tests(place: Place, program: Path, reach: Reach, names: list[str]) -> dict[str, str] | None:
    groups: dict[int, list[str]] = defaultdict(list)
    for name in names:
        groups[sum(reach.seconds[name] > 0.01 * edge for edge in CHUNKS_S)].append(name)
    for _, group in sorted(groups.items()):
        with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
            flags.write(f"--gtest_filter={':'.join(group)}\n--gtest_fail_fast\n")
            flags.flush()
            status, said, _ = run(
                [str(program), f"--gtest_flagfile={flags.name}"], sum(reach.seconds[n] for n in group), ATTN_MUTANT=str(place.id)
            )
        if status:
            failed = FAILED.search(said)
            return {"how": how(status), "by": failed[1] if failed else said.strip()[-200:]}
    return None


HOME: dict[str, str] = {}  # variant to folder


def learn_homes(listed: Path) -> None:
    for family, name in re.findall(r"^  (\w+)/(\w+)\)?$", listed.read_text(), re.M):
        HOME.setdefault(name, family)
