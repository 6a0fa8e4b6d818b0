"""scripts/mutate: switches in a source, places of compile errors, samples, tables, places of C++."""

from __future__ import annotations

import importlib.util
import json
import tempfile
import unittest
import unittest.mock
from pathlib import Path

from dev.mutate.report import Record, Report, described, kind, read, reasons, sampled
from dev.mutate.tree import Place, Rewriter, Tree, places_at

SOURCE = b"int f(int a, int b) {\n  g(a);\n  return a + b * 2;\n}\n"


def place(
    number: int,
    text: bytes,
    *pieces: str | bytes,
    statement: bool = False,
    operator: str = "+ to -",
) -> Place:
    """The first occurrence of the text; pieces of bytes stand for themselves in the source."""
    start = SOURCE.index(text)
    spans = tuple(
        p if isinstance(p, str) else (SOURCE.index(p, start), SOURCE.index(p, start) + len(p))
        for p in pieces
    )
    line = SOURCE.count(b"\n", 0, start) + 1
    return Place(
        number, "core/f.cc", line, start, start + len(text), "f", operator, spans, statement
    )


SUM = place(1, b"a + b * 2", b"a", " - ", b"b * 2")
PRODUCT = place(2, b"b * 2", b"b", " / ", b"2", operator="* to /")
TWO = place(3, b"2", "3", operator="n to n + 1")
CALL = place(4, b"g(a);", statement=True, operator="statement left out")


def folded(text: bytes) -> str:
    return " ".join(text.decode().split())


class Rewriting(unittest.TestCase):
    def test_each_branch_holds_the_switches_within(self) -> None:
        text = folded(Rewriter(SOURCE, [SUM, PRODUCT]).text())
        product = "(attn_mutant(2) ? (b / 2) : (b * 2))/*end 2*/"
        self.assertIn(
            f"return (attn_mutant(1) ? (a - {product} ) : (a + {product} ))/*end 1*/ ;", text
        )

    def test_a_statement_keeps_its_semicolon_inside(self) -> None:
        text = folded(Rewriter(SOURCE, [CALL]).text())
        self.assertIn("{ { if (!attn_mutant(4)) { g(a); } }/*end 4*/ return", text)

    def test_without_places_only_the_header_is_added(self) -> None:
        self.assertEqual(Rewriter(SOURCE, []).text(), b'#include "core/base/mutant.h"\n' + SOURCE)

    def test_a_change_of_one_mutant_reads_as_written(self) -> None:
        self.assertEqual(SUM.changed(SOURCE), b"a - b * 2")
        self.assertEqual(Place.from_json(json.loads(json.dumps(SUM.to_json()))), SUM)

    def test_a_line_of_an_error_names_the_innermost_place(self) -> None:
        text = Rewriter(SOURCE, [SUM, TWO, CALL]).text()
        lines = text.split(b"\n")
        self.assertEqual(places_at(text, 1), set())
        for number, mark in (
            (1, b"attn_mutant(1)"),
            (3, b"attn_mutant(3)"),
            (4, b"attn_mutant(4)"),
        ):
            line = next(i for i, line in enumerate(lines, 1) if mark in line)
            self.assertEqual(places_at(text, line), {number})
        last = next(i for i, line in enumerate(lines, 1) if b"/*end 1*/" in line)
        self.assertEqual(places_at(text, last), {1})
        self.assertEqual(places_at(text, len(lines) - 1), set())


class Sampling(unittest.TestCase):
    def test_every_file_and_kind_is_there_and_a_seed_repeats(self) -> None:
        operators = (
            "+ to -",
            "< to <=",
            "n to n + 1",
            "&& to ||",
            "statement left out",
            "std::max to std::min",
        )
        places = [
            Place(
                i,
                f"core/{'a' if i < 300 else 'b'}.cc",
                1,
                i,
                i + 1,
                "f",
                operators[i % 40 if i % 40 < 6 else 0],
                (),
            )
            for i in range(320)
        ]
        chosen = sampled(places, 40, 7)
        self.assertEqual(len(chosen), 40)
        self.assertEqual(chosen, sampled(places, 40, 7))
        self.assertNotEqual(chosen, sampled(places, 40, 8))
        self.assertGreaterEqual(sum(p.file == "core/b.cc" for p in chosen), 6)
        kinds = [kind(p) for p in chosen]
        self.assertEqual(
            set(kinds), {"arithmetic", "bound", "constant", "condition", "statement", "function"}
        )
        self.assertLess(kinds.count("arithmetic"), 20)

    def test_more_than_there_are_takes_all(self) -> None:
        self.assertEqual(sampled([SUM, PRODUCT], 5, 1), [SUM, PRODUCT])


