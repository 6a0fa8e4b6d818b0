"""scripts/peers: every variant's PyTorch form against our side, and the arrays that both are given.

What needs PyTorch runs where scripts/peers has made .venv-peers, and is skipped elsewhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from dataclasses import replace

import numpy as np

from attnbench._place import IMPORTED, ROOT
from attnbench.peers import inputs, loading, plan
from attnbench.peers.inputs import write_inputs, write_pattern
from attnbench.peers.plan import NAMES, VARIANTS
from attnbench.peers.session import refusal
from attnbench.peers.sides import SideError, start_ours, start_peer

from ..faults import BUILT, PROGRAM, InFolder

PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
built = BUILT
SMALL = {
    "truncated": {"window": 7},
    "local": {"block": 8, "look_back": 1},
    "longformer": {"window": 8, "global_tokens": 2},
    "bigbird": {"block": 4},
    "graph": {"degree": 3},
    "linformer": {"rank": 5},
    "performer": {"features": 16},
    "sinkhorn": {"block": 8, "iterations": 3},
    "reformer": {"rounds": 3, "chunk": 4},
}
LENGTHS = (50, 64)  # that fit no block, and all
# Exact attention under the masks that flex_attention is given, for requests on stdin.
MASKED = """
import json, sys, torch
from attnbench.peers.in_flex import mask_of, read
for request in json.load(sys.stdin):
    q, k, v = (read(request[name]) for name in "qkv")
    i, h = torch.arange(q.shape[2]), torch.arange(q.shape[1]).view(-1, 1, 1)
    seen = mask_of(request, len(i))(None, h, i.view(-1, 1), i).expand(len(h), len(i), len(i))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
    print(json.dumps(out.tolist()))
