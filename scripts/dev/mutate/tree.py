"""A copy of the sources with a switch at each chosen place, and its build.

A place that does not compile with a switch, such as one in a constant expression, is dropped, and
the build goes on.

A place in a source that a mutant changes, and the rewriting of a source with switches.

A rewritten place reads `(attn_mutant(7) ? (changed) : (as it was))`: one build holds all mutants,
and the environment says at run time which of them is on.
"""

from __future__ import annotations

import bisect
import json
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnbench._place import ROOT

HEADER = "core/base/mutant.h"  # written into the copy alone
BEGIN = re.compile(rb"attn_mutant\((\d+)\)")
END = re.compile(rb"/\*end (\d+)\*/")
Piece = str | tuple[int, int]  # text, or bytes [begin, end) of the source


@dataclass(frozen=True)
class Place:
    """`pieces` are what replaces the bytes [start, end)."""

    id: int
    file: str
    line: int
    start: int
    end: int
    function: str
    operator: str  # the kind of change
    pieces: tuple[Piece, ...]
    statement: bool = False  # the bytes are a statement, and the mutant leaves it out

    @staticmethod
    def from_json(entry: dict[str, Any]) -> Place:
        pieces = tuple(tuple(p) if isinstance(p, list) else p for p in entry["pieces"])
        return Place(**{**entry, "pieces": pieces})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def changed(self, source: bytes) -> bytes:
        """What the mutant reads, without other mutants."""
        return b"".join(
            p.encode() if isinstance(p, str) else source[slice(*p)] for p in self.pieces
        )


class Rewriter:
    """Writes a source with a switch at each of `places`, which may lie within each other."""

    def __init__(self, source: bytes, places: list[Place]) -> None:
        self.source = source
        self.places = sorted(places, key=lambda p: (p.start, -p.end, p.id))

    def text(self) -> bytes:
        return b'#include "%s"\n' % HEADER.encode() + self._range(0, len(self.source), frozenset())

    def _range(self, begin: int, end: int, inside: frozenset[int]) -> bytes:
        out, at = [], begin
        first = bisect.bisect_left(self.places, begin, key=lambda p: p.start)
        for place in self.places[first:]:
            if place.start >= end:
                break
            if place.start < at or place.end > end or place.id in inside:
                continue
            out += [self.source[at : place.start], self._switch(place, inside | {place.id})]
            at = place.end
        return b"".join([*out, self.source[at:end]])

    def _switch(self, place: Place, inside: frozenset[int]) -> bytes:
        """On lines of its own, so that a line of a compiler's error names the place."""
        as_it_was = self._range(place.start, place.end, inside)
        if place.statement:
            return b"\n{ if (!attn_mutant(%d)) { %s } }/*end %d*/\n" % (
                place.id,
                as_it_was,
                place.id,
            )
        changed = b"".join(
            p.encode() if isinstance(p, str) else self._range(p[0], p[1], inside)
            for p in place.pieces
        )
        return b"\n(attn_mutant(%d) ? (%s) : (%s))/*end %d*/\n" % (
            place.id,
            changed,
            as_it_was,
            place.id,
        )


def places_at(rewritten: bytes, line: int) -> set[int]:
    """The innermost mutants on that line of a rewritten source (from 1); empty outside of all."""
    open_ids: list[int] = []
    for number, text in enumerate(rewritten.split(b"\n"), 1):
        marks = sorted(
            [(m.start(), int(m[1]), True) for m in BEGIN.finditer(text)]
            + [(m.start(), int(m[1]), False) for m in END.finditer(text)]
        )
        touched = set(open_ids[-1:])
        for _, place, begins in marks:
            if begins:
                open_ids.append(place)
                touched = {place}
            elif place in open_ids:
                del open_ids[open_ids.index(place) :]
        if number == line:
            return touched
    return set()


COPY = ROOT / "build" / "mutate" / "src"
BUILD = (
    COPY / "build" / "native"
)  # named as that of the sources, so that the compiler's cache serves what is unchanged
# All that a program is made of, whatever folders there are.
COPIED = (".", ":!results/reference", ":!results/reproductions", ":!tests/python", ":!python")
TARGETS = ("attnbench", "attn_tests", "attn_tests_f64")
ERROR = re.compile(rb"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error:", re.M)
PLACE = re.compile(rb"(?:^|from |file )(\S+?\.(?:h|cc)):(\d+)", re.M)

