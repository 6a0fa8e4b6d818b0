"""scripts/peers --variants decode: what takes part, numbers that every cache holds as they are, our side beside NumPy, and rows."""

from __future__ import annotations

import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

from attnbench.peers import loading, plan
from attnbench.peers.command import parsed
from attnbench.peers.inputs import cached, write_inputs
from attnbench.peers.plan import CACHES, Block, Wanted, blocks
from attnbench.peers.record import Ratio, Record, comparison
from attnbench.peers.session import Session, refusal
from attnbench.peers.sides import SideError, start_ours
from attnbench.peers.table import against, subject_text

from ..faults import BUILT, PROGRAM, InFolder
from .test_peers_session import PEERS_PYTHON
from .test_peers_side import softmax

LENGTH = 300
WANTED = Wanted((plan.DECODE,), plan.PEERS, (512,), (512,), (1,), quick=True, decode_lengths=(LENGTH,))
NEAR = {"float32": "float32", "bfloat16": "bfloat16", "int8": "q8_0", "int4": "q4_0"}  # whose bound holds
BLOCKS = {block.kv_dtype: block for block in blocks(WANTED)}


class Plan(unittest.TestCase):
    def test_each_type_meets_who_has_one_like_it(self):
        peers = {"float32": ("torch", "ggml"), "bfloat16": ("torch", "ggml"), "int8": ("ggml",), "int4": ("ggml",)}
        self.assertEqual({name: block.peers for name, block in BLOCKS.items()}, peers)
        self.assertEqual({block.length for block in BLOCKS.values()}, {LENGTH})
        self.assertEqual(list(blocks(WANTED.among(("jax", "onnxruntime")))), [])
        self.assertIsNone(refusal("ggml", BLOCKS["int8"], "decode"))

    def test_lengths_are_long_unless_given(self):
        for arguments, lengths in (([], {4096, 16384}), (["--lengths", "64"], {64})):
            _, wanted = parsed(["--variants", "decode", "-o", "/no/rows.jsonl", *arguments])
            self.assertEqual({block.length for block in blocks(wanted)}, lengths)


class Numbers(unittest.TestCase):
    """Block after block of 32 channels, whose scale is that of the formats."""

    def arrays(self, kv_dtype):
        for array in cached(BLOCKS[kv_dtype], np.random.default_rng(0)).values():
            yield array.reshape(-1, 32)

    def test_16_bits_lose_nothing(self):
        for kv_dtype in ("bfloat16", "int8", "int4"):
            for array in list(self.arrays(kv_dtype))[: 3 if kv_dtype == "bfloat16" else 1]:  # q at least
                np.testing.assert_array_equal(np.abs(array).max(1), 127 / 32)  # so that 8 bits hold q too
                np.testing.assert_array_equal(array * 32, np.round(array * 32))
                np.testing.assert_array_equal(array.astype(np.float16).astype(np.float32), array)
                self.assertFalse((array.view(np.uint32) & 0xFFFF).any())  # of bfloat16 the rest is 0

    def assert_held(self, array, scale, least, most):
        """Rounded as the formats do, nothing is lost."""
        self.assertGreater(len(np.unique(np.abs(scale))), 20)  # so that a wrong scale shows
        scale = np.where(scale == 0, np.float32(1), scale)
        np.testing.assert_array_equal(np.clip(np.round(array / scale), least, most) * scale, array)

    def assert_ours(self, scale):
        self.assertFalse((scale.view(np.uint32) & 0xFFFF).any())  # a bfloat16

    def assert_theirs(self, scale):
        np.testing.assert_array_equal(scale.astype(np.float16).astype(np.float32), scale)

    def test_8_bits_lose_nothing(self):
        _, k, v = self.arrays("int8")
        for array in (k, v):
            scale = np.abs(array).max(1, keepdims=True) / 127
            self.assert_ours(scale)
            self.assert_theirs(scale)
            self.assert_held(array, scale, -127, 127)
            self.assertGreater(len(np.unique(array / scale)), 200)  # of 255 levels

    def test_4_bits_lose_nothing_with_7_and_with_8_scales(self):
        _, k, v = self.arrays("int4")
        for array in (k, v):
            largest = array[np.arange(len(array)), np.abs(array).argmax(1)][:, None]
            self.assert_ours(np.abs(largest) / 7)
            self.assert_theirs(largest / -8)
            self.assert_held(array, np.abs(largest) / 7, -7, 7)
            self.assert_held(array, largest / -8, -8, 7)