"""


def small(form, length, causal, peers=("torch",), **changes):
    block = plan.attention_block(form, length, 1, peers, causal, True)
    wide = {"heads": 1, "head_dim": 16} if form.mixer else {"heads": 2, "head_dim": 8}
    params = {**form.params, **SMALL.get(form.name, {}), **changes}
    return replace(block, batch=2, params=params, **wide)


def small_blocks(names=NAMES):
    for form in VARIANTS:
        if form.name in names:
            for length in LENGTHS:
                for causal in form.causal:
                    yield small(form, length, causal)
            if form.name == "reformer":  # more than 128 buckets: two hashes make one
                yield small(form, 130, True, chunk=2)


def form_of(name):
    return next(form for form in VARIANTS if form.name == name)


class Sided(InFolder):
    """Our side, and a folder for arrays."""

    def setUp(self):
        super().setUp()
        self.ours = start_ours(PROGRAM, 1)
        self.addCleanup(self.ours.close)

    def request(self, block):
        return write_inputs(block, self.folder, 0) | write_pattern(block, self.ours, self.folder)

    def answers(self, side, block, request):
        loading.load(side, block, request)
        return loading.answers(side, block, request, self.folder)


class Plan(unittest.TestCase):
    def test_a_variant_without_a_peer_is_named_with_the_reason(self):
        self.assertEqual(plan.without_peer(NAMES), {})
        [(name, why)] = plan.without_peer(["full", "sigmoid"]).items()
        self.assertEqual(name, "sigmoid")
        self.assertRegex(why, "^no peer: ")

    def test_a_peer_takes_part_where_it_can(self):
        wanted = plan.Wanted(plan.SUBJECTS, tuple(plan.TITLES), (512,), (512,), (1,), quick=False)
        found = {peer: set() for peer in plan.TITLES}
        for block in plan.blocks(wanted):
            for peer in block.peers:
                found[peer].add(block.subject)
        self.assertEqual(found["torch"], set(plan.SUBJECTS))
        self.assertEqual(found["flex"], {"truncated", "local", "sparse", "longformer", "bigbird"})
        for peer in ("jax", "onnxruntime", "ggml"):
            self.assertEqual(found[peer], {"full"})

    def test_lengths_that_take_minutes_are_left_out_with_the_reason(self):
        long, short = (small(form_of("additive"), n, False) for n in (4096, 2048))
        self.assertIn("above 2048", refusal("torch", long, "forward"))
        self.assertIsNone(refusal("torch", short, "train"))
        for peer in ("ggml", "flex"):
            self.assertIn("no backward pass", refusal(peer, short, "train"))

    def test_mixers_have_one_head_of_the_full_width(self):
        for form in VARIANTS:
            block = plan.attention_block(form, 512, 1, ("torch",), False, False)
            self.assertEqual((block.width, block.heads == 1), (512, form.mixer), form.name)


class Arrays(unittest.TestCase):
    def test_no_score_of_relu_is_zero_or_rounded(self):
        rng = np.random.default_rng(0)
        for dim in (7, 8, 64):
            q, k = inputs.clear_of_zero(*rng.standard_normal((2, 1, 1, 200, dim)))
            scores = q @ k.swapaxes(-1, -2)
            exact = q.astype(float) @ k.astype(float).swapaxes(-1, -2)
            self.assertTrue((scores == exact).all() and scores.all(), dim)
            self.assertLess(abs(q.std() - 1), 0.1)

    def test_no_hash_hangs_on_rounding(self):
        rng = np.random.default_rng(0)

        def normal(shape):
            return rng.standard_normal(shape).astype(np.float32)

        for buckets in (4, 130):
            first, second = inputs.hash_shape(buckets)
            q, rotations = normal((2, 2, 500, 8)), normal((2, 3, first + second, 8))
            drawn = inputs.clearly_hashed(q, rotations, buckets, normal)
            scores = np.einsum("bhnd,hrkd->bhnrk", drawn, rotations)
            for part in (scores[..., :first], scores[..., first:]):
                if part.shape[-1]:
                    both = np.sort(np.concatenate([part, -part], -1), -1)[..., -2:]
                    self.assertGreater(np.diff(both).min(), 0.9 * inputs.MARGIN)
            self.assertTrue(0 < (drawn != q).any(-1).sum() < 500, "some rows are others, most not")

    def test_unread_inputs_have_no_gradient(self):
        block = small(form_of("mean"), 16, False)
        zeros, ones = np.zeros(3), np.ones(3)
        found = {"out": ones, "grad_q": zeros, "grad_v": ones}
        self.assertEqual(set(loading.without_unread(block, found)), {"out", "grad_v"})
        with self.assertRaisesRegex(loading.Disagreement, "grad_q is not zero"):
            loading.without_unread(block, {**found, "grad_q": ones})


@built
class OurSide(Sided):
    def test_the_catalogue_is_told_and_no_name_here_is_unknown_there(self):
        told = self.ours.ask("hello")["variants"]
        self.assertLessEqual(set(NAMES), set(told))
        self.assertEqual(sorted(NAMES, key=told.index), list(NAMES), "the catalogue's order")

    def test_the_peak(self):
        self.assertGreater(self.ours.ask("peak", threads=1)["fma_flops_per_s"], 1e8)
        with self.assertRaisesRegex(SideError, "threads: missing"):
            self.ours.ask("peak")

    def test_drawn_patterns_are_those_that_the_variant_attends_to(self):
        for block in small_blocks(("graph", "bigbird")):
            with self.subTest(block.title()):
                request = self.request(block)
                pattern = np.load(request["given"]["pattern"])
                n = block.length
                seen = np.zeros((block.heads, n, n), bool)
                if block.subject == "graph":
                    seen[:, pattern[0], pattern[1]] = True
                else:
                    size = block.params["block"]
                    at = np.arange(n) // size
                    seen = pattern[:, at][:, :, at]
                if block.causal:
                    seen &= np.tri(n, dtype=bool)
                q, k, v = (np.load(request[name]).astype(float) for name in "qkv")
                logits = np.where(seen, q @ k.swapaxes(-1, -2) / np.sqrt(block.head_dim), -np.inf)
                weights = np.exp(logits)
                expected = weights / weights.sum(-1, keepdims=True) @ v
                found = self.answers(self.ours, block, request)["forward"]
                self.assertLess(loading.difference(found, expected), 1e-6)


@built
@unittest.skipUnless(PEERS_PYTHON.exists(), "no .venv-peers: scripts/peers makes it")
class WithTheLibraries(Sided):
    def test_every_pytorch_form_agrees_with_ours(self):
        torch = start_peer("torch", PEERS_PYTHON, 1)
        self.addCleanup(torch.close)
        seen = set()
        for block in small_blocks():
            with self.subTest(block.title()):
                request = self.request(block)
                mine = self.answers(self.ours, block, request)
                found = loading.agreement(mine, self.answers(torch, block, request))
                learned = set(request["set"]) - set(request["frozen"])
                gradients = {f"grad_{name}" for name in (*block.reads, *learned)}
                self.assertEqual(set(found), {"forward", "out"} | gradients)
                seen.add(block.subject)
        self.assertEqual(seen, set(NAMES))

    def test_exact_attention_agrees_in_ggml(self):
        ggml = start_peer("ggml", PEERS_PYTHON, 1)
        self.addCleanup(ggml.close)
        block = small(form_of("full"), 50, False, ("ggml",))
        request = self.request(block)
        mine, theirs = (self.answers(side, block, request) for side in (self.ours, ggml))
        loading.agreement(mine, theirs, forward_only=True)
        for _ in range(3):  # the memory that it works in is not used up
            ggml.ask("forward", repeat=100)
        with self.assertRaisesRegex(SideError, "no linear in ggml"):
            linear = small(form_of("linear"), 50, False)
            loading.load(ggml, linear, self.request(linear))

    def test_masks_of_flex_attention_show_what_the_variant_sees(self):
        """The masks alone, without flex_attention: compiling takes longer than all other tests."""
        top, blocks = self.folder, []
        for block in small_blocks(("truncated", "local", "sparse", "longformer", "bigbird")):
            self.folder = top / str(len(blocks))
            self.folder.mkdir()
            request = self.request(block)
            blocks.append((block, request, self.answers(self.ours, block, request)["forward"]))
        done = subprocess.run(
            [PEERS_PYTHON, "-c", MASKED], input=json.dumps([request for _, request, _ in blocks]),
            capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(IMPORTED)},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        for (block, request, mine), line in zip(blocks, done.stdout.splitlines(), strict=True):
            with self.subTest(block.title()):
                self.assertLess(loading.difference(mine, np.array(json.loads(line))), 1e-6)