RED = {"how": "red", "by": "full: reference"}
KILLED = {**described(SUM, SOURCE), "quick": RED, "tests": {"how": "red", "by": "F.Adds"}}
ONLY_TESTED = {
    **described(PRODUCT, SOURCE),
    "quick": "survived",
    "full": "survived",
    "choices": "survived",
    "tests": {"how": "red", "by": "F.Scales"},
}
SURVIVOR = {
    **described(TWO, SOURCE),
    "quick": "survived",
    "full": "survived",
    "choices": "survived",
    "tests": "survived",
    "double": "survived",
}
UNREACHED = {
    **described(CALL, SOURCE),
    "quick": "unreached",
    "full": "unreached",
    "choices": "unreached",
    "tests": {"how": "crash", "by": "F.Calls"},
}
RESULTS = [KILLED, ONLY_TESTED, SURVIVOR, UNREACHED]


class Reporting(unittest.TestCase):
    def lines(self, given: list[dict[str, str]]) -> str:
        return "\n".join(Report({"commit": "abc", "seed": 1}, RESULTS, given).lines())

    def test_the_contract_is_counted_where_it_comes_and_the_tests_hold_it(self) -> None:
        text = self.lines([])
        self.assertIn("| contract in full, with each choice of parameters | 1 of 3, 33.3 % |", text)
        self.assertIn("| all tests | 3 of 4, 75.0 % |", text)
        self.assertIn("| core/f.cc | 4 | 1 of 3, 33.3 % | 3 of 4, 75.0 % |", text)
        self.assertIn("| 3 | core/f.cc:3 f | `2` to `3` | not read yet |", text)
        self.assertIn("noticed by `F.Scales`", text)

    def test_what_changes_no_answer_is_left_out_and_named(self) -> None:
        entry = {
            "file": "core/f.cc",
            "function": "f",
            "was": "2",
            "became": "3",
            "verdict": "same",
            "reason": "b is 0",
        }
        text = self.lines([entry])
        self.assertIn("| all tests | 3 of 3, 100.0 % |", text)
        self.assertIn("same: b is 0", text)
        self.assertIn("| all tests | 3 of 4, 75.0 % |", self.lines([{**entry, "verdict": "open"}]))


class Recording(unittest.TestCase):
    def test_a_run_goes_on_where_it_ended_and_refuses_another(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.jsonl"
            Record(path, {"seed": 1}).add(KILLED)
            again = Record(path, {"seed": 1})
            self.assertEqual(list(again.done), [1])
            again.add({**KILLED, "quick": "survived"})
            run, results = read([path])
            self.assertEqual((run["seed"], [r["quick"] for r in results]), (1, ["survived"]))
            with self.assertRaisesRegex(ValueError, "is of another run"):
                Record(path, {"seed": 2})

    def test_a_reason_without_a_verdict_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "reasons.json"
            path.write_text(json.dumps([{"file": "core/f.cc", "reason": "none"}]))
            with self.assertRaisesRegex(ValueError, "verdict of same, speed, open"):
                reasons(path)


class Copying(unittest.TestCase):
    def test_the_copy_can_be_configured(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "src"
            with (
                unittest.mock.patch("dev.mutate.tree.COPY", copy),
                unittest.mock.patch("dev.mutate.tree.BUILD", copy / "build" / "native"),
            ):
                tree = Tree([], "none", 1, print)
                tree._copy()
                tree._run(["cmake", "--preset", "native"], "configured", copy)


@unittest.skipUnless(importlib.util.find_spec("clang"), "libclang is in .venv-mutate alone")
class Finding(unittest.TestCase):
    def test_places_of_a_kernel(self) -> None:
        from dev.mutate.find import numbered, places_of

        places = numbered(places_of("variants/features/linear.cc"))
        self.assertTrue(places)