SWITCH = r"""
// The switch of all mutants: ATTN_MUTANT names the one that is on. At -1 those are noted that are
// reached, a line for the process or for each test, "name<tab>seconds<tab>numbers", at the end of
// the file that ATTN_MUTANT_TRACE names.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
inline int attn_mutant_on = 0;
inline unsigned char attn_mutant_reached[@COUNT@];
inline void attn_mutant_note(const std::string& name, double seconds) {
  const char* const path = std::getenv("ATTN_MUTANT_TRACE");
  FILE* const file = path && attn_mutant_on < 0 ? std::fopen(path, "a") : nullptr;
  if (!file) return;
  std::string line = name + "\t" + std::to_string(seconds) + "\t";
  for (int i = 0; i < @COUNT@; ++i) {
    if (attn_mutant_reached[i]) line += std::to_string(i) + " ";
    attn_mutant_reached[i] = 0;
  }
  line += "\n";
  std::fwrite(line.data(), 1, line.size(), file);
  std::fclose(file);
}
inline bool attn_mutant_start() {
  if (const char* const on = std::getenv("ATTN_MUTANT")) attn_mutant_on = std::atoi(on);
  if (attn_mutant_on < 0)
    std::atexit([] {
      attn_mutant_note("process", static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
    });
  return true;
}
inline const bool attn_mutant_started = attn_mutant_start();
inline bool attn_mutant(int id) {
  if (__builtin_expect(attn_mutant_on == id, 0)) return true;
  if (__builtin_expect(attn_mutant_on < 0, 0)) attn_mutant_reached[id] = 1;
  return false;
}
"""
# At the end of a source of both test programs.
LISTENER = r"""
#include <gtest/gtest.h>

#include "core/base/mutant.h"
namespace {
struct MutantListener : testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    attn_mutant_note(std::string(info.test_suite_name()) + "." + info.name(),
                     static_cast<double>(info.result()->elapsed_time()) / 1000);
  }
};
const bool mutants_listen = [] {
  if (attn_mutant_on < 0) testing::UnitTest::GetInstance()->listeners().Append(new MutantListener);
  return true;
}();
}  // namespace
"""
# A red check ends `attnbench check` where ATTN_MUTANT_STOP asks for it: the rest is not needed.
STOP = r"""  if (result.outcome == Outcome::failed && std::getenv("ATTN_MUTANT_STOP")) {
    std::printf("RED %s %s %s\n", result.subject.c_str(), result.name.c_str(),
                result.detail.c_str());
    std::fflush(stdout);
    std::_Exit(5);
  }
"""
MARK = b"  return result;\n}\n\nstd::vector<Result> check_variant("


PART = re.compile(
    r"(?<= )[a-z]\S+\.(?:o|a)(?= )"
)  # what a program is linked of, below the build folder
WAITED = re.compile(r"_f64|^attnbench$")
TWIN = re.compile(rf" (?:{re.escape(str(BUILD))}/)?([a-z]\S+_f64\.a)")


class BuildError(Exception):
    """Why the copy could not be built, in one line."""


