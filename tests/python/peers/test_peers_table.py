"""scripts/peers --table: rows as text and as Markdown, and what is said of rows that are none."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

from attnbench.peers.__main__ import main
from attnbench.peers.plan import Block
from attnbench.peers.record import Ratio, Record, comparison

PEAK = 1e9


def add(record, subject, length, peer="torch", mode="forward", threads=1, times=2.0, **fields):
    """A comparison in which we take 1 s and the peer `times` as long."""
    block = Block(subject, length, threads, (mode,), (peer,), 1.0, params=fields.pop("params", {}))
    if not fields.get("reason"):
        fields = {
            "agreement": {"forward": 1e-7, "grad_q": 3e-7}, "ours": [1.0], "theirs": [times],
            "ratio": Ratio(times, times - 0.1, times + 0.1, 0.95), "flops": PEAK / 2, **fields,
        }  # fmt: skip
    record.add("comparison", **comparison(block, peer, mode, **fields))


class Tables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "rows.jsonl")

    def run_line(self, record, **more):
        record.add(
            "run", argv=["scripts/peers"], method={}, started_at="2026-01-01T00:00:00Z",
            config={"subjects": [], "lengths": [8], "step_lengths": [8], "threads": [1],
                    "dtype": "float32", "seed": 0},
            environment={"cpu_model": "a CPU", "cores": 2}, libraries={"torch": {"version": "0"}},
            **more,
        )  # fmt: skip

    def written(self):
        record = Record(self.path)
        self.run_line(record, peak={"1": PEAK}, no_peer={"sigmoid": "no peer: nobody wrote it"})
        add(record, "full", 2048, times=3.0)
        add(record, "full", 512)
        add(record, "full", 512, "jax", times=8.0)
        add(record, "graph", 512, threads=2, params={"degree": 8}, flops=None)
        add(record, "full", 512, "onnxruntime", "train", status="skipped", reason="no way back")
        add(record, "full", 2048, "onnxruntime", "train", status="skipped", reason="no way back")
        record.close()
        return str(self.path)

    def printed(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(main(["--table", self.written(), *arguments]), 0)
        self.path.unlink()
        return out.getvalue()

    def wrong(self, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            with self.assertRaises(SystemExit) as end:
                main(["--table", str(self.path), *arguments])
        self.assertEqual((end.exception.code, told.getvalue().count("\n")), (2, 1))
        return told.getvalue()

    def test_text_has_a_line_for_each_comparison(self):
        lines = self.printed().splitlines()
        self.assertEqual(len(lines), 1 + 6 + 1)
        self.assertRegex(
            lines[1],
            r"^full +2048 +1 +forward +PyTorch +1 s +3 s +0.50 / 0.17 +3e-07 +3.00 \[2.90, 3.10\]$",
        )
        self.assertRegex(lines[4], r"^graph degree=8 +512 +2 .* 1 s +2 s +3e-07 ")
        self.assertRegex(lines[5], "skipped: no way back$")
        self.assertEqual(lines[-1], "sigmoid: no peer: nobody wrote it")

    def test_markdown_has_a_line_for_each_variant_peer_and_pass(self):
        self.assertEqual(
            self.printed("--markdown", "--threads", "1"),
            "| variant | against | pass | n | times as long as ours | answers differ by "
            "| of FMA peak: ours | theirs |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
            "| `full` | PyTorch | forward | 512 / 2048 | 2.00 [1.90, 2.10] / 3.00 [2.90, 3.10] "
            "| 3e-07 | 0.50 / 0.50 | 0.25 / 0.17 |\n"
            "| `full` | JAX | forward | 512 | 8.00 [7.90, 8.10] | 3e-07 | 0.50 | 0.06 |\n\n"
            "Skipped: no way back (`full` fwd+bwd 512/2048).\n\n"
            "`sigmoid`: no peer: nobody wrote it.\n",
        )
        self.assertNotIn("sigmoid", self.printed("--markdown", "--variants", "full"))
        both = self.printed("--markdown")
        self.assertIn("\n2 threads:\n\n| variant |", both)
        self.assertIn("| `graph degree=8` | PyTorch | forward | 512 | 2.00 [1.90, 2.10] | 3e-07 "
                      "| – | – |", both)  # fmt: skip

    def test_rows_are_chosen(self):
        for arguments, count in (
            (["--variants", "graph"], 1), (["--lengths", "2048"], 2), (["--threads", "2"], 1),
            (["--peers", "jax,torch"], 4), (["--variants", "full", "--peers", "jax"], 1),
        ):  # fmt: skip
            missing = 0 if "--variants" in arguments else 1
            self.assertEqual(len(self.printed(*arguments).splitlines()), 1 + count + missing, arguments)
        self.written()
        self.assertIn("no comparison is of what is chosen", self.wrong("--variants", "mean"))

    def test_the_last_of_two_comparisons_of_one_thing_counts(self):
        record = Record(self.path)
        self.run_line(record)
        for times in (2.0, 5.0):
            add(record, "full", 512, times=times)
        record.close()
        with contextlib.redirect_stdout(io.StringIO()) as out:
            main(["--table", str(self.path), "--markdown"])
        self.assertIn("| 5.00 [4.90, 5.10] | 3e-07 | – | – |", out.getvalue())
        self.assertNotIn("2.00", out.getvalue())

    def test_what_is_no_rows_file_is_told_with_its_line(self):
        self.assertIn("cannot be read: No such file", self.wrong())
        self.path.write_bytes(b"\xff\xfe")
        self.assertIn("it is no text", self.wrong())
        self.path.write_text("{")
        self.assertIn("line 1: no JSON", self.wrong())
        self.path.write_text('{"schema": "other"}\n')
        self.assertIn("line 1: no row of attnbench-peers/1", self.wrong())
        lines = Path(self.written_elsewhere()).read_text().splitlines()
        self.path.write_text("\n".join([lines[1], *lines]))
        self.assertIn("line 1: a comparison before its run line", self.wrong())
        row = json.loads(lines[1])
        row["metrics"]["ratio"]["median"] = -1
        self.path.write_text("\n".join([lines[0], json.dumps(row)]))
        self.assertIn("line 2: no row of attnbench-peers/1: ", self.wrong())

    def written_elsewhere(self):
        """The path of rows as they should be; this test's own file is free again."""
        self.path.unlink()
        self.written()
        return self.path.rename(self.path.with_name("right.jsonl"))

    def test_options_that_measure_do_not_go_with_it(self):
        self.written()
        for option in (["--quick"], ["-o", "x.jsonl"], ["--program", "x"], ["--python", "x"]):
            self.assertIn("drop one of them", self.wrong(*option))


if __name__ == "__main__":
    unittest.main()