@BUILT
class OurSide(InFolder):
    def setUp(self):
        super().setUp()
        self.side = start_ours(PROGRAM, 1)
        self.addCleanup(self.side.close)

    def test_each_level_of_4_bits_is_the_number_that_it_stands_for(self):
        """What int4 of ours holds beside 0 and the largest; ggml's q4_0 has no other number of these."""
        rng, block = np.random.default_rng(0), BLOCKS["int4"]
        inputs = write_inputs(block, self.folder, 0)
        q, *cache = (np.load(inputs[name]).astype(float) for name in "qkv")
        for name, old in zip("kv", cache, strict=True):
            whole = rng.integers(-7, 8, old.shape)
            whole[..., ::32] = 7  # of 32 channels, so that the scale is what is drawn
            scale = np.repeat(rng.integers(17, 48, (*old.shape[:-1], old.shape[-1] // 32)), 32, -1) / 128
            np.save(inputs[name], (whole * scale).astype(np.float32))
        k, v = (np.repeat(np.load(inputs[name]).astype(float), block.heads // block.kv_heads, axis=1) for name in "kv")
        loading.load(self.side, block, inputs)
        mine = loading.answers(self.side, block, inputs, self.folder)
        weights = softmax(q @ k.swapaxes(2, 3) / block.head_dim**0.5)
        loading.agreement(mine, {"decode": weights @ v}, cache="q4_0")
        other = {"decode": weights @ np.where(np.isclose(v * 128 % 3, 0) & (v > 0), v * 4 / 3, v)}  # some levels read wrongly
        with self.assertRaises(loading.Disagreement):
            loading.agreement(mine, other, cache="q4_0")

    def test_a_step_answers_as_exact_attention_and_again(self):
        for kv_dtype, block in BLOCKS.items():
            with self.subTest(kv_dtype):
                inputs = write_inputs(block, self.folder, 0)
                q, k, v = (np.load(inputs[name]).astype(float) for name in "qkv")
                k, v = (np.repeat(x, block.heads // block.kv_heads, axis=1) for x in (k, v))
                wanted = softmax(q @ k.swapaxes(2, 3) / block.head_dim**0.5) @ v
                flops = loading.load(self.side, block, inputs)["flops"]["decode"]
                self.assertEqual(flops, 4 * block.heads * LENGTH * block.head_dim)
                for _ in range(2):
                    mine = loading.answers(self.side, block, inputs, self.folder)
                    found = loading.agreement(mine, {"decode": wanted}, cache=NEAR[kv_dtype])
                    self.assertEqual(list(found), ["decode"])
                    self.side.ask("decode", warm=1, repeat=2)

    def test_what_is_wrong_is_told(self):
        with self.assertRaisesRegex(SideError, "'decode' before 'cache'"):
            self.side.ask("decode")
        inputs = write_inputs(BLOCKS["int8"], self.folder, 0)
        with self.assertRaisesRegex(SideError, "kv_dtype: 'int3' is unknown"):
            self.side.ask("cache", **{**inputs, "kv_dtype": "int3"})


class Rows(unittest.TestCase):
    def test_an_answer_beyond_its_type_is_no_agreement(self):
        ours = {"decode": np.ones((1, 8, 1, 128))}
        for cache, most in loading.MOST_DECODED.items():
            theirs = {"decode": ours["decode"] * (1 + 0.5 * most)}
            loading.agreement(ours, theirs, cache=cache)
            theirs = {"decode": ours["decode"] * (1 + 2 * most)}
            with self.assertRaisesRegex(loading.Disagreement, "decode differs by"):
                loading.agreement(ours, theirs, cache=cache)

    def test_a_row_names_both_types(self):
        block: Block = BLOCKS["int4"]
        with tempfile.TemporaryDirectory() as folder:
            record = Record(Path(folder, "rows.jsonl"))
            fields = {"agreement": {"decode": 1e-4}, "ours": [1.0], "theirs": [2.0], "ratio": Ratio(2.0, 1.9, 2.1, 0.95)}
            row = record.add("comparison", **comparison(block, "ggml", "decode", flops=1.0, **fields))
            record.close()
        self.assertEqual((subject_text(row), against(row)), ("full kv_dtype=int4", "ggml q4_0"))
        self.assertEqual((row["variant"], row["axes"]["kv_heads"]), ({"name": "full", "params": {}}, 2))


@BUILT
@unittest.skipUnless(PEERS_PYTHON.exists(), "no .venv-peers: scripts/peers makes it")
class WithTheLibraries(unittest.TestCase):
    def test_all_agree(self):
        with tempfile.TemporaryDirectory() as folder:
            record = Record(Path(folder, "rows.jsonl"))
            with Session(PROGRAM, PEERS_PYTHON, record, lambda _: None, 0) as session:
                for block in BLOCKS.values():
                    session.run(replace(block, budget_s=0), "")
            record.close()
        rows = record.comparisons()
        self.assertEqual([row["reason"] for row in rows if row["status"] == "failed"], [])
        wanted = [(kv_dtype, peer) for kv_dtype in CACHES for peer in CACHES[kv_dtype]]
        self.assertEqual([(row["axes"]["kv_dtype"], row["peer"]) for row in rows], wanted)
