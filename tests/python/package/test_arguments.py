"""Arguments that are not valid: each is one attnbench.Error that names the value, of every function that takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import attnbench
from attnbench import _attention

from .. import fixture
from ..plots.probe_rows import cell
from .test_run import InFolder

X = np.ones((1, 2, 16, 8), np.float32)


def first(q, k, v):
    return np.broadcast_to(v.mean(2, keepdims=True), q.shape)


class Refused(InFolder):
    def refuses(self, words: str, call: Callable[[], Any]) -> None:
        with self.subTest(words), self.assertRaises(attnbench.Error) as caught:
            call()
        self.assertIn(words, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))


class Passes(Refused):
    def attention(self, words: str, spec: Any = "full", **options: Any) -> None:
        self.refuses(words, lambda: attnbench.attention(spec, X, X, X, **options))

    def test_attention_names_the_argument(self) -> None:
        for seed in (-1, "a", 1.5, 2**64, None):
            self.attention(f"seed is {seed!r}; expected an integer in [0, {2**64 - 1}]", seed=seed)
        for threads in (0, -3, "a", 2**31):
            self.attention(f"threads is {threads!r}; expected an integer in [1, {2**31 - 1}]", threads=threads)
        self.attention("spec is 3; expected a variant such as 'full'", spec=3)
        self.attention("kv_lengths is 5; expected one integer a batch entry", kv_lengths=5)
        self.attention(f"kv_lengths is [{2**70}]; expected one", kv_lengths=[2**70])
        self.attention("weights is 3; expected a dict of arrays by name", weights=3)
        self.attention("weights is a list; expected a dict", weights=[X])
        self.attention("weights is a dict with the keys [3]; expected", weights={3: X})

    def test_integers_of_numpy_are_integers(self) -> None:
        by_int, by_numpy = (attnbench.attention("linformer[rank=4]", X, X, X, seed=s, threads=t) for s, t in ((3, 1), (np.uint64(3), np.int8(1))))
        np.testing.assert_array_equal(by_int, by_numpy)

    def test_initial_weights_names_the_argument(self) -> None:
        good = {"heads": 2, "head_dim": 8, "max_len": 16}
        for name in good:
            for value in (0, "a", 2**63):
                self.refuses(f"{name} is {value!r}; expected an integer in [1, ", lambda n=name, v=value: attnbench.initial_weights("linformer", **good | {n: v}))
        self.refuses("seed is -1; expected", lambda: attnbench.initial_weights("linformer", **good, seed=-1))
        self.refuses("spec is None; expected a variant", lambda: attnbench.initial_weights(None, **good))

    def test_names_are_text(self) -> None:
        self.refuses("spec is 3; expected a task such as 'mqar'", lambda: attnbench.task(3))
        self.refuses("name is 3; expected that of a variant or a task", lambda: attnbench.info(3))


class Gates(Refused):
    def told(self, spec: str, gates: str, files: str) -> None:
        words = f"{spec} reads the {gates}, which attention() does not take; "
        self.refuses(words, lambda: attnbench.attention(spec, X, X, X, causal=True))
        self.refuses(f" apply -v {spec} {files}' does", lambda: attnbench.attention(spec, X, X, X, causal=True))

    def test_a_variant_that_reads_gates_says_which_and_what_takes_them(self) -> None:
        self.told("gla", "gate decay [batch, heads, kv_len, 64] at head_dim 64", "--input decay=FILE.npy")
        gates = [f"{name} [batch, heads, kv_len, {width}]" for name, width in (("dt", 64), ("B", 32), ("C", 32))]
        self.told("mamba[states=32]", f"gates {', '.join(gates)} at head_dim 64", "--input dt=FILE.npy --input B=FILE.npy --input C=FILE.npy")

    def test_each_gated_variant_says_so(self) -> None:
        gated = [v["name"] for v in attnbench.variants() if v["traits"]["gated"]]
        self.assertGreater(len(gated), 15)
        q = np.ones((1, 2, 64, 16), np.float32)
        with mock.patch.object(_attention, "info", side_effect=attnbench.Error("no program")):  # and without the program
            for name in gated:
                self.refuses(f"{name} reads the gate", lambda name=name: attnbench.attention(name, q, q, q, causal=True))
                self.refuses("[batch, heads, kv_len, width]", lambda name=name: attnbench.attention(name, q, q, q, causal=True))


class Measured(Refused):
    def measure(self, **options: Any) -> attnbench.Rows:
        given = {"heads": 1, "head_dim": 8, "length": 16, "measure": "fidelity", "progress": False, "output": self.folder / "a.jsonl"}
        return attnbench.measure(first, **given | options)

    def test_one_value_needs_no_list(self) -> None:
        rows = self.measure(against="linear", mode="forward")
        self.assertEqual([(r["variant"]["name"], r["axes"]["length"], r["measure"], r["status"]) for r in rows],
                         [("linear", 16, "fidelity", "ok"), ("python_first", 16, "fidelity", "ok")])  # fmt: skip

    def test_what_is_no_size_is_named(self) -> None:
        for length in (0, "a", [64, 1.5]):
            wrong = length[-1] if isinstance(length, list) else length
            self.refuses(f"length is {wrong!r}; expected an integer in [1, ", lambda n=length: self.measure(length=n))
        self.refuses("length is []; expected one value or several", lambda: self.measure(length=[]))
        for axis in ("batch", "heads", "head_dim", "threads"):
            self.refuses(f"{axis} is 'a'; expected an integer in [1, ", lambda axis=axis: self.measure(**{axis: "a"}))
        self.refuses("measure 'sped' is not one of speed, memory, fidelity", lambda: self.measure(measure="sped"))


class Files(Refused):
    def rows(self) -> Path:
        return fixture.write(self.folder / "rows.jsonl", [cell("full", "copy", 0.9, seed=0)])

    def test_what_cannot_be_written_is_named(self) -> None:
        file = self.folder / "file"
        file.touch()
        below = file / "x"
        self.refuses(f"{below}: cannot be written: ", lambda: attnbench.plot(self.rows(), "accuracy", output=below))
        self.refuses(f"{below / 'y.html'}: cannot be written: ", lambda: attnbench.report(self.rows(), output=below / "y.html"))
        self.refuses(f"{below / 'y.jsonl'}: cannot be written: ", lambda: attnbench.run(variant="full", measure="memory", length=64, output=below / "y.jsonl"))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["file", "rows.jsonl"])

    def test_a_report_that_cannot_be_ended_leaves_the_old_one(self) -> None:
        page = self.folder / "page.html"
        page.write_text("old")
        rows = self.rows()
        with mock.patch("pathlib.Path.replace", side_effect=OSError(28, "No space left on device")):
            self.refuses(f"{page}: cannot be written: No space left on device", lambda: attnbench.report(rows, output=page))
        self.assertEqual((page.read_text(), sorted(p.name for p in self.folder.iterdir())), ("old", ["page.html", "rows.jsonl"]))

    def test_what_is_no_rows_file_is_told_with_its_line(self) -> None:
        for data, words in ((b"a,b\n1,2\n", "1: not JSON"), (b"\x93NUMPY\n", "1: not UTF-8"), (b"3\n", "1: a row is a JSON object"),
                            (b"{}\n", "1: no line of attnbench/1")):  # fmt: skip
            file = self.folder / "e.csv"
            file.write_bytes(data)
            self.refuses(f"{file}:{words}", lambda file=file: attnbench.load(file))

    def test_without_a_picture_the_reason_is_told(self) -> None:
        file = fixture.write(self.folder / "rows.jsonl", [cell("full", "copy", 0.3, seed=0)])
        self.refuses("these rows give no picture; scores left out: copy: full scores 0.300, and ", lambda: attnbench.plot(file))
