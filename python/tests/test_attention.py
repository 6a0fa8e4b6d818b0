"""attention(): against a plain formula and torch's autograd, without copies, from several threads."""

from __future__ import annotations

import math
import threading
import unittest

import numpy as np
import torch

import attnbench
from attnbench import _core


def arrays(*shape: int, dtype: type = np.float32, seed: int = 0) -> list[np.ndarray]:
    stream = np.random.default_rng(seed)
    return [stream.standard_normal(shape).astype(dtype) for _ in range(3)]


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
    def test_float32_and_float64_are_computed_as_such(self) -> None:
        for dtype, allowed in ((np.float32, 1e-5), (np.float64, 1e-12)):
            q, k, v = arrays(2, 3, 37, 8, dtype=dtype)
            wanted = softmax_attention(*(torch.from_numpy(x).double() for x in (q, k, v)), True, [37, 20])
            out = attnbench.attention("full", q, k, v, causal=True, kv_lengths=[37, 20])
            self.assertEqual(out.dtype, dtype)
            self.assertLess(np.abs(out - wanted.numpy()).max(), allowed)

    def test_tensors_give_tensors_and_cross_attention_is_aligned_at_the_end(self) -> None:
        q, k, v = (torch.from_numpy(x) for x in arrays(1, 2, 9, 4, dtype=np.float64))
        out = attnbench.attention("full", q[:, :, 4:].contiguous(), k, v, causal=True)
        self.assertIsInstance(out, torch.Tensor)
        torch.testing.assert_close(out, softmax_attention(q[:, :, 4:], k, v, True))

    def test_parameters_of_the_spec_count(self) -> None:
        q, k, v = arrays(1, 1, 64, 8)
        narrow, wide = (attnbench.attention(f"truncated[window={w}]", q, k, v) for w in (2, 64))
        exact = attnbench.attention("full", q, k, v)
        self.assertLess(np.abs(wide - exact).max(), 1e-5)
        self.assertGreater(np.abs(narrow - exact).max(), 0.1)

    def test_weights_are_named_drawn_by_seed_and_replaced(self) -> None:
        q, k, v = arrays(1, 2, 32, 8)
        drawn = attnbench.initial_weights("linformer[rank=4]", 2, 8, 32, seed=3)
        self.assertTrue(drawn)
        by_seed = attnbench.attention("linformer[rank=4]", q, k, v, seed=3)
        given = attnbench.attention("linformer[rank=4]", q, k, v, weights=drawn)
        np.testing.assert_array_equal(by_seed, given)
        zero = {name: np.zeros_like(values) for name, values in drawn.items()}
        other = attnbench.attention("linformer[rank=4]", q, k, v, weights=zero)
        self.assertGreater(np.abs(other - given).max(), 1e-3)


class Memory(unittest.TestCase):
    def test_inputs_and_outputs_are_not_copied(self) -> None:
        """A pass over three arrays of 64 MiB, of a variant that needs little else, grows by the output alone. It is
        the first of its size, since the library keeps freed memory for the next one."""
        attnbench.attention("truncated[window=4]", *arrays(1, 1, 64, 64), threads=1)
        q, k, v = arrays(1, 1, 1 << 18, 64)
        kept = []

        def call() -> None:
            kept.append(attnbench.attention("truncated[window=4]", q, k, v, threads=1))

        grown = _core.resident_growth(call)
        self.assertGreater(grown, 0.9 * q.nbytes)
        self.assertLess(grown, 1.5 * q.nbytes)
        # What it reads is the memory of the caller: a change of it is seen, by the same call.
        tensors = [torch.from_numpy(x[:, :, :64].copy()) for x in (q, k, v)]
        before = attnbench.attention("full", *tensors)
        tensors[2].zero_()
        self.assertGreater(before.abs().max(), 0)
        self.assertEqual(attnbench.attention("full", *tensors).abs().max(), 0)

    def test_pointers_are_shared(self) -> None:
        from attnbench._arrays import query_key_value

        q, k, v = (torch.randn(1, 2, 8, 4) for _ in range(3))
        for tensor, array in zip((q, k, v), query_key_value(q, k, v)):
            self.assertEqual(tensor.data_ptr(), array.ctypes.data)
        made = _core.forward("full", *query_key_value(q, k, v), False, [], {}, 0, 1, False, False)
        out = torch.from_numpy(made.output())
        self.assertEqual(out.data_ptr(), made.output().ctypes.data)  # one memory, shown twice

    def test_outputs_outlive_everything(self) -> None:
        out = attnbench.attention("full", *arrays(1, 1, 64, 8))
        copy = out.copy()
        for seed in range(20):
            attnbench.attention("full", *arrays(1, 1, 64, 8, seed=seed))
        np.testing.assert_array_equal(out, copy)


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


class Threads(unittest.TestCase):
    def test_two_threads_compute_at_once_and_agree(self) -> None:
        q, k, v = arrays(1, 4, 1024, 64)
        wanted = attnbench.attention("full", q, k, v, threads=1)
        failures: list[object] = []

        def work() -> None:
            for _ in range(5):
                if not np.array_equal(attnbench.attention("full", q, k, v, threads=1), wanted):
                    failures.append("differs")

        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])

    def test_the_interpreter_runs_while_the_library_computes(self) -> None:
        q, k, v = arrays(1, 1, 6000, 64)
        done = threading.Event()
        turns = 0

        def work() -> None:
            attnbench.attention("full[kernel=materialized]", q, k, v, threads=1)
            done.set()

        worker = threading.Thread(target=work)
        worker.start()
        while not done.wait(0.001):
            turns += 1
        worker.join()
        self.assertGreater(turns, 20)  # under the lock there would be one turn or two


class Refusals(unittest.TestCase):
    def refuses(self, words: str, *arguments, **options) -> None:
        with self.assertRaises(attnbench.Error) as caught:
            attnbench.attention(*arguments, **options)
        self.assertRegex(str(caught.exception), words)
        self.assertNotIn("\n", str(caught.exception))

    def test_each_fault_is_one_line(self) -> None:
        q, k, v = arrays(1, 2, 8, 4)
        half = [x.astype(np.float16) for x in (q, k, v)]
        self.refuses("q is float16; expected float32 or float64", "full", *half)
        turned = q.transpose(0, 2, 1, 3)
        self.refuses("q is not contiguous .*ascontiguousarray", "full", turned, k, v)
        tensor = torch.from_numpy(q).transpose(1, 2)
        self.refuses("q is not contiguous .*contiguous", "full", tensor, tensor, tensor)
        self.refuses("k is float64, q is float32", "full", q, k.astype(float), v)
        self.refuses("of two kinds", "full", torch.from_numpy(q), k, v)
        self.refuses(r"q has shape \[2, 8, 4\]", "full", q[0], k[0], v[0])
        self.refuses("q is a list", "full", q.tolist(), k, v)
        self.refuses("nearest is 'full'", "ful", q, k, v)
        self.refuses("rank", "linformer[rnk=3]", q, k, v)
        self.refuses("linformer cannot be causal", "linformer", q, k, v, causal=True)
        self.refuses(r"outside \[0, 8\]", "full", q, k, v, kv_lengths=[9])
        self.refuses("expected one integer a batch entry", "full", q, k, v, kv_lengths=[0.5])
        self.refuses("no weight is named 'x'", "full", q, k, v, weights={"x": q})
        self.refuses("threads must be at least 1", "full", q, k, v, threads=0)


if __name__ == "__main__":
    unittest.main()
