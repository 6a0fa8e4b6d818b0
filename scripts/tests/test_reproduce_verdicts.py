"""The verdict of every entry of scripts/reproduce on planted rows: laws that agree, that disagree, and rows too noisy to say."""

from __future__ import annotations

import itertools
import math
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path

import numpy as np

from attnreproduce import findings
from attnreproduce.entries import FOLDER, entry_ids, read_entry
from attnreproduce.evidence import judged
from attnreproduce.judging import Outcome, Verdict
from attnreproduce.measuring import load
from attnreproduce.page import judge
from attnreproduce.product import Product

from .planted import Plant, records

PROGRAM = Product().path
LENGTHS = (512, 1024, 2048, 4096, 8192)
TEXTBOOK, TILED = {"kernel": "materialized"}, {"kernel": "tiled"}
Planting = Callable[[Path, str], None]  # into a folder, of one of the kinds
KINDS = {"agrees": Outcome.agrees, "disagrees": Outcome.disagrees, "noisy": Outcome.undecided}


def entry_file(name: str) -> Path:
    return FOLDER / name


def plant(kind: str) -> Plant:
    return Plant(noise=0.7 if kind == "noisy" else 0.004)


def r1(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    verdict = load(entry_file("R1/verdict.py"))
    for feature_kind in ("positive", "hyperbolic"):
        for length, angle in ((0.5, 0.5), (1.0, 2.8)):
            for batch in range(8):
                one = {"kind": feature_kind, "length": length, "angle": angle, "directions": 16, "batch": batch}
                spread = math.exp((1.0 if kind == "noisy" else 0.01) * rng.normal())
                factor = 1.5 if kind == "disagrees" else 1.0
                mean = math.exp(length**2 * math.cos(angle)) * (1 + 1e-3 * rng.normal())
                found.append(one | {"mean": mean, "squared_error": factor * spread * verdict.form(one)})
    records(folder, "pairs", found)


def r2(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    bound = load(entry_file("R2/verdict.py")).bound
    for length, angle in ((0.5, 0.5), (0.75, 1.5)):
        for orthogonal in (True, False):
            for batch in range(8):
                one = {"length": length, "angle": angle, "dim": 8, "batch": batch, "orthogonal": orthogonal}
                gain = {"agrees": 2.0, "disagrees": 0.1, "noisy": 1.0}[kind] * bound(one)
                error = (5 * bound(one) - gain * orthogonal) * math.exp((0.5 if kind == "noisy" else 0.005) * rng.normal())
                mean = math.exp(length**2 * math.cos(angle)) * (1 + 1e-3 * rng.normal())
                found.append(one | {"mean": mean, "squared_error": error})
    records(folder, "gain", found)


def r3(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    gain = {"agrees": 0.5, "disagrees": 2.0, "noisy": 0.9}[kind]
    for seed in range(15):
        for m in (16, 64, 256):
            for scale in (0.5, 1.0, 2.0):
                for orthogonal in (True, False):
                    error = (gain if orthogonal else 1.0) / math.sqrt(m) * math.exp(rng.normal() * (2 if kind == "noisy" else 0.1))
                    rows.error("performer", error, features=m, orthogonal=orthogonal, seed=seed, input_scale=scale)
    rows.write(folder, "fidelity", entry_file("R3/fidelity.toml"))


def r4(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    for seed in range(5):
        for factor in (1.1, 3.0, 6.0):
            leak = {"agrees": 0.3, "disagrees": 1e-9, "noisy": 0.01}[kind] * math.exp((1 if kind == "noisy" else 0.1) * rng.normal())
            one = {"seed": seed, "factor": factor, "moved_last": 0.5}
            found.append(one | {"stabiliser": "over all keys", "constant": 1e-4, "moved_earlier": leak})
            found.append(one | {"stabiliser": "over the keys so far", "constant": 0.0, "moved_earlier": 0.0})
    records(folder, "leak", found)


def r5(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    power = 0.0 if kind == "disagrees" else 1.0
    for seed in range(5):
        spread = math.exp((2.0 if kind == "noisy" else 0.05) * rng.normal())
        for n in (1024, 8192):
            found.append({"seed": seed, "length": n, "of": "subtraction", "residual": 1e-6 * n**power * spread ** (n > 1024), "early": 1e-6})
        for n in (1024, 4096):
            found.append({"seed": seed, "length": n, "of": "stored states", "error": 1e-6})
    records(folder, "subtraction", found)


def r6(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    share = {"agrees": 0.9, "disagrees": 0.3, "noisy": 0.5}[kind]
    for seed in range(5):
        for correlation in (0.0, 0.98):
            for spread in (1.0, 4.0):
                one = {"seed": seed, "correlation": correlation, "spread": spread, "length": 512, "index": 128}
                near = share + (0.1 if kind == "noisy" else 0.01) * rng.normal()
                found.append(one | {"share": near, "share_of_squares": near, "effective_rank": 512 * near})
    records(folder, "spectra", found)


def r7(folder: Path, kind: str) -> None:
    rows = plant(kind)
    for mode in ("forward", "train"):
        for n in (1024, 2048, 4096, 8192):
            if kind == "noisy" and n == 4096:
                continue  # memory is exact: what leaves it undecided is a missing row
            rows.peak("full", n, n * n * (80 if kind == "disagrees" else 4), mode=mode, **TEXTBOOK)
            rows.peak("full", n, 820 * n, mode=mode, **TILED)
    rows.write(folder, "memory", entry_file("R7/memory.toml"))


def r8(folder: Path, kind: str) -> None:
    rng, found = np.random.default_rng(1), []
    for seed in range(8):
        for rounds in (1, 2, 4, 8):
            power = rounds if kind != "disagrees" else math.sqrt(rounds)
            p = 1 - 0.5**power + (0.3 * rng.normal() if kind == "noisy" else 0.001 * rng.normal())
            found.append({"seed": seed, "rounds": rounds, "found": p, "mass": p / 2, "seen": 0.03 * rounds})
    records(folder, "hashing", found)


def r13(folder: Path, kind: str) -> None:
    alphas = (0.5, 4.0) if kind == "noisy" else (0.5, 4.0, 16.0)
    found = []
    for alpha in alphas:
        weight = 1 / sum(math.exp(-alpha * k * k) for k in range(-40, 41))
        off = 0.05 if kind == "disagrees" else 1e-6
        found.append({"length": 64, "alpha": alpha, "weight_least": weight - off, "weight_most": weight, "error_at_ends": 0.5,
                      "error_inside": 1 - weight + off})  # fmt: skip
    records(folder, "convolution", [] if kind == "noisy" else found)


def r14(folder: Path, kind: str) -> None:
    entry = read_entry(FOLDER / "R14")
    ups, memory = (entry.published[name].values for name in ("speed_up", "memory"))
    rows = plant(kind)
    for scope in ("attention", "model"):
        for form in (TEXTBOOK, TILED):
            rows.time("full", 4000, 1.0, mode="train", scope=scope, **form)
        for name, up in ups.items():
            rows.time(name, 4000, 1 / up, mode="train", scope=scope)
    for name in ups:
        gigabytes = memory[name]
        rows.peak(name, 4000, 1e9 / gigabytes if kind == "disagrees" else 1e9 * gigabytes, mode="train")
    rows.write(folder, "steps", entry_file("R14/steps.toml"))


def r15(folder: Path, kind: str) -> None:
    rows, power = plant(kind), 1 if kind == "disagrees" else 2
    for scope in ("attention", "model"):
        for n in (512, 1024, 2048, 4096, 8192, 16384):
            rows.time("linformer", n, 1e-6 * n, rank=128, scope=scope)
            for form in (TEXTBOOK, TILED):
                rows.time("full", n, 2e-9 * n**power, scope=scope, **form)
    for n in (512, 1024, 2048, 4096, 8192, 16384):
        rows.peak("linformer", n, 600 * n, rank=128)
        rows.peak("full", n, 4 * n * n, **TEXTBOOK)
    rows.write(folder, "saving", entry_file("R15/saving.toml"))


def r16(folder: Path, kind: str) -> None:
    rows, power = Plant(noise=0.3) if kind == "noisy" else plant(kind), 2 if kind == "disagrees" else 1
    rows.both("full", LENGTHS, lambda n: 1e-8 * n * n, lambda n: 4 * n * n, **TEXTBOOK)
    rows.both("linformer", LENGTHS, lambda n: 1e-6 * n**power, lambda n: 4 * 8192 * n / 16, rank=256)
    rows.both("longformer", LENGTHS, lambda n: 1e-6 * n**power, lambda n: 4 * 8192 * n / 22, window=128, global_tokens=0)
    rows.write(folder, "growth", entry_file("R16/growth.toml"))


def r17(folder: Path, kind: str) -> None:
    rows, power = plant(kind), 2 if kind == "disagrees" else 1
    for form in (TEXTBOOK, TILED):
        rows.both("full", LENGTHS, lambda n: 1e-8 * n * n, lambda n: 4 * n * n, mode="train", **form)
    rows.both("reformer", LENGTHS, lambda n: 1e-5 * n**power, lambda n: 900 * n, mode="train", chunk=32)
    rows.both("linear", LENGTHS, lambda n: 1e-6 * n, lambda n: 500 * n, mode="train")
    rows.write(folder, "growth", entry_file("R17/growth.toml"))


def r18(folder: Path, kind: str) -> None:
    rows = plant(kind)
    cache = 1e-10 if kind == "disagrees" else 1e-8  # of a token of the context
    for n in (1, 98, 196, 392, 784, 1536, 3072):
        rows.time("linear", n, 2e-6, mode="decode", causal=True)
        rows.time("full", n, 1e-6 + cache * n, mode="decode", causal=True)
        rows.time("full", n, 1e-9 * n * n + 1e-6 * n, mode="forward", causal=True)
    rows.write(folder, "tokens", entry_file("R18/tokens.toml"))
    search = plant(kind)
    for n in (64, 128, 256):
        search.time("linear", n, 2e-6, mode="decode", causal=True)
        search.time("full", n, 1e-6 + cache * n, mode="decode", causal=True)
    search.write(folder, "crossing", entry_file("R18/crossing.toml"), find=True)


def r19(folder: Path, kind: str) -> None:
    """Exact attention has one curve for all variants, so all lengths are given by the variants'."""
    rows = plant(kind)
    lengths = [32 * 2**i for i in range(9)]
    memory = {"performer": 3000 if kind == "disagrees" else 80, "local": 400}
    speed = {"performer": 600, "local": 1800}
    for n in lengths:
        for form in (TEXTBOOK, TILED):
            rows.time("full", n, 1e-8 * n * n, **form)
            rows.peak("full", n, 10 * n * n, **form)
        for name in speed:
            rows.time(name, n, 1e-8 * n * speed[name])
            rows.peak(name, n, 10 * n * memory[name])
    rows.write(folder, "crossing", entry_file("R19/crossing.toml"), find=True)


def r20(folder: Path, kind: str) -> None:
    for name, linear, performer in (("narrow", 70, 300), ("wide", 140, 600)):
        rows = plant(kind)
        factor = 8 if kind == "disagrees" else 1
        for n in [16 * 2**i for i in range(9)]:
            for form in (TEXTBOOK, TILED):
                rows.time("full", n, 1e-8 * n * n, **form)
            rows.time("linear", n, 1e-8 * n * linear * factor)
            rows.time("performer", n, 1e-8 * n * performer * factor)
        rows.write(folder, name, entry_file(f"R20/{name}.toml"), find=True)


def r23(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    losses = {"full": 1e-4, "linear": 1.0 if kind == "disagrees" else 2e-4, "reformer": 5e-5 if kind == "disagrees" else 0.3}
    for seed in range(3):
        for name, loss in losses.items():
            spread = math.exp(0.02 * rng.normal())
            if (kind, name) == ("noisy", "linear"):
                loss = (0.001, 0.01, 0.2)[seed]
            rows.score(name, "copy", 0.9, seed, loss=loss * spread)
            rows.score(name, "copy", 0.2, seed, loss=9.0, rate=1e-2)  # loses on validation
    rows.write(folder, "copy", entry_file("R23/copy.toml"))


def r24(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    for seed in range(3):
        for rounds in (4, 2, 1):
            scores = {"full": 0.01, "8": 0.99, "4": 0.98, "2": 0.9, "1": 0.8}
            if kind == "disagrees":
                scores["full"] = 0.9
            shift = 0.3 * rng.normal() if kind == "noisy" else 0.002 * rng.normal()
            with_ = [{"params": {"as": "paper", "buckets": int(name == "full"), "chunk": 16, "rounds": 1 if name == "full" else int(name)},
                      "test": min(1.0, max(0.0, score + shift * (name != "8"))), "stderr": 0.01, "reason": None}
                     for name, score in scores.items()]  # fmt: skip
            rows.score("reformer", "copy", 0.9, seed, rounds=rounds, by_params=with_)
    rows.write(folder, "rounds", entry_file("R24/rounds.toml"))


def r26(folder: Path, kind: str) -> None:
    rows, rng = plant(kind), np.random.default_rng(1)
    top = {"agrees": 0.25, "disagrees": 0.47, "noisy": 0.37}[kind]
    for seed in range(10):
        there = top + 0.003 * rng.normal()
        shortcuts = {"majority": 0.17, "root operator": 0.2, "root operator, its digits": there}
        rows.score("mean", "listops", 0.1, seed, shortcuts=shortcuts)
    rows.write(folder, "ladder", entry_file("R26/ladder.toml"))


def r28(folder: Path, kind: str) -> None:
    rows, rng, spread = plant(kind), np.random.default_rng(1), 0.3 if kind == "noisy" else 0.01
    far = {"none": 0.6, "sinusoidal": 0.3, "rotary": 0.9 if kind == "disagrees" else 0.4, "learned": None}
    for seed, (positions, score), task in itertools.product(range(3), far.items(), ("copy", "induction")):
        on = [{"params": {"length": 32 * t}, "length": 32 * t, "chance": score and 0.1, "reason": None if score else "it ends",
               "test": score and score / t**0.5 + spread * rng.normal(), "stderr": score and 0.01} for t in (2, 4, 8)]  # fmt: skip
        rows.score("full", task, 0.95, seed, task_params={"length": 32}, training={"positions": positions}, by_task=on)
    rows.write(folder, "lengths", entry_file("R28/lengths.toml"))


def r30(folder: Path, kind: str) -> None:
    rows = plant(kind)
    for seed in range(3):
        shift = 0.05 * (seed - 1) if kind == "noisy" else 0.001 * seed
        rows.score("full", "frames", 0.9, seed)
        rows.score("truncated", "frames", (0.8 if kind == "disagrees" else 0.9) + shift, seed)
    rows.write(folder, "frames", entry_file("R30/frames.toml"))
    times = plant("agrees")
    for n in (256, 1024, 4096):
        times.time("truncated", n, 1e-7 * n, window=18)
        times.time("full", n, 1e-9 * n * n, **TILED)
    times.write(folder, "cost", entry_file("R30/cost.toml"))


PLANTINGS: dict[str, Planting] = {"R1": r1, "R2": r2, "R3": r3, "R4": r4, "R5": r5, "R6": r6, "R7": r7, "R8": r8, "R13": r13, "R14": r14, "R15": r15, "R16": r16, "R17": r17,
                                  "R18": r18, "R19": r19, "R20": r20, "R23": r23, "R24": r24, "R26": r26, "R28": r28, "R30": r30}  # fmt: skip
# What fails there is the machine's: times of one program over those of another.
OF_MACHINE = {"R20"}


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class Verdicts(unittest.TestCase):
    def verdict(self, name: str, kind: str) -> Verdict:
        with tempfile.TemporaryDirectory() as held:
            PLANTINGS[name](Path(held), kind)
            return judged(read_entry(FOLDER / name), Path(held), Product())

    def test_every_entry_is_planted(self) -> None:
        self.assertEqual(sorted(PLANTINGS), sorted(entry_ids()))

    def test_outcomes(self) -> None:
        for name in PLANTINGS:
            for kind, expected in KINDS.items():
                if name in OF_MACHINE and kind == "disagrees":
                    expected = Outcome.hardware
                with self.subTest(entry=name, kind=kind):
                    found = self.verdict(name, kind)
                    told = [(f.state.value, f.what, f.found) for f in found.findings]
                    self.assertEqual(found.outcome, expected, f"{found.why}\n{told}")
                    self.assertGreater(len(found.why), 20)

    def test_what_agrees_has_a_picture(self) -> None:
        for name, planting in PLANTINGS.items():
            with self.subTest(entry=name), tempfile.TemporaryDirectory() as held:
                planting(Path(held), "agrees")
                picture = judge(read_entry(FOLDER / name), Path(held), Product()).picture
                assert picture is not None and picture.figure is not None
                picture.figure.draw_without_rendering()
                wide = picture.figure.bbox.width
                outside = [t.get_text() for t in picture.figure.texts if t.get_window_extent().x1 > wide]
                self.assertEqual(outside, [])
                self.assertIn("commit 012345678", picture.caption)
                self.assertFalse(picture.data["value"].isna().any())


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class FindingsPage(unittest.TestCase):
    KINDS = {"R7": "disagrees", "R8": "agrees", "R14": "noisy", "R15": "agrees", "R18": "agrees", "R19": "agrees", "R26": "disagrees"}

    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        folder = Path(held.name)
        for name, kind in cls.KINDS.items():
            PLANTINGS[name](folder / name, kind)
        entries = [read_entry(FOLDER / name) for name in (*cls.KINDS, "R20")]  # R20 has no rows
        found = [judge(entry, folder / entry.id, Product()) for entry in entries]
        text = findings.text_of(found, Product(), folder, folder / "findings.md")
        cls.sections = {part.partition("\n")[0]: part for part in text.split("\n## ")[1:]}

    def lines(self, section: str, *wanted: str) -> list[str]:
        return [line for line in self.sections[section].splitlines() if all(word in line for word in wanted)]

    def test_outcomes_name_each_entry_once(self) -> None:
        for name in (*self.KINDS, "R20"):
            self.assertEqual(len(self.lines("Outcomes", f"[{name}, ")), 1, name)
        self.assertIn("[R20, ", self.lines("Outcomes", "**not measured yet** (1)")[0])
        self.assertIn("[R7, ", self.lines("Outcomes", "**disagrees** (2)")[0])

    def test_what_fails_and_what_is_open_link_their_rows(self) -> None:
        failing = self.lines("Findings that fail", "[R7]", "saving in training at 4096")
        self.assertEqual(len(failing), 1)
        self.assertIn("[memory](R7/memory.jsonl)", failing[0])
        self.assertFalse(self.lines("Findings that fail", "[R8]"))
        self.assertTrue(self.lines("Findings that the rows do not decide", "[R14]", "(R14/steps.jsonl)"))

    def test_the_baseline_s_part_of_a_speed_up(self) -> None:
        """Planted: linformer takes 1e-6·n, either form of exact attention 2e-9·n²: 32.8 at 16384, all of it the variant's."""
        found = self.lines("Which speed-ups are the baseline's", "[R15]", "`linformer`", "| attention |")
        self.assertEqual(len(found), 1)
        cells = [cell.strip().partition(" [") for cell in found[0].split("|")[5:8]]
        for (figure, _, interval), expected in zip(cells, (32.8, 32.8, 1.0)):
            self.assertAlmostEqual(float(figure) / expected, 1, delta=0.05)
            self.assertTrue(interval)

    def test_lengths_and_what_lies_beyond(self) -> None:
        title = "From which length on each variant takes less"
        for variant, word, length in (("performer", "time", 600), ("local", "time", 1800), ("performer", "memory", 80)):
            line = self.lines(title, "[R19]", f"`{variant}`", f"| {word} |")
            self.assertEqual(len(line), 1, (variant, word))
            for cell in line[0].split("|")[4:6]:
                self.assertAlmostEqual(float(cell.split()[0]) / length, 1, delta=0.3)
        self.assertTrue(self.lines(title, "[R18]", "`linear`", "time, decoding"))

    def test_listops_lists_predictors_and_models_by_score(self) -> None:
        scores = [float(line.split("|")[2].split()[0]) for line in self.lines("Where Long Range Arena's ListOps scores lie", "| published |")]
        self.assertEqual(scores, sorted(scores))
        self.assertGreater(len(scores), 8)
        self.assertEqual(len(self.lines("Where Long Range Arena's ListOps scores lie", "without any nested operator")), 3)

    def test_recall_is_of_the_reference_rows(self) -> None:
        line = self.lines("Recall against bytes of state", "`linear`")
        self.assertEqual(len(line), 1)
        self.assertIn("| 16896 |", line[0])


if __name__ == "__main__":
    unittest.main()
