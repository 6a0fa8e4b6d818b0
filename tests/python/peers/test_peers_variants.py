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
from attnbench.peers import choices, loading, plan
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
    "sinks": {"window": 9, "sinks": 2},
    "dilated": {"segment": 8, "levels": 3},
    "hierarchical": {"block": 4},
    "nystrom": {"landmarks": 7},
    "latent": {"latents": 5},
    "luna": {"latents": 5},
    "induced": {"latents": 3},
    "mla": {"latent": 6, "rotary": 4},
    "oracle_rank": {"rank": 5},
    "taylor": {"dim": 4},
    "clustered": {"clusters": 7, "bits": 12, "iterations": 3},
    "improved_clustered": {"clusters": 7, "keys": 5, "bits": 12, "iterations": 3},
    "yoso": {"hashes": 8, "bits": 3},
    "topk": {"keys": 5},
    "moba": {"block": 8, "blocks": 3},
    "dsa": {"keys": 6, "index_dim": 4},
    "nsa": {"block": 8, "blocks": 4, "window": 6, "compress_block": 4, "compress_stride": 2},
    "csa": {"stride": 3, "window": 6, "keys": 6, "index_dim": 4},
}
FLEX = (
    "truncated", "local", "sparse", "longformer", "bigbird", "sinks", "dilated", "softmax_one",
    "fox",
)  # fmt: skip
CHUNKED = (
    "gla", "mamba2", "deltanet", "gated_deltanet", "kda", "retention", "lightning", "hgrn2", "rwkv6",
    "rwkv7", "log_linear", "mesa", "path", "mlstm", "mamba", "s4d", "lru", "h3", "rg_lru",
    "long_conv", "hyena", "softcap",
    "linear", "luna", "gated_rfa", "yoso", "topk", "dsa", "moba", "nsa", "csa", "sigmoid", "talking_heads",
    "entmax",
)  # fmt: skip
LONGER = {"sinks": {"window": 150}, "memory_compressed": {}, "fox": {}}  # chunks of 128 and 256
LENGTHS = (51, 64)  # that fit no block, and all
# Exact attention under the masks and scores that flex_attention is given, for requests on stdin.
MASKED = """
import json, sys, torch
from attnbench.peers.in_flex import inputs_of, mask_of, score_of, with_sink
for request in json.load(sys.stdin):
    q, k, v = inputs_of(request)
    n = q.shape[2]
    k, v = with_sink(request, k), with_sink(request, v)
    b, h = torch.arange(len(q)).view(-1, 1, 1, 1), torch.arange(q.shape[1]).view(-1, 1, 1)
    i, j = torch.arange(n).view(-1, 1), torch.arange(k.shape[2])
    scores = q @ k.mT * q.shape[3] ** -0.5
    if change := score_of(request):
        scores = change(scores, b, h, i, j)
    seen = mask_of(request, n)(b, h, i, j)
    out = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
    print(json.dumps(out.tolist()))
"""
# Gradients where each chunk is made again for them, and where it is kept.
MADE_AGAIN = """
import torch
from attnbench.peers import torch_normalisers as of
torch.manual_seed(0)
x = [torch.randn(1, 2, 300, 8, requires_grad=True) for _ in range(3)]
gate, mixing = torch.randn(1, 2, 300, 1), torch.randn(2, 1, 2, 2)
for call in (lambda: of.sigmoid(*x), lambda: of.entmax(*x, causal=True), lambda: of.fox(*x, gate),
             lambda: of.talking_heads(*x, *mixing, causal=True)):
    found, calls = [], []
    of.checkpoint, made = lambda *a, **k: calls.append(a) or made(*a, **k), of.checkpoint
    for most in (1 << 27, 0):
        of.MOST_KEPT = most
        found.append(torch.autograd.grad(call().square().sum(), x))
        assert bool(calls) == (most == 0), calls
    of.checkpoint = made
    for kept, again in zip(*found):
        torch.testing.assert_close(again, kept)
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
            if form.name in CHUNKED:  # four chunks, the last one short
                yield small(form, 201, form.causal[-1])
            if form.name in LONGER:
                yield small(form, 300, True, **LONGER[form.name])
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
        [(name, why)] = plan.without_peer(["full", "unheard_of"]).items()
        self.assertEqual(name, "unheard_of")
        self.assertRegex(why, "^no peer: ")

    def test_a_peer_takes_part_where_it_can(self):
        wanted = plan.Wanted(plan.SUBJECTS, tuple(plan.TITLES), (512,), (512,), (1,), quick=False)
        found = {peer: set() for peer in plan.TITLES}
        for block in plan.blocks(wanted):
            for peer in block.peers:
                found[peer].add(block.subject)
        self.assertEqual(found["torch"], set(plan.SUBJECTS))
        self.assertEqual(found["flex"], set(FLEX))
        for peer in ("jax", "onnxruntime"):
            self.assertEqual(found[peer], {"full"})
        self.assertEqual(found["ggml"], {"full", "decode"})

    def test_lengths_that_take_minutes_are_left_out_with_the_reason(self):
        long, short = (small(form_of("additive"), n, False) for n in (4096, 2048))
        self.assertIn("above 2048", refusal("torch", long, "forward"))
        self.assertIsNone(refusal("torch", short, "train"))
        for peer in ("ggml", "flex"):
            self.assertIn("no backward pass", refusal(peer, short, "train"))

    def test_a_reason_of_its_own_stands_for_what_a_peer_cannot_do(self):
        longer = small(form_of("oracle_rank"), 513, False)
        self.assertIn("at most 512 positions", refusal("torch", longer, "forward"))
        self.assertIsNone(refusal("torch", small(form_of("oracle_rank"), 512, False), "train"))
        moba = small(form_of("moba"), 64, True)
        self.assertIn("breaks the graph", refusal("compiled", moba, "forward"))
        self.assertIsNone(refusal("torch", moba, "forward"))

    def test_mixers_have_one_head_of_the_full_width(self):
        for form in VARIANTS:
            block = plan.attention_block(form, 512, 1, ("torch",), False, False)
            self.assertEqual((block.width, block.heads == 1), (512, form.mixer), form.name)


class Arrays(unittest.TestCase):
    def test_no_score_of_relu_is_zero_or_rounded(self):
        rng = np.random.default_rng(0)
        for dim in (7, 8, 64):
            q, k = choices.clear_of_zero(*rng.standard_normal((2, 1, 1, 200, dim)))
            scores = q @ k.swapaxes(-1, -2)
            exact = q.astype(float) @ k.astype(float).swapaxes(-1, -2)
            self.assertTrue((scores == exact).all() and scores.all(), dim)
            self.assertLess(abs(q.std() - 1), 0.1)

    def test_no_hash_hangs_on_rounding(self):
        rng = np.random.default_rng(0)

        def normal(shape):
            return rng.standard_normal(shape).astype(np.float32)

        for buckets in (4, 130):
            first, second = choices.hash_shape(buckets)
            q, rotations = normal((2, 2, 500, 8)), normal((2, 3, first + second, 8))
            drawn = choices.clearly_hashed(q, rotations, buckets, normal)
            scores = np.einsum("bhnd,hrkd->bhnrk", drawn, rotations)
            for part in (scores[..., :first], scores[..., first:]):
                if part.shape[-1]:
                    both = np.sort(np.concatenate([part, -part], -1), -1)[..., -2:]
                    self.assertGreater(np.diff(both).min(), 0.9 * choices.HASH_MARGIN)
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
        self.assertEqual(set(plan.without_peer(told)), set(told) - set(NAMES))

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
                gates = [f"gate_{name}" for name in request["gates"]]
                gradients = {f"grad_{name}" for name in (*block.reads, *learned, *gates)}
                none = set(loading.GRADIENTLESS.get(block.subject, ())[:1])
                self.assertEqual(set(found), {"forward", "out"} | gradients - none)
                seen.add(block.subject)
        self.assertEqual(seen, set(NAMES))

    def test_chunks_that_are_made_again_have_the_same_gradients(self):
        done = subprocess.run(
            [PEERS_PYTHON, "-c", MADE_AGAIN], capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(IMPORTED)},
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)

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
        for block in small_blocks(FLEX):
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