class Tree:
    def __init__(
        self, places: list[Place], sources: str, jobs: int, say: Callable[[str], None]
    ) -> None:
        self.places = {p.id: p for p in places}
        self.jobs, self.say = jobs, say
        self.count = max(self.places, default=0) + 1
        self.kept_drops = COPY.parent / f"dropped-{sources}.json"  # so that a run goes on at once
        self.dropped: list[int] = []
        if self.kept_drops.is_file():
            self.dropped = json.loads(self.kept_drops.read_text())
        for number in self.dropped:
            self.places.pop(number, None)

    def make(self, targets: Sequence[str] = TARGETS, twins: bool = True) -> list[Place]:
        """Copies, rewrites and builds; the places that are in the programs. Without twins the
        double build has no mutants: it is taken from the folder build/native."""
        self._copy()
        for file in {p.file for p in self.places.values()}:
            self._rewrite(file)
        self._run(["cmake", "--preset", "native"], "configured")
        links = {} if twins else {target: self._link_of(target) for target in targets}
        parts = {part for link in links.values() for part in PART.findall(link)}
        if links:
            self._without_waiting()
        while True:
            done = subprocess.run(
                ["ninja", "-C", str(BUILD), "-k", "0", f"-j{self.jobs}", *(parts or targets)],
                capture_output=True,
                cwd=COPY,
            )
            (COPY.parent / "build.log").write_bytes(done.stdout + done.stderr)
            if done.returncode == 0:
                break
            self._drop(done.stdout)
        for link in links.values():
            self._run(["bash", "-c", link], "linked", BUILD)
        return sorted(self.places.values(), key=lambda p: p.id)

    def _link_of(self, target: str) -> str:
        """With the double libraries of the sources."""
        command = ["ninja", "-C", str(BUILD), "-t", "commands", target]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return TWIN.sub(rf" {ROOT}/build/native/\1", said.splitlines()[-1])

    def _without_waiting(self) -> None:
        """Nothing of the float build waits for the double one, nor for a program that holds it."""
        plan = BUILD / "build.ninja"
        lines = [line.partition("||") for line in plan.read_text().split("\n")]
        kept = [
            before + bar + " ".join(word for word in after.split(" ") if not WAITED.search(word))
            for before, bar, after in lines
        ]
        plan.write_text("\n".join(kept))

    def _copy(self) -> None:
        """Keeps the times of unchanged files, so that a second run builds little."""
        listed = subprocess.run(
            ["git", "ls-files", *COPIED], cwd=ROOT, capture_output=True, text=True, check=True
        )
        rewritten = {p.file for p in self.places.values()}
        wanted = {COPY / HEADER}
        self._write(COPY / HEADER, SWITCH.lstrip().replace("@COUNT@", str(self.count)).encode())
        for name in listed.stdout.splitlines():
            wanted.add(COPY / name)
            if name not in rewritten:
                self._write(COPY / name, self._amended(name, (ROOT / name).read_bytes()))
        for path in [
            p
            for f in ("core", "variants", "tasks", "harness", "tests")
            for p in (COPY / f).rglob("*")
            if p.is_file()
        ]:
            if path not in wanted:
                path.unlink()

    def _amended(self, name: str, source: bytes) -> bytes:
        if name == "tests/places.cc.in":
            return source + LISTENER.encode()
        if name == "CMakeLists.txt":  # the Python package is not copied
            return source.replace(b"add_subdirectory(python)", b"")
        if name == "cmake/library.cmake":  # the variants are compiled in half the time
            return source.replace(
                b"if(ARG_COLD OR kind)", b"if(ARG_COLD OR kind OR name STREQUAL variants)"
            )
        if name != "harness/check/contract.cc":
            return source
        if source.count(MARK) != 1:
            raise BuildError(f"{name} has no end of run_check where it is looked for")
        return b'#include "%s"\n' % HEADER.encode() + source.replace(MARK, STOP.encode() + MARK)

    def _rewrite(self, file: str) -> None:
        places = [p for p in self.places.values() if p.file == file]
        source = (ROOT / file).read_bytes()
        self._write(COPY / file, Rewriter(source, places).text() if places else source)

    def _write(self, path: Path, content: bytes) -> None:
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def _drop(self, output: bytes) -> None:
        """Drops the places that errors name; without any, those of the files that they name."""
        named: set[int] = set()
        files: set[str] = set()
        for block in re.split(rb"^FAILED: ", output, flags=re.M)[1:]:
            texts: dict[str, bytes] = {}
            for pattern in (ERROR, PLACE):
                ids: set[int] = set()
                for path, line in pattern.findall(block):
                    file = self._relative(path.decode())
                    if file is None:
                        continue
                    files.add(file)
                    ids |= places_at(texts.setdefault(file, (COPY / file).read_bytes()), int(line))
                if ids:
                    named |= ids
                    break
        if not named:
            named = {p.id for p in self.places.values() if p.file in files}
        if not named:
            raise BuildError(f"the copy does not build: see {COPY.parent / 'build.log'}")
        dropped = [self.places.pop(i) for i in sorted(named) if i in self.places]
        self.dropped += [place.id for place in dropped]
        self.kept_drops.write_text(json.dumps(self.dropped))
        self.say(f"{len(dropped)} places do not compile with a switch and are dropped")
        for file in {p.file for p in dropped}:
            self._rewrite(file)

    def _relative(self, path: str) -> str | None:
        absolute = (BUILD / path).resolve()
        if not absolute.is_relative_to(COPY):
            return None
        relative = str(absolute.relative_to(COPY))
        return relative if any(p.file == relative for p in self.places.values()) else None

    def _run(self, command: list[str], what: str, folder: Path = COPY) -> None:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(
                f"the copy could not be {what}: {done.stderr.strip().splitlines()[-1]}"
            )
