"""scripts/peers: inputs whose choices, of hashes, clusters, keys and blocks, do not hang on rounding."""

from __future__ import annotations

import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import numpy as np

from attnbench.peers import choices, inputs
from attnbench.peers.starts import gates_of

from .test_peers_variants import LENGTHS, form_of, small


class Choices(unittest.TestCase):
    def test_what_is_chosen_does_not_hang_on_rounding(self):
        """Scores written out in double: the last that is chosen and the next one lie apart."""

        def apart(scores, count):
            ranked = np.sort(scores[np.isfinite(scores)])[::-1]
            return np.inf if len(ranked) <= count else ranked[count - 1] - ranked[count]

        for name, seed in (("topk", 0), ("moba", 0), ("dsa", 0), ("csa", 0)):
            block = replace(small(form_of(name), 200, True), head_dim=4)
            x, w = self.drawn(block, seed)
            before = {key: array.copy() for key, array in x.items()}
            choices.CLEAR[name](block, x, w, self.normal)
            q, k = x["q"].astype(float), x["k"].astype(float)
            least = np.inf
            for b, h, i in np.ndindex(q.shape[:3]):
                if name == "topk":
                    scores, count = k[b, h, : i + 1] @ q[b, h, i], block.params["keys"]
                elif name == "moba":
                    size, count = block.params["block"], block.params["blocks"] - 1
                    means = k[b, h, : i // size * size].reshape(-1, size, block.head_dim).mean(1)
                    scores = means @ q[b, h, i]
                elif name == "dsa":
                    scores, count = self.indexed(block, q[b], k[b, :, : i + 1], w, i), 6
                else:
                    ended = (i + 1) // block.params["stride"]
                    rows = self.rows_of_blocks(block, k[b], w, b, ended)
                    scores, count = self.indexed(block, q[b], rows, w, i), 6
                least = min(least, apart(scores, count))
            self.assertGreater(least, 0.9 * choices.MARGIN, name)
            other = (x["q"] != before["q"]).any(-1).mean()
            self.assertTrue(0 < other < 0.5, f"{name}: some rows are others, most not: {other}")

    def indexed(self, block, q, k, w, i):
        """The lightning indexer's scores of some keys [heads, keys, head_dim] for query i."""
        keys = sum(k[h] @ w["index_key"][h].astype(float) for h in range(block.heads))
        keys = keys - keys.mean(1, keepdims=True)
        keys /= np.sqrt(keys.var(1, keepdims=True) + 1e-5)
        query = sum(q[h, i] @ w["index_query"][h] for h in range(block.heads)).reshape(2, -1)
        weight = 1 + sum(q[h, i] @ w["index_weight"][h] for h in range(block.heads))
        return weight @ np.maximum(query @ keys.T, 0)

    def rows_of_blocks(self, block, k, w, b, count):
        """The compressed keys of csa [heads, count, head_dim], one number after the other."""
        stride, d = block.params["stride"], block.head_dim
        rows = np.zeros((len(k), count, d))
        for h, row in np.ndindex(len(k), count):
            for c in range(d):
                terms, values = [], []
                for t in range(stride):
                    at = row * stride + t
                    terms.append(w["compress"][b, h, at, c] + w["position"][h, t, c])
                    values.append(k[h, at, c])
                    if row > 0:
                        before = w["compress"][b, h, at - stride, d + c]
                        terms.append(before + w["position"][h, stride + t, c])
                        values.append(k[h, at - stride, c])
                shares = np.exp(np.array(terms, float))
                rows[h, row, c] = shares @ np.array(values, float) / shares.sum()
            rows[h, row] *= w["norm_k"][h] / np.sqrt(np.square(rows[h, row]).mean() + 1e-6)
        return rows

    def drawn(self, block, seed):
        self.rng = np.random.default_rng(seed)
        made = inputs.WEIGHTS.get(block.subject, lambda _: {})(block)
        weights = {name: self.normal(*how) for name, how in made.items()}
        shape = (block.batch, block.heads, block.length, block.head_dim)
        for name, (width, *how) in gates_of(block).items():
            weights[name] = self.normal((*shape[:3], width), *how)
        return {name: self.normal(shape) for name in "qk"}, weights

    def normal(self, shape, scale=1.0, mean=0.0):
        return (mean + scale * self.rng.standard_normal(shape)).astype(np.float32)

    def test_clear_inputs_are_not_drawn_again(self):
        def refuse(shape):
            raise AssertionError(f"draws {shape}")

        for name, clear in choices.CLEAR.items():
            for length in LENGTHS:
                block = small(form_of(name), length, form_of(name).causal[-1])
                x, w = self.drawn(block, 1)
                if name in ("clustered", "improved_clustered", "yoso"):  # a row on a plane
                    x["q"][0, 0, 3] = 0
                    w["planes"][..., block.head_dim :] = 0
                    clear(block, x, w, self.normal)
                    self.assertTrue(x["q"][0, 0, 3].any(), name)
                else:
                    clear(block, x, w, self.normal)
                clear(block, x, w, refuse)

    def test_scores_that_are_close_at_the_border(self):
        scores = np.array([[3.0, 1, 2, 2 - 1e-6], [3, 1, 2, 2.5], [1, -np.inf, -np.inf, -np.inf]])
        for count, expected in ((1, (0, 0, 0)), (2, (1, 0, 0)), (3, (0, 0, 0)), (4, (0, 0, 0))):
            self.assertEqual(tuple(choices.close(scores, count)), expected, count)

    def test_biases_keep_relu_from_its_corner(self):
        block = small(form_of("induced"), 64, False)
        with tempfile.TemporaryDirectory() as folder:
            request = inputs.write_inputs(block, Path(folder), 0)
            for name in ("summarise_out_bias", "answer_out_bias"):
                values = np.load(request["set"][name])
                self.assertEqual(set(np.abs(values)), {choices.FAR})
                self.assertEqual(len(set(values)), 2, "both signs")
