"""Our side of scripts/peers, `attnbench peer`, against NumPy in double precision.

Variants with all gradients, and a whole training step with clipping and AdamW.
"""

from __future__ import annotations

import math
import os
import sys
from unittest import mock

import numpy as np

from attnbench.peers import loading, plan
from attnbench.peers.inputs import write_inputs
from attnbench.peers.plan import ADAMW, FEW, Block
from attnbench.peers.sides import Side, SideError, start_ours

from ..faults import BUILT, PROGRAM, InFolder


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def attention(q, k, v, seen):
    logits = np.where(seen, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    return softmax(logits) @ v


def kernel_attention(phi_q, phi_k, v, seen):
    weights = np.where(seen, phi_q @ phi_k.swapaxes(-1, -2), 0)
    return weights / weights.sum(-1, keepdims=True) @ v


def variant(block, a):
    """The block's forward, written plainly; `a` holds q, k, v and the weights as doubles."""
    i, j = np.ogrid[: block.length, : block.length]
    seen = j <= i if block.causal else np.full((block.length,) * 2, True)
    q, k, v = a["q"], a["k"], a["v"]
    if block.subject == "truncated":
        seen = seen & (abs(i - j) <= block.params["window"])
    if block.subject == "linformer":
        return attention(q, a["projection_k"] @ k, a["projection_v"] @ v, True)
    if block.subject == "linear":
        q, k = (np.where(x > 0, x + 1, np.exp(np.minimum(x, 0))) for x in (q, k))
        return kernel_attention(q, k, v, seen)
    if block.subject == "performer":

        def features(x):
            x = x * x.shape[-1] ** -0.25
            return np.exp(x @ a["omega"].swapaxes(-1, -2) - (x * x).sum(-1, keepdims=True) / 2)

        return kernel_attention(features(q), features(k), v, seen)
    return attention(q, k, v, seen)


SMALL = {"truncated": {"window": 3}, "linformer": {"rank": 4}, "performer": {"features": 16}}


def small_blocks():
    for name in FEW:
        for causal in (False, True) if name != "linformer" else (False,):
            yield Block(
                name,
                11,
                2,
                ("forward", "train"),
                ("torch",),
                0.1,
                causal,
                1,
                2,
                4,
                SMALL.get(name, {}),
            )


STEP = Block("step", 5, 1, ("step",), ("torch",), 0.1, batch=3, heads=2, head_dim=2, feed_forward=6)


def loss_of(weights, tokens, targets):
    """The encoder's cross-entropy in double precision, one head of one sequence after the other."""

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * weights[f"{name}.gain"] + weights[f"{name}.bias"]

    def gelu(x):
        return x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2

    loss = 0
    for ids, target in zip(tokens, targets):
        x = weights["input.tokens"][ids] + weights["input.positions"]
        for layer in range(plan.LAYERS):
            at = f"layers.{layer}."
            y = norm(x, at + "attention_norm")
            q, k, v = (np.split(y @ weights[f"{at}W_{name}"], STEP.heads, axis=1) for name in "qkv")
            heads = [attention(*one, True) for one in zip(q, k, v)]
            x = x + np.concatenate(heads, axis=1) @ weights[at + "W_o"]
            y = norm(x, at + "feed_forward_norm") @ weights[at + "feed_forward.hidden"]
            y = gelu(y + weights[at + "feed_forward.hidden_bias"])
            x = (
                x
                + y @ weights[at + "feed_forward.output"]
                + weights[at + "feed_forward.output_bias"]
            )
        logits = norm(x, "norm").mean(0) @ weights["head"] + weights["head_bias"]
        loss -= np.log(softmax(logits)[target]) / len(targets)
    return loss


@BUILT
class OurSide(InFolder):
    def setUp(self):
        super().setUp()
        self.side = start_ours(PROGRAM, 1)
        self.addCleanup(self.side.close)

    def test_every_variant_with_all_gradients(self):
        for block in small_blocks():
            with self.subTest(block.title()):
                inputs = write_inputs(block, self.folder, 0)
                paths = {**{x: inputs[x] for x in "qkv"}, **inputs["set"]}
                arrays = {name: np.load(path).astype(float) for name, path in paths.items()}
                upstream = np.load(inputs["grad_out"]).astype(float)
                loading.load(self.side, block, inputs)
                found = loading.answers(self.side, block, inputs, self.folder)
                for name in ("forward", "out"):
                    error = loading.difference(found.pop(name), variant(block, arrays))
                    self.assertLess(error, 1e-5)
                learned = [name for name in arrays if name != "omega"]
                self.assertEqual(set(found), {f"grad_{name}" for name in learned})
                for name in learned:  # the derivative along a random direction
                    way, step = np.random.default_rng(2).standard_normal(arrays[name].shape), 1e-6
                    ends = [
                        (
                            variant(block, {**arrays, name: arrays[name] + s * step * way})
                            * upstream
                        ).sum()
                        for s in (1, -1)
                    ]
                    expected = (ends[0] - ends[1]) / (2 * step)
                    got = (found[f"grad_{name}"] * way).sum()
                    self.assertLess(
                        abs(got - expected), 1e-4 * np.linalg.norm(found[f"grad_{name}"])
                    )

    def test_training_steps_with_clipping_and_adamw(self):
        """Two steps with an epsilon, a decay and a clipping that show in every weight."""
        settings = {"epsilon": 1e-2, "weight_decay": 1.0, "clip": 0.5, "learning_rate": 1e-2}
        inputs = {**write_inputs(STEP, self.folder, 0), **settings}
        loading.load(self.side, STEP, inputs)
        tokens, targets = (np.load(inputs[name]) for name in ("tokens", "targets"))
        files = [f for f in self.folder.glob("*.npy") if f.stem not in ("tokens", "targets")]
        weights = {file.stem: np.load(file).astype(float) for file in files}
        losses = self.side.ask("step", repeat=2)["losses"]
        written = self.folder / "after"
        written.mkdir()
        after = loading.written(self.side, written)
        self.assertEqual(after.keys(), weights.keys())
        mean = {name: 0 for name in weights}
        square = dict(mean)
        beta1, beta2, rate = ADAMW["beta1"], ADAMW["beta2"], settings["learning_rate"]
        for step in (1, 2):
            self.assertAlmostEqual(
                losses[step - 1], loss_of(weights, tokens, targets), delta=5e-6
            )
            gradients = self.gradients(weights, tokens, targets)
            norm = np.sqrt(sum((g * g).sum() for g in gradients.values()))
            self.assertGreater(norm, 1.2 * settings["clip"], "otherwise nothing is clipped")
            for name, weight in weights.items():
                g = gradients[name] * settings["clip"] / norm
                mean[name] = beta1 * mean[name] + (1 - beta1) * g
                square[name] = beta2 * square[name] + (1 - beta2) * g * g
                root = np.sqrt(square[name] / (1 - beta2**step)) + settings["epsilon"]
                decay = settings["weight_decay"] if weight.ndim >= 2 else 0
                weight -= rate * (decay * weight + mean[name] / (1 - beta1**step) / root)
        for name, weight in weights.items():
            self.assertLess(abs(after[name] - weight).max(), 1e-5, name)

    @staticmethod
    def gradients(weights, tokens, targets):
        """By central differences."""
        found = {}
        for name, weight in weights.items():
            found[name] = np.zeros_like(weight)
            for place in np.ndindex(*weight.shape):
                kept, ends = weight[place], []
                for change in (1e-5, -1e-5):
                    weight[place] = kept + change
                    ends.append(loss_of(weights, tokens, targets))
                weight[place] = kept
                found[name][place] = (ends[0] - ends[1]) / 2e-5
        return found

    def test_times_and_flops(self):
        block = next(small_blocks())
        reply = loading.load(self.side, block, write_inputs(block, self.folder, 0))
        self.assertEqual(reply["flops"]["forward"], 4 * 11**2 * 4 * 2)
        for mode in block.modes:
            seconds = self.side.ask(mode, warm=1, repeat=4)["seconds"]
            self.assertEqual(len(seconds), 4)
            self.assertTrue(all(0 < s < 5 for s in seconds))

    def test_a_wrong_request_is_answered_and_survived(self):
        for request in ({"do": "dance"}, {"do": "attention"}, {"do": "step"}, {"do": "forward"}):
            with self.assertRaises(SideError):
                self.side.ask(**request)
        self.assertEqual(self.side.ask("hello")["environment"]["cores"], os.cpu_count())

    def test_a_dead_side_is_an_error(self):
        side = Side("python", [sys.executable, "-c", "raise SystemExit('no such library')"], 1)
        self.addCleanup(side.close)
        with self.assertRaisesRegex(SideError, "no such library"):
            side.ask("hello")

    def test_a_side_that_says_nothing_in_time_is_an_error(self):
        side = Side("python", [sys.executable, "-c", "import time; time.sleep(60)"], 1)
        self.addCleanup(side.close)
        with mock.patch("attnbench.peers.sides.HELLO_S", 0.2):
            with self.assertRaisesRegex(SideError, "within 0.2 s"):
                side.ask("hello")
        with self.assertRaisesRegex(SideError, "ended"):
            side.ask("hello")

    def test_replies_are_checked(self):
        for reply in ("[]", "3", "not JSON", "{}", '{"seconds": []}', '{"seconds": [null]}'):
            side = Side("sh", ["sh", "-c", f"echo '{reply}'; cat >/dev/null"], 1)
            self.addCleanup(side.close)
            with self.assertRaisesRegex(SideError, "^sh answered 'forward' by"):
                side.ask("forward", repeat=1)
