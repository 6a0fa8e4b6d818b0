"""attention() on tensors of torch: against a plain formula and torch's autograd, without copies."""

from __future__ import annotations

import math
import unittest
import warnings

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
        inputs, shared = query_key_value(q, k, v)
        for tensor, read, array in zip((q, k, v), inputs, shared):
            self.assertIs(tensor, read)
            self.assertEqual(tensor.data_ptr(), array.ctypes.data)
        made = _core.forward("full", *shared, False, [], {}, 0, 1, False, "float32")
        out = torch.from_numpy(made.output())
        self.assertEqual(out.data_ptr(), made.output().ctypes.data)  # one memory, shown twice

    def test_each_fault_is_one_line(self) -> None:
        tensor = torch.zeros(1, 2, 8, 4)
        for words, q in (
            ("q, k and v are of two kinds", tensor.numpy()),
            ("q is float16; expected float32, float64 or bfloat16", tensor.half()),
            ("q is torch.sparse_coo; expected a dense tensor", tensor.to_sparse()),
            ("q is on meta; expected a tensor on the cpu", tensor.to("meta")),
            ("k is float32, q is bfloat16; expected one dtype", tensor.bfloat16()),
            (r"q has shape \[1, 2, 0, 4\]; .* none of them 0", tensor[:, :, :0]),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                attnbench.attention("full", q, tensor, tensor)

    def test_tensors_that_are_not_contiguous_are_copied(self) -> None:
        inputs = [torch.from_numpy(x) for x in arrays(1, 2, 9, 4)]
        wanted = attnbench.attention("full", *inputs)
        for form in (
            lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),  # as models hold them
            lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
            lambda x: torch.complex(x, -x).conj().imag,  # a view that torch negates when it is read
        ):
            found = attnbench.attention("full", *map(form, inputs))
            self.assertTrue(torch.equal(found, wanted))
            self.assertTrue(found.is_contiguous())


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

    def test_gradients_flow_through_copies(self) -> None:
        inputs = self.inputs(1, 6, 2, 3)  # [batch, len, heads, head_dim]
        weights = {n: torch.from_numpy(w).double() for n, w in attnbench.initial_weights("linformer[rank=4]", 2, 3, 6).items()}
        turned = [w.mT.contiguous().requires_grad_() for w in weights.values()]

        def call(q, k, v, *turned):
            given = dict(zip(weights, (w.mT for w in turned)))
            return attnbench.attention("linformer[rank=4]", *(x.transpose(1, 2) for x in (q, k, v)), weights=given)

        self.assertTrue(torch.autograd.gradcheck(call, (*inputs, *turned)))
        call(*inputs, *turned).transpose(1, 2)[:, ::2].sum().backward()  # of the output in part
        self.assertEqual(inputs[0].grad.shape, inputs[0].shape)

    def test_weights_of_numpy_stand_beside_tensors(self) -> None:
        q, k, v = self.inputs(1, 2, 8, 4)
        drawn = {n: w.astype(float) for n, w in attnbench.initial_weights("linformer[rank=3]", 2, 4, 8).items()}
        given = {n: torch.from_numpy(w) for n, w in drawn.items()}
        wanted = attnbench.attention("linformer[rank=3]", q, k, v, weights=given)
        for array in drawn.values():
            array.flags.writeable = False
        turned = {n: w[::-1].copy()[::-1] for n, w in drawn.items()}
        for weights in (drawn, turned):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = attnbench.attention("linformer[rank=3]", q, k, v, weights=weights)
            self.assertTrue(torch.equal(found, wanted))
            self.assertTrue(found.requires_grad)

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


class BFloat16(unittest.TestCase):
    """Variants with the trait `bfloat16`, and one that widens."""

    def inputs(self) -> list[torch.Tensor]:
        return [torch.from_numpy(x).bfloat16() for x in arrays(2, 2, 64, 16)]

    def test_outputs_are_those_of_rounded_inputs(self) -> None:
        drawn = attnbench.initial_weights("linformer[rank=8]", 2, 16, 64)
        for spec, options in (
            ("full", {"causal": True, "kv_lengths": [64, 20]}),
            ("truncated[window=4]", {"causal": True}),
            ("linear", {}),
            ("linformer[rank=8]", {"weights": drawn}),
        ):
            with self.subTest(spec):
                given = self.inputs()
                out = attnbench.attention(spec, *given, **options)
                self.assertEqual(out.dtype, torch.bfloat16)
                wide = attnbench.attention(spec, *(x.float() for x in given), **options)
                # Of weights and outputs that have 8 bits: two roundings of 2^-9 each, of numbers up to max|v|.
                self.assertLess((out.float() - wide).abs().max(), 2 * 2**-9 * given[2].abs().max())
                turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in given]
                self.assertTrue(torch.equal(attnbench.attention(spec, *turned, **options), out))

    def test_a_variant_that_widens_rounds_the_output_alone(self) -> None:
        given = self.inputs()
        wide = attnbench.attention("linear", *(x.float() for x in given))
        self.assertTrue(torch.equal(attnbench.attention("linear", *given), wide.bfloat16()))

    def test_memory_is_shared(self) -> None:
        inputs = self.inputs()
        for tensor, array in zip(inputs, query_key_value(*inputs)[1]):
            self.assertEqual(tensor.data_ptr(), array.ctypes.data)

    def test_weights_are_float32_or_widened(self) -> None:
        drawn = {n: torch.from_numpy(w) for n, w in attnbench.initial_weights("linformer[rank=8]", 2, 16, 64).items()}
        rounded = {n: w.bfloat16() for n, w in drawn.items()}
        widened = {n: w.float() for n, w in rounded.items()}
        outs = [attnbench.attention("linformer[rank=8]", *self.inputs(), weights=w) for w in (rounded, widened)]
        self.assertTrue(torch.equal(*outs))
        for words, q, weights in (
            (r"weights\['.*'\] is float64, q is bfloat16; expected bfloat16 or float32", 0, {n: w.double() for n, w in drawn.items()}),
            (r"weights\['.*'\] is bfloat16, q is float32; expected one dtype", 1, rounded),
        ):
            given = [x.float() if q else x for x in self.inputs()]
            with self.assertRaisesRegex(attnbench.Error, words):
                attnbench.attention("linformer[rank=8]", *given, weights=weights)

    def test_gradients_are_refused_in_one_line(self) -> None:
        q, k, v = self.inputs()
        k.requires_grad_()
        with self.assertRaisesRegex(attnbench.Error, r"^k requires a gradient, and bfloat16 has no backward pass; pass float32, .*$"):
            attnbench.attention("full", q, k, v)
        with torch.no_grad():
            self.assertFalse(attnbench.attention("full", q, k, v).requires_grad)
