"""Variants in Python in sweeps: their rows beside native ones, what goes wrong with them, and their
training, against the same training of the library and one in torch alone."""

from __future__ import annotations

import json
import subprocess
import tempfile
import textwrap
import unittest
from pathlib import Path

import numpy as np

import attnbench
from attnbench._program import environment, program

try:
    import torch

    from .twin import Twin
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None

FILE = '''
import math
import torch
from torch.nn import functional as F

class Exact(torch.nn.Module):
    """Softmax attention, with a scale that is learned."""
    promises = {"exact": True, "cross": True, "permutable": True}

    def __init__(self, heads, head_dim, max_len, causal, factor: float = 1):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.full((heads, 1, 1), float(factor)))

    def forward(self, q, k, v, mask):
        factor = self.factor / math.sqrt(q.shape[-1])
        if mask is None:
            return (q @ k.mT * factor).softmax(-1) @ v
        seen, empty = mask.any(-2)[..., None], ~mask.any(-1, keepdim=True)
        k, v = torch.where(seen, k, 0), torch.where(seen, v, 0)
        logits = (q @ k.mT * factor).masked_fill(~mask, -math.inf)
        return logits.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0) @ v

def softmax(q, k, v, causal, kv_lengths=None):
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        mask = mask.tril(k.shape[2] - q.shape[2])
    mask = mask[None, None]
    if kv_lengths is not None:
        keys = (torch.arange(k.shape[2]) < kv_lengths[:, None])[:, None]
        mask = mask & keys[:, None]
        k, v = (torch.where(keys[..., None], x, 0) for x in (k, v))
    empty = ~mask.any(-1, keepdim=True)
    logits = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~mask, -math.inf)
    return logits.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0) @ v

def flat(q, k, v, causal):
    return (q @ k.transpose(-1, -2)).mean(-1, keepdim=True).expand_as(q).sum(-1)

def broken(q, k, v, causal):
    raise KeyError("my own words")

def nowhere(q, k, v, causal):
    return softmax(q, k, v, causal) * math.nan
'''
TINY = {"length": 32, "heads": 2, "head_dim": 8, "progress": False}
TRAINING = ["steps=6,eval_every=1,validation_examples=8,test_examples=8,batch=8,warmup=3,layers=2,"
            "width=16,feed_forward=24"]  # fmt: skip


