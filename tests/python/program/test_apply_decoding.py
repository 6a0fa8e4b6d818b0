"""`attnbench apply --prompt N`: the answers of decoding on one's own arrays, and which positions its steps saw."""

from __future__ import annotations

import re

import numpy as np

from ..faults import BUILT, FaultCase

BATCH, HEADS, KV_HEADS, LENGTH, DIM = 2, 4, 2, 50, 8
PROMPT = 30
GROUP = HEADS // KV_HEADS


def softmax_over(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    logits = k @ q / np.sqrt(DIM)
    weights = np.exp(logits - logits.max())
    return weights @ v / weights.sum()


@BUILT
class ApplyDecoding(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        rng = np.random.default_rng(5)
        self.q = rng.normal(size=(BATCH, HEADS, LENGTH, DIM))
        self.k, self.v = rng.normal(size=(2, BATCH, KV_HEADS, LENGTH, DIM))

    def apply(self, variant: str, *words: str, dtype: str = "float64"):
        arrays = {"q": self.q, "k": self.k, "v": self.v}
        given = [word for name, array in arrays.items() for word in (f"--{name}", self.save(array.astype(dtype)))]
        return self.run_program("apply", "-v", variant, *given, "--out", "out.npy", *words)

    def decoded(self, variant: str, *words: str, prompt: int = PROMPT, dtype: str = "float64") -> tuple[np.ndarray, str]:
        done = self.apply(variant, "--prompt", str(prompt), *words, dtype=dtype)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return np.load(self.folder / "out.npy"), done.stdout

    def row(self, b: int, h: int, i: int, seen: np.ndarray) -> np.ndarray:
        return softmax_over(self.q[b, h, i], self.k[b, h // GROUP, seen], self.v[b, h // GROUP, seen])

    def refused(self, said: str, variant: str, *words: str) -> None:
        done = self.apply(variant, *words)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn(said, done.stderr)

    def test_a_cache_that_keeps_all_answers_as_the_forward(self) -> None:
        wanted = np.array([[[self.row(b, h, i, np.arange(i + 1)) for i in range(LENGTH)] for h in range(HEADS)] for b in range(BATCH)])
        for prompt in (0, PROMPT, LENGTH - 1):
            out, told = self.decoded("full", prompt=prompt)
            np.testing.assert_allclose(out, wanted, rtol=0, atol=1e-13)
            self.assertLess(float(re.search(r"against exact attention: (\S+)", told)[1]), 1e-13)
        np.testing.assert_allclose(self.decoded("full", dtype="float32")[0], wanted, rtol=0, atol=1e-5)

    def test_steps_answer_from_the_positions_that_are_told(self) -> None:
        for method, budget in (("sinks", 10), ("h2o", 10), ("tova", 10), ("norm", 0.25), ("snapkv", 10), ("quest", 32), ("random", 10)):
            for dtype, within in (("float64", 1e-13), ("float32", 1e-5)):
                with self.subTest(method=method, dtype=dtype):
                    out, told = self.decoded(f"full[evict={method},budget={budget}]", "--seen", "seen.npy", dtype=dtype)
                    seen = np.load(self.folder / "seen.npy")
                    self.assertEqual((seen.dtype, seen.shape[:3]), (np.int32, (BATCH, HEADS, LENGTH - PROMPT)))
                    self.assertGreater(float(re.search(r"against exact attention: (\S+)", told)[1]), 0.01)
                    for b, h, step in np.ndindex(*seen.shape[:3]):
                        own = seen[b, h, step][seen[b, h, step] >= 0]
                        i = PROMPT + step
                        self.assertTrue((np.diff(own) > 0).all() and own[-1] == i)
                        np.testing.assert_allclose(out[b, h, i], self.row(b, h, i, own), rtol=0, atol=within)
                    self.assertLess((seen[:, :, -1] >= 0).sum(-1).max(), LENGTH)
                    first = self.row(1, 3, PROMPT - 1, np.arange(PROMPT))  # a prompt is seen whole by its queries
                    np.testing.assert_allclose(out[1, 3, PROMPT - 1], first, rtol=0, atol=within)

    def test_what_is_kept_of_a_method_without_scores(self) -> None:
        self.decoded("full[evict=sinks,budget=10]", "--seen", "seen.npy")
        seen = np.load(self.folder / "seen.npy")
        for step in range(LENGTH - PROMPT):
            i = PROMPT + step
            wanted = [0, 1, 2, 3, *range(i - 6, i + 1)]
            np.testing.assert_array_equal(seen[:, :, step], np.broadcast_to(wanted, (BATCH, HEADS, 11)))

    def test_a_variant_with_a_state_answers_as_its_forward(self) -> None:
        self.k, self.v = (np.repeat(x, GROUP, axis=1) for x in (self.k, self.v))
        gate = self.save(np.random.default_rng(6).normal(size=self.q.shape))
        for variant, inputs in (("linear", []), ("gla", ["--input", f"decay={gate}"]), ("retention", [])):
            with self.subTest(variant):
                out, _ = self.decoded(variant, *inputs)
                self.assertEqual(self.apply(variant, "--causal", *inputs).returncode, 0)
                np.testing.assert_allclose(out, np.load(self.folder / "out.npy"), rtol=0, atol=1e-11)

    def test_the_error_is_that_of_the_steps(self) -> None:
        exact, _ = self.decoded("full")
        for prompt in (PROMPT, LENGTH - 1):
            out, told = self.decoded("full[evict=recent,budget=8]", prompt=prompt)
            steps = (out - exact)[:, :, prompt:]
            found = re.fullmatch(r"relative error of (\d+) steps against exact attention: (\S+)\n", told)
            self.assertEqual(int(found[1]), LENGTH - prompt)
            self.assertAlmostEqual(float(found[2]), np.linalg.norm(steps) / np.linalg.norm(exact[:, :, prompt:]), delta=1e-3)

    def test_of_a_forward_that_forgets_nothing_no_error_is_told(self) -> None:
        self.k = self.v = self.q
        for words in ([], ["--causal"]):
            done = self.apply("full[evict=h2o,budget=8]", *words)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(done.stdout, "no error against exact attention: full forgets while it decodes; add --prompt N to decode\n")

    def test_what_is_refused(self) -> None:
        evicting = "full[evict=h2o,budget=8]"
        self.refused("--prompt 50 is not valid; expected a whole number in 0..49", "full", "--prompt", "50")
        self.refused("--seen is of a cache that forgets, such as full[evict=h2o,budget=64]; that of full keeps", "full", "--prompt", "9", "--seen", "s.npy")
        self.refused("--grad-q: decoding has no gradients", evicting, "--prompt", "9", "--grad-q", "g.npy")
        self.refused("--seen ./out.npy: --out writes that file too; name another", evicting, "--prompt", "9", "--seen", "./out.npy")
        self.refused("--kv-lengths: sequences are decoded at one length", "full", "--prompt", "9", "--kv-lengths", self.save(np.array([50, 50])))
        self.refused("linformer cannot run here: cannot be causal", "linformer", "--prompt", "9")
        self.refused("--prompt: full decodes as kernel=tiled", "full[kernel=materialized]", "--prompt", "9")
        self.refused("they must agree in batch, heads and head_dim", "full")
        self.k, self.v = (x[:, :, :40] for x in (self.k, self.v))
        self.refused("with --prompt each position is a query and a key", "full", "--prompt", "9")
        self.k = self.v = np.repeat(self.q[:, :1], 3, axis=1)
        self.refused("the heads of queries must be a multiple of those of keys", "full", "--prompt", "9")
        self.k = self.v = self.q
        self.refused("--seen tells what the steps of decoding see; add --prompt N", evicting, "--seen", "s.npy")
