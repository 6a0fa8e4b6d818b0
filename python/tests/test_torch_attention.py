"""attention() on tensors of torch: against a plain formula and torch's autograd, without copies."""

from __future__ import annotations

import math
import unittest

import numpy as np

import attnbench
from attnbench import _core
from attnbench._arrays import query_key_value

from .test_attention import arrays

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None


def softmax_attention(q, k, v, causal=False, kv_lengths=None):
    """The textbook's formula in torch, of any dtype; torch's own gradients are behind it."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    keys = torch.arange(k.shape[2])
    seen = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        seen &= keys <= torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    if kv_lengths is not None:
        seen &= (keys < torch.tensor(kv_lengths)[:, None])[:, None, None]
    return scores.masked_fill(~seen, -math.inf).softmax(-1) @ v


class Values(unittest.TestCase):
    def test_tensors_give_tensors_and_cross_attention_is_aligned_at_the_end(self) -> None:
        q, k, v = (torch.from_numpy(x) for x in arrays(1, 2, 9, 4, dtype=np.float64))
        out = attnbench.attention("full", q[:, :, 4:].contiguous(), k, v, causal=True)
        self.assertIsInstance(out, torch.Tensor)
        torch.testing.assert_close(out, softmax_attention(q[:, :, 4:], k, v, True))

    def test_pointers_are_shared(self) -> None:
        q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))
        for tensor, array in zip((q, k, v), query_key_value(q, k, v)):
            self.assertEqual(tensor.data_ptr(), array.ctypes.data)
        made = _core.forward("full", *query_key_value(q, k, v), False, [], {}, 0, 1, False, False)
        out = torch.from_numpy(made.output())
        self.assertEqual(out.data_ptr(), made.output().ctypes.data)  # one memory, shown twice

    def test_each_fault_is_one_line(self) -> None:
        tensor = torch.zeros(1, 2, 8, 4)
        turned = tensor.transpose(1, 2)
        for words, q in (
            (r"q is not contiguous .*; pass q\.contiguous\(\)", turned),
            ("q, k and v are of two kinds", tensor.numpy()),
            ("q is float16", tensor.half()),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                attnbench.attention("full", q, tensor, tensor)


class Gradients(unittest.TestCase):
    def inputs(self, *shape: int) -> list[torch.Tensor]:
        return [torch.from_numpy(x).requires_grad_() for x in arrays(*shape, dtype=np.float64, seed=1)]

    def test_gradcheck_in_double(self) -> None:
        for spec, causal in (
            ("full", False),
            ("full", True),
            ("linear", True),
            ("performer[features=8]", False),
            ("truncated[window=2]", True),
        ):
            with self.subTest(spec=spec, causal=causal):
                inputs = self.inputs(1, 2, 6, 3)

                def call(q, k, v, spec=spec, causal=causal):
                    return attnbench.attention(spec, q, k, v, causal=causal)

                self.assertTrue(torch.autograd.gradcheck(call, inputs))

    def test_gradients_are_those_of_the_formula_with_padding(self) -> None:
        ours, theirs = self.inputs(2, 2, 21, 4), self.inputs(2, 2, 21, 4)
        seed = torch.from_numpy(arrays(2, 2, 21, 4, dtype=np.float64, seed=5)[0])
        attnbench.attention("full", *ours, True, [21, 7]).backward(seed)
        softmax_attention(*theirs, True, [21, 7]).backward(seed)
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one.grad, other.grad)

    def test_learned_weights_get_gradients(self) -> None:
        drawn = attnbench.initial_weights("linformer[rank=3]", 2, 4, 8)
        weights = {n: torch.from_numpy(w).double().requires_grad_() for n, w in drawn.items()}
        q, k, v = (x.detach() for x in self.inputs(1, 2, 8, 4))

        def call(*values):
            return attnbench.attention("linformer[rank=3]", q, k, v, weights=dict(zip(weights, values)))

        self.assertTrue(torch.autograd.gradcheck(call, tuple(weights.values())))

    def test_a_graph_that_is_kept_is_read_again(self) -> None:
        q, k, v = self.inputs(1, 1, 8, 4)
        out = attnbench.attention("full", q, k, v).sum()
        (first,) = torch.autograd.grad(out, q, retain_graph=True)
        (second,) = torch.autograd.grad(out, q)
        torch.testing.assert_close(first, second)

    def test_an_input_changed_before_backward_is_refused(self) -> None:
        q, k, v = self.inputs(1, 1, 8, 4)
        out = attnbench.attention("full", q, k, v)
        with torch.no_grad():
            v.zero_()
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            out.sum().backward()

    def test_without_gradients_nothing_is_recorded(self) -> None:
        q, k, v = (x.detach() for x in self.inputs(1, 1, 8, 4))
        self.assertFalse(attnbench.attention("full", q, k, v).requires_grad)


if __name__ == "__main__":
    unittest.main()