class InFolder(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(held.cleanup)
        cls.folder = Path(held.name)
        cls.file = cls.folder / "mine.py"
        cls.file.write_text(FILE)

    def spec(self, name: str) -> str:
        return f"python:{self.file}:{name}"

    def sweep(self, output: str, **options: object) -> attnbench.Rows:
        return attnbench.run(output=self.folder / output, **{**TINY, **options})


class Rows(InFolder):
    def test_all_four_measures_stand_beside_native_rows(self) -> None:
        rows = self.sweep("all.jsonl", variant=["full", self.spec("Exact"), self.spec("softmax")],
                          measure=["speed", "memory", "fidelity"], causal=True)  # fmt: skip
        self.assertEqual({(r["status"], r["reason"]) for r in rows}, {("ok", None)})
        ours = [r for r in rows if r["variant"]["name"] != "full"]
        self.assertEqual({r["provided_by"] for r in ours}, {"python"})
        self.assertEqual({r["ledger"]["kernel"] for r in ours}, {f"torch {torch.__version__}"})
        by = {(r["variant"]["name"], r["measure"]): r["metrics"] for r in rows}
        products = 2 * 2 * 2 * 32 * 32 * 8  # two products, two heads
        for name in ("python_exact", "python_softmax"):
            self.assertLess(by[name, "fidelity"]["relative_error"], 1e-5)
            self.assertEqual(by[name, "speed"]["flops"], products)
            matrix, array = 4 * 2 * 32 * 32, 4 * 2 * 32 * 8
            extra = by[name, "memory"]["extra_bytes"]
            self.assertGreaterEqual(extra, 2 * matrix + array)  # logits, weights and the output
            self.assertLess(extra, 8 * matrix)
        self.assertIn("python_exact\u2021", attnbench.table(rows))
        (entry,) = {json.dumps(p) for p in rows.runs[0]["config"]["python"] if p["name"] == "Exact"}
        self.assertEqual(json.loads(entry)["torch"], torch.__version__)

    def test_passes_with_gradients_count_both_ways(self) -> None:
        rows = self.sweep("train.jsonl", variant=[self.spec("softmax")], length=256,
                          measure=["speed", "memory"], mode=["forward", "train"])  # fmt: skip
        by = {(r["measure"], r["axes"]["mode"]): r["metrics"] for r in rows}
        self.assertEqual(by["speed", "train"]["flops"], 3 * by["speed", "forward"]["flops"])
        matrix = 4 * 2 * 256 * 256
        # The weights are kept for the backward pass, which makes their gradient and the logits'.
        self.assertGreater(by["memory", "train"]["extra_bytes"], 2.5 * matrix)
        self.assertGreater(by["memory", "train"]["extra_bytes"], by["memory", "forward"]["extra_bytes"])

    def test_a_limit_of_memory_is_that_of_the_cell_and_not_of_torch(self) -> None:
        rows = self.sweep("limit.jsonl", variant=[self.spec("softmax")], length=[64, 8192],
                          measure="memory", max_memory="300M")  # fmt: skip
        found = {r["axes"]["length"]: r for r in rows}
        self.assertEqual([found[n]["status"] for n in (64, 8192)], ["ok", "oom"], list(rows))
        self.assertIn("allocate", found[8192]["reason"])

    def test_what_is_wrong_with_a_function_is_the_reason_of_its_row(self) -> None:
        rows = self.sweep("red.jsonl", variant=[self.spec(n) for n in ("flat", "broken", "nowhere")],
                          measure="fidelity")  # fmt: skip
        reasons = {r["variant"]["name"]: r["reason"] for r in rows}
        self.assertEqual({r["status"] for r in rows}, {"failed"})
        self.assertIn("the function returned [", reasons["python_flat"])
        self.assertIn("KeyError: 'my own words'", reasons["python_broken"])
        self.assertRegex(reasons["python_nowhere"], "contract check '.*' is red: .*nan")

    def test_check_info_and_list_know_it(self) -> None:
        done = self.attnbench("check", self.spec("Exact"), "--quick")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("gradients (double)", done.stdout)
        red = self.attnbench("check", self.spec("flat"), "--quick")
        self.assertEqual(red.returncode, 5, red.stdout + red.stderr)
        info = self.attnbench("info", self.spec("Exact[factor=2]"))
        self.assertEqual(info.returncode, 0, info.stderr)
        for words in ("factor", "[4,1,1]", "learned", "exact"):
            self.assertIn(words, info.stdout)
        listed = self.attnbench("list", f"python:{self.file}")
        self.assertIn(f"{self.spec('softmax')}\n", listed.stdout)

    def test_a_class_without_words_is_told_by_its_file(self) -> None:
        text = "import torch\n\nclass A(torch.nn.Module):\n  def __init__(self, heads, head_dim, max_len, causal):\n    super().__init__()\n"
        text += "  def forward(self, q, k, v, mask):\n    return q\n"
        for words, told in (('"""Mine: of keys alone."""\n', "Mine: of keys alone."), ("", "a class of torch.nn.Module")):
            file = self.folder / "bare.py"
            file.write_text(words + text)
            done = self.attnbench("list", f"python:{file}")
            self.assertEqual(done.stdout.splitlines()[1].strip(), told, done.stderr)

    def attnbench(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program(), *words], capture_output=True, text=True, env=environment())

    def test_a_file_that_fails_is_told_in_one_line(self) -> None:
        bad = self.folder / "bad.py"
        for text, words in (
            ("import nothing_of_that_name", "ModuleNotFoundError.*line 1"),
            ("def f(q):\n  return q", r"f: a function is called as f\(q, k, v\); this one takes \(q\)"),
            ("def f(q, k, v, mask, causal):\n  return q", r"called as f\(q, k, v, causal=\); this one takes \(q, k, v, mask, causal\)"),
            ("def f(q, k, v):\n  return q\nf.promises = {'causal': True}", r"promises causal is called as f\(q, k, v, causal=\)"),
            ("def f(q, k, v, causal, scale=None):\n  return q", "'scale' has the default None"),
            ("x = 1", "no class of torch.nn.Module and no function"),
            ("def g(q, k, v, causal):\n  return q", "no class or function 'f'; nearest is 'g'"),
            ("def f(q, k, v, causal):\n  return q\nf.promises = {'exakt': True}", "nearest is 'exact'"),
        ):
            bad.write_text(textwrap.dedent(text))
            done = self.attnbench("run", "-v", f"python:{bad}:f", "--dry-run")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertRegex(done.stderr, words)


