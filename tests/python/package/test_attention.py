"""attention() on arrays of NumPy: against a plain formula, without copies, from several threads."""

from __future__ import annotations

import threading
import unittest

import numpy as np

import attnbench
from attnbench import _core


def arrays(*shape: int, dtype: type = np.float32, seed: int = 0) -> list[np.ndarray]:
    stream = np.random.default_rng(seed)
    return [stream.standard_normal(shape).astype(dtype) for _ in range(3)]


def softmax_attention(q, k, v, causal=False, kv_lengths=None):
    """The textbook's formula, one query after the other."""
    out = np.zeros_like(q)
    offset = k.shape[2] - q.shape[2]
    for batch, head, i in np.ndindex(q.shape[:3]):
        count = k.shape[2] if kv_lengths is None else kv_lengths[batch]
        count = min(count, i + offset + 1) if causal else count
        raised = np.exp(k[batch, head, :count] @ q[batch, head, i] / np.sqrt(q.shape[3]))
        out[batch, head, i] = raised @ v[batch, head, :count] / raised.sum()
    return out


class Values(unittest.TestCase):
    def test_float32_and_float64_are_computed_as_such(self) -> None:
        for dtype, allowed in ((np.float32, 1e-5), (np.float64, 1e-12)):
            q, k, v = arrays(2, 3, 37, 8, dtype=dtype)
            wanted = softmax_attention(*(x.astype(float) for x in (q, k, v)), True, [37, 20])
            out = attnbench.attention("full", q, k, v, causal=True, kv_lengths=[37, 20])
            self.assertEqual(out.dtype, dtype)
            self.assertLess(np.abs(out - wanted).max(), allowed)

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
        few = [x[:, :, :64].copy() for x in (q, k, v)]
        before = attnbench.attention("full", *few)
        few[2][:] = 0
        self.assertGreater(np.abs(before).max(), 0)
        self.assertEqual(np.abs(attnbench.attention("full", *few)).max(), 0)

    def test_an_output_is_shown_not_copied(self) -> None:
        q, k, v = arrays(1, 2, 8, 4)
        made = _core.forward("full", q, k, v, False, [], {}, 0, 1, False, "float32")
        self.assertEqual(made.output().ctypes.data, made.output().ctypes.data)  # one memory, shown twice

    def test_arrays_that_are_not_contiguous_are_copied(self) -> None:
        def misaligned(x: np.ndarray) -> np.ndarray:
            bytes_of = np.empty(x.nbytes + 1, np.uint8)
            at = bytes_of[1:].view(x.dtype).reshape(x.shape)
            at[:] = x
            return at

        def fixed(x: np.ndarray) -> np.ndarray:
            x.flags.writeable = False
            return x

        for form in (
            lambda x: x.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3),  # as models hold them
            lambda x: x[:, :, ::-1, ::-1].copy()[:, :, ::-1, ::-1],  # strides below 0
            lambda x: x[::-1],  # contiguous, since the batch is 1, with a stride below 0
            lambda x: np.repeat(x, 2, axis=2)[:, :, ::2],
            lambda x: np.asfortranarray(x),
            misaligned,
            fixed,
        ):
            for dtype in (np.float32, np.float64):
                given = arrays(1, 2, 24, 8, dtype=dtype)
                weights = {n: w.astype(dtype) for n, w in attnbench.initial_weights("linformer[rank=4]", 2, 8, 24).items()}
                wanted = attnbench.attention("linformer[rank=4]", *given, weights=weights)
                turned = {n: np.asfortranarray(w)[::-1][::-1] for n, w in weights.items()}
                found = attnbench.attention("linformer[rank=4]", *map(form, given), weights=turned)
                np.testing.assert_array_equal(found, wanted)
                self.assertTrue(found.flags.c_contiguous)
        one = np.broadcast_to(np.float32(0.5), (1, 2, 24, 8))  # strides of 0, read-only
        np.testing.assert_array_equal(attnbench.attention("full", one, one, one), one)

    def test_outputs_outlive_everything(self) -> None:
        out = attnbench.attention("full", *arrays(1, 1, 64, 8))
        copy = out.copy()
        for seed in range(20):
            attnbench.attention("full", *arrays(1, 1, 64, 8, seed=seed))
        np.testing.assert_array_equal(out, copy)


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
            try:
                attnbench.attention("full[kernel=materialized]", q, k, v, threads=1)
            finally:
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
        self.refuses("k is >f4; expected float32 or float64", "full", q, k.astype(">f4"), v)
        self.refuses("v is int16; expected float32 or float64", "full", q, k, v.astype(np.int16))
        self.refuses(r"k has shape \[1, 2, 0, 4\]; .* none of them 0", "full", q, k[:, :, :0], v[:, :, :0])
        self.refuses("k is float64, q is float32", "full", q, k.astype(float), v)
        self.refuses(r"q has shape \[2, 8, 4\]", "full", q[0], k[0], v[0])
        self.refuses("q is a list", "full", q.tolist(), k, v)
        self.refuses("nearest is 'full'", "ful", q, k, v)
        self.refuses("rank", "linformer[rnk=3]", q, k, v)
        self.refuses("linformer cannot be causal", "linformer", q, k, v, causal=True)
        self.refuses(r"outside \[0, 8\]", "full", q, k, v, kv_lengths=[9])
        self.refuses("expected one integer a batch entry", "full", q, k, v, kv_lengths=[0.5])
        self.refuses("no weight is named 'x'", "full", q, k, v, weights={"x": q})
        self.refuses("threads is 0; expected an integer in ", "full", q, k, v, threads=0)
