"""scripts/peers: the statistics, the turns, the plan, the command line.

Whole sessions are in test_peers_session.py, our side of the protocol in test_peers_side.py.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from attnbench._place import IMPORTED
from attnbench.peers import plan
from attnbench.peers.__main__ import main
from attnbench.peers.command import parsed
from attnbench.peers.plan import FEW, VARIANTS, Wanted, blocks
from attnbench.peers.record import LEAST, ratio_of
from attnbench.peers.session import ROUNDS, SLOW_ROUNDS, refusal, take_turns
from attnbench.peers.sides import SideError, cores

from ..faults import BUILT, PROGRAM

built = BUILT
EVERYTHING = Wanted(plan.SUBJECTS, plan.PEERS, (512, 8192), (512,), (1, 2), quick=False)


class Ratios(unittest.TestCase):
    def test_a_known_ratio_with_its_interval(self):
        rng = np.random.default_rng(1)
        ours, peer = 1 + 0.05 * rng.random(15), 3 + 0.15 * rng.random(15)
        found = ratio_of(ours, peer)
        self.assertAlmostEqual(found.median, np.median(peer) / np.median(ours))
        self.assertTrue(2.8 < found.low <= found.median <= found.high < 3.2, found)
        self.assertEqual(found, ratio_of(ours, peer), "the same samples, the same interval")

    def test_what_slows_a_round_for_both_leaves_the_ratio_alone(self):
        drift = np.array([1, 1, 2, 2, 3, 1, 4.0])
        found = ratio_of(drift, 2 * drift)
        self.assertEqual((found.low, found.median, found.high), (2, 2, 2))

    def test_one_outlier_moves_the_interval_and_not_the_median(self):
        found = ratio_of([1.0] * 9, [2.0] * 8 + [200.0])
        self.assertEqual((found.median, found.low), (2, 2))

    def test_few_rounds_have_a_range_and_no_level(self):
        few, enough = ratio_of([1.0] * 5, [2.0, 3, 4, 5, 9]), ratio_of([1.0] * 6, [2.0] * 6)
        self.assertEqual((few.low, few.median, few.high, few.coverage), (2, 4, 9, None))
        self.assertEqual(few.text(), "4.00 (2.00, 9.00)")
        self.assertEqual((enough.coverage, enough.text()), (0.95, "2.00 [2.00, 2.00]"))

    def test_samples_come_in_pairs(self):
        for ours, peer in (([], []), ([1.0], [1.0, 2.0])):
            with self.assertRaises(ValueError):
                ratio_of(ours, peer)


class FixedSide:
    """Answers with a given time and notes who was asked when; its first call takes `cold` s more,
    and it ends in the turn after `lives` requests."""

    def __init__(self, name, seconds, log, cold=0.0, lives=10**6):
        self.name, self.seconds, self.log = name, seconds, log
        self.cold, self.lives = cold, lives

    def ask(self, do, *, warm, repeat):
        self.lives -= 1
        if self.lives < 0:
            raise SideError(f"{self.name} ended")
        self.log.append((self.name, do, warm, repeat))
        calls = [self.seconds] * (warm + repeat)
        calls[0] += self.cold
        self.cold = 0
        return {"seconds": calls[warm:]}


class Turns(unittest.TestCase):
    def turns(self, *seconds, budget=0.0):
        log = []
        sides = [FixedSide(str(i), s, log) for i, s in enumerate(seconds)]
        samples, faults = take_turns(sides, "forward", budget, seed=0)
        self.assertEqual(faults, {})
        return samples, log[len(seconds) :]

    def test_rounds_interleave_and_the_first_side_plays_in_all(self):
        samples, log = self.turns(1.0, 9.0, 2.0)
        self.assertEqual(
            {k: len(v) for k, v in samples.items()}, {"0": LEAST, "1": SLOW_ROUNDS, "2": LEAST}
        )
        self.assertEqual(samples["1"], [9.0] * SLOW_ROUNDS)
        for place in range(0, 9, 3):
            self.assertEqual({name for name, *_ in log[place : place + 3]}, {"0", "1", "2"})
        self.assertNotEqual([e[0] for e in log[:3]], [e[0] for e in log[3:6]], "a random order")

    def test_short_calls_are_warmed_and_repeated_within_a_turn(self):
        samples, log = self.turns(0.01, 0.001, budget=1e-9)
        self.assertEqual(len(samples["0"]), ROUNDS[0])
        self.assertEqual({e[0]: e[2:] for e in log}, {"0": (1, 10), "1": (1, 50)})

    def test_a_first_call_that_compiles_is_no_measure(self):
        log = []
        sides = [FixedSide("ours", 0.01, log), FixedSide("cold", 0.02, log, cold=30.0)]
        samples, _ = take_turns(sides, "forward", 8.0, seed=0)
        self.assertEqual(samples["cold"], [0.02] * ROUNDS[1])
        self.assertEqual(log[-1][3] + log[-2][3], 10 + 5, "repeated as its warm calls allow")

    def test_a_side_that_ends_leaves_the_others_playing(self):
        for lives in (0, 1, 3):  # it ends when probed, in its first turn, in a later one
            log = []
            names = ("ours", "dies", "stays")
            sides = [FixedSide(name, 1.0, log) for name in names]
            sides[1].lives = lives
            samples, faults = take_turns(sides, "forward", 0.0, seed=0)
            self.assertEqual(faults, {"dies": "dies ended"})
            self.assertEqual({k: len(v) for k, v in samples.items()}, {"ours": 6, "stays": 6})

    def test_without_our_side_there_is_nothing_to_compare(self):
        sides = [FixedSide("ours", 1.0, [], lives=2), FixedSide("stays", 1.0, [])]
        with self.assertRaisesRegex(SideError, "ours ended"):
            take_turns(sides, "forward", 0.0, seed=0)

    def test_cores_are_ours_and_distinct(self):
        mine = os.sched_getaffinity(0)
        for count in range(1, len(mine) + 1):
            self.assertEqual(len(set(cores(count)) & mine), count)


class Plans(unittest.TestCase):
    def test_everything_asked_for_is_there_once(self):
        found = blocks(EVERYTHING)
        self.assertEqual(
            len(found), len({(b.spec, b.kv_dtype, b.causal, b.length, b.threads, b.width) for b in found})
        )
        self.assertEqual({b.subject for b in found}, set(plan.SUBJECTS))
        for form in VARIANTS:
            forms = [b for b in found if (b.subject, b.params) == (form.name, form.params)]
            self.assertEqual({b.causal for b in forms}, set(form.causal))
            self.assertEqual({b.length for b in forms}, {512, 8192})
        self.assertEqual({b.width for b in found if b.subject == "step"}, {64, 128, 256})

    def test_quick_is_five_variants_unless_others_are_asked_for(self):
        for arguments, subjects in (
            (["--quick"], {*FEW, "step"}),
            (["--quick", "--variants", "all"], set(plan.SUBJECTS)),
            (["--quick", "--variants", "relu,step,relu"], {"relu", "step"}),
            (["--only", "graph"], {"graph"}),
            ([], set(plan.SUBJECTS)),
        ):
            _, wanted = parsed(["-o", "/no/rows.jsonl", *arguments])
            self.assertEqual({b.subject for b in blocks(wanted)}, subjects, arguments)
        _, wanted = parsed(["--quick", "--variants", "all"])
        others = [b for b in blocks(wanted) if b.subject not in ("full", "step", "decode")]
        once = {(b.spec, b.causal) for b in others}
        self.assertEqual((len(others), {b.length for b in others}), (len(once), {2048}))

    def test_only_pytorch_has_variants_and_steps(self):
        self.assertEqual({b.subject for b in blocks(EVERYTHING.among(("jax",)))}, {"full"})
        self.assertEqual(blocks(EVERYTHING.among(())), [])

    def test_refusals_say_why(self):
        short, long = (next(b for b in blocks(EVERYTHING) if b.length == n) for n in (512, 8192))
        self.assertIsNone(refusal("jax", short, "train"))
        self.assertIn("2.0 GiB", refusal("jax", long, "train"))
        self.assertIn("no backward", refusal("onnxruntime", short, "train"))
        self.assertIsNone(refusal("torch", long, "train"))


class CommandLine(unittest.TestCase):
    def wrong(self, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            with contextlib.redirect_stderr(io.StringIO()) as told:
                with self.assertRaises(SystemExit) as end:
                    main(list(arguments))
        self.assertEqual((end.exception.code, out.getvalue()), (2, ""), told.getvalue())
        self.assertRegex(told.getvalue(), r"\Apeers: [^\n]+\n\Z")
        return told.getvalue()

    def test_the_process_ends_so_too(self):
        done = subprocess.run(
            [sys.executable, "-m", "attnbench.peers", "--only", "fulll"],
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(IMPORTED)},
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertRegex(done.stderr, r"\Apeers: [^\n]+\n\Z")

    def test_wrong_use_is_one_line_and_exit_2(self):
        self.assertIn("'fulll'", self.wrong("--only", "fulll"))
        told = self.wrong("--variants", "full,graf")
        self.assertIn("--variants 'graf' is unknown; expected all, or of full, truncated,", told)
        self.assertIn("'all' stands alone", self.wrong("--variants", "all,graph"))
        self.assertIn("'tensorflow'", self.wrong("--peers", "tensorflow"))
        for text in ("0", "x", "", "512,,", "-1", "1e3", "10000000"):
            self.assertIn("--lengths", self.wrong(f"--lengths={text}"))
        self.assertIn("--threads '4096'", self.wrong("--threads", "4096"))
        self.assertIn("no such file", self.wrong("--python", "/no/python"))
        self.assertIn("is not a program", self.wrong(f"--python={__file__}"))
        self.assertIn("is not a program", self.wrong(f"--program={__file__}"))
        self.assertIn("exists", self.wrong("-o", __file__))
        self.assertIn("unrecognized", self.wrong("--fast"))
        self.assertIn("cannot be written", self.wrong(
            "-o", "/proc/no/rows.jsonl", f"--program={sys.executable}", f"--python={sys.executable}"
        ))  # fmt: skip

    def test_a_program_that_is_no_attnbench(self):
        replies = {
            "cannot be run": "no interpreter's format",
            "no such thing": "#!/bin/sh\necho no such thing >&2; exit 3",
            "which is no reply": "#!/bin/sh\nexec cat",
            "tells no environment": "#!/bin/sh\necho '{\"version\": \"0\"}'; exec cat >/dev/null",
        }
        for expected, text in replies.items():
            with tempfile.TemporaryDirectory() as folder:
                program = Path(folder, "program")
                program.write_text(text)
                program.chmod(0o755)
                with contextlib.redirect_stderr(io.StringIO()) as told:
                    with self.assertRaises(SystemExit) as end:
                        main([
                            f"--program={program}", f"--python={sys.executable}",
                            "-o", f"{folder}/rows.jsonl",
                        ])  # fmt: skip
                self.assertEqual(end.exception.code, 2, told.getvalue())
                self.assertIn(expected, told.getvalue().splitlines()[-1])
                self.assertEqual(os.listdir(folder), ["program"])

    @built
    def test_without_a_library_nothing_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = [
                f"--program={PROGRAM}",
                f"--python={sys.executable}",
                "-o",
                f"{folder}/rows.jsonl",
            ]
            for peers, code in (([], 4), (["--peers=torch"], 2)):
                with contextlib.redirect_stderr(io.StringIO()) as told:
                    with self.assertRaises(SystemExit) as end:
                        main([*arguments, *peers])
                self.assertEqual(end.exception.code, code, told.getvalue())
                self.assertIn("No module named 'torch'", told.getvalue())
                self.assertEqual(os.listdir(folder), [])

    def test_help(self):
        with contextlib.redirect_stdout(io.StringIO()) as out, self.assertRaises(SystemExit) as end:
            main(["--help"])
        self.assertEqual(end.exception.code, 0)
        self.assertIn("--quick", out.getvalue())