class Training(InFolder):
    """One recipe: the same weights, batches and steps, whoever computes the attention."""

    def curves(self, task: str, *more: str) -> dict[str, list[float]]:
        rows = self.sweep(f"{len(list(self.folder.iterdir()))}.jsonl", measure="accuracy", task=[task],
                          variant=["full", self.spec("softmax")], length=None, heads=None,
                          head_dim=None, train=[TRAINING[0] + "".join(f",{m}" for m in more)])  # fmt: skip
        self.assertEqual({(r["status"], r["reason"]) for r in rows}, {("ok", None)})
        self.rows = {r["variant"]["name"]: r for r in rows}
        return {name: [point["train_loss"] for point in row["samples"]] for name, row in self.rows.items()}

    def test_a_full_in_python_has_the_loss_curve_of_full(self) -> None:
        for task, *more in (("mqar[preset=small]", "learning_rate=0.01"), ("majority[length=24]",)):
            with self.subTest(task):
                found = self.curves(task, *more)
                self.assertEqual(len(found["full"]), 6)
                self.assertGreater(np.ptp(found["full"]), 1e-3)  # it learns
                np.testing.assert_allclose(found["python_softmax"], found["full"], rtol=2e-5)
                one, other = self.rows["full"], self.rows["python_softmax"]
                for same in ("parameters", "examples", "chance", "shortcuts"):
                    self.assertEqual(one["metrics"][same], other["metrics"][same], same)
                self.assertEqual(one["metrics"]["by_example"]["digest"], other["metrics"]["by_example"]["digest"])

    def test_a_training_in_torch_alone_has_the_same_curve(self) -> None:
        for task, causal, more in (("mqar[preset=small]", True, ("learning_rate=0.01",)),
                                   ("majority[length=24]", False, ("norm=post", "positions=none"))):  # fmt: skip
            with self.subTest(task):
                found = self.curves(task, *more)
                row = self.rows["full"]
                key = {"protocol": 1, **{n: row[n] for n in ("measure", "variant", "task", "axes", "training", "source")}}
                twin = Twin(key, causal, lambda q, k, v, mask: torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, attn_mask=mask))  # fmt: skip
                losses = twin.losses(6)
                np.testing.assert_allclose(found["full"], losses, rtol=2e-5)
                np.testing.assert_allclose(found["python_softmax"], losses, rtol=2e-5)

    def test_learned_weights_of_a_module_are_trained(self) -> None:
        rows = self.sweep("learned.jsonl", measure="accuracy", task=["mqar[preset=small]"], length=None,
                          heads=None, head_dim=None, variant=["full", self.spec("Exact")], train=TRAINING)  # fmt: skip
        by = {r["variant"]["name"]: r for r in rows}
        extra = by["python_exact"]["metrics"]["parameters"] - by["full"]["metrics"]["parameters"]
        self.assertEqual(extra, 2 * 2)  # a scale for each head of each layer
        first, last = (by[n]["samples"] for n in ("full", "python_exact"))
        self.assertAlmostEqual(first[0]["train_loss"], last[0]["train_loss"], places=5)
        self.assertNotAlmostEqual(first[-1]["train_loss"], last[-1]["train_loss"], places=5)
