"""What `attnbench apply` reads, what it says of what it does not read, and against which exact attention it tells the error."""

from __future__ import annotations

import re

import numpy as np

from ..faults import BUILT, FaultCase

BATCH, HEADS, LENGTH, DIM = 2, 2, 6, 4
LENGTHS = np.array([4, 5])


@BUILT
class ApplyInputs(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        rng = np.random.default_rng(3)
        self.q, self.k, self.v, self.gate = (rng.normal(size=(BATCH, HEADS, LENGTH, DIM)) for _ in range(4))

    def apply(self, variant: str, *words: str, out: str = "out.npy", **arrays: np.ndarray):
        given = [word for name, array in arrays.items() for word in (f"--{name}", self.save(array))]
        return self.run_program("apply", "-v", variant, *given, "--out", out, *words)

    def ok(self, variant: str, *words: str, **arrays: np.ndarray):
        done = self.apply(variant, *words, **arrays)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def out(self, variant: str, *words: str, **arrays: np.ndarray) -> np.ndarray:
        self.ok(variant, *words, **arrays)
        return np.load(self.folder / "out.npy")

    def refused(self, said: str, variant: str, *words: str, **arrays: np.ndarray) -> None:
        done = self.apply(variant, *words, **arrays)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn(said, done.stderr)

    def spoiled(self, array: np.ndarray, value: float) -> np.ndarray:
        copy = array.copy()
        for b, length in enumerate(LENGTHS):
            copy[b, :, length:] = value
        return copy

    def test_padding_may_hold_anything(self) -> None:
        lengths = ["--kv-lengths", self.save(LENGTHS)]
        for variant, gates in (("full", ()), ("linear", ()), ("mla", ()), ("gla", ("decay",))):
            causal = ["--causal"] if variant == "gla" else []

            def run(value: float, variant=variant, gates=gates, causal=causal) -> np.ndarray:
                q, k, v, gate = (self.spoiled(a, value) for a in (self.q, self.k, self.v, self.gate))
                inputs = [word for name in gates for word in ("--input", f"{name}={self.save(gate)}")]
                return self.out(variant, *lengths, *causal, *inputs, q=q, k=k, v=v)

            plain = run(0)
            for value in (np.nan, np.inf):
                with self.subTest(variant=variant, value=value):
                    np.testing.assert_array_equal(run(value), plain)

    def test_what_is_no_padding_must_be_finite(self) -> None:
        lengths = ["--kv-lengths", self.save(LENGTHS)]
        arrays = {"q": self.q, "k": self.k, "v": self.v}
        for name in "qkv":
            broken = arrays[name].copy()
            broken[1, 1, 4, 2] = np.nan  # the last valid position of the second sequence
            self.refused("value nan at flat index 90; expected finite numbers before the padding", "full", *lengths, **{**arrays, name: broken})
            self.refused(f"--{name} ", "full", **{**arrays, name: self.spoiled(arrays[name], np.inf)})
        # Of cross-attention, no query is padding.
        longer = np.concatenate([self.q, np.full_like(self.q, np.nan)], axis=2)
        self.refused("--q ", "full", *lengths, **{**arrays, "q": longer})

    def test_what_is_not_read_is_not_demanded(self) -> None:
        alone = self.ok("mla", "--causal", v=self.v)
        self.assertEqual(alone.stderr, "")
        out = np.load(self.folder / "out.npy")
        beside = self.ok("mla", "--causal", q=self.q, k=np.full_like(self.k, np.nan), v=self.v)
        self.assertEqual(beside.stderr, "mla reads no queries and keys: of --q and --k the shape alone counts\n")
        np.testing.assert_array_equal(np.load(self.folder / "out.npy"), out)
        self.refused("apply needs --q FILE.npy", "full", k=self.k, v=self.v)
        self.refused("apply needs --k FILE.npy", "full", q=self.q, v=self.v)
        self.ok("reformer", q=self.q, v=self.v)  # its queries are its keys
        self.refused("apply needs --q FILE.npy", "reformer", k=self.k, v=self.v)

    def test_the_error_names_its_exact_attention(self) -> None:
        arrays = {"q": self.q, "k": self.k, "v": self.v}
        hidden = self.ok("sinks", **arrays)  # its window is longer than the sequence
        self.assertRegex(hidden.stdout, r"\Arelative error against causal exact attention: [0-9.]+e-(0[89]|1\d)\n\Z|causal exact attention: 0.000e\+00")
        self.assertEqual(hidden.stderr, "sinks hides the future without --causal too: exact attention here is the causal one\n")
        told = self.ok("sinks", "--causal", **arrays)
        self.assertEqual(told.stderr, "")
        self.assertTrue(told.stdout.startswith("relative error against exact attention: "))
        other = self.ok("truncated[window=1]", **arrays)
        self.assertGreater(float(re.search(r"against exact attention: (\S+)", other.stdout)[1]), 0.1)

    def test_causal_alone_says_the_option(self) -> None:
        for variant in ("moba", "dsa"):
            self.refused(f"{variant} cannot run here: defined for causal attention alone; add --causal", variant, q=self.q, k=self.k, v=self.v)
            self.ok(variant, "--causal", q=self.q, k=self.k, v=self.v)
        done = self.run_program("run", "-v", "moba", "--length", "16", "-n")
        self.assertIn("skipped: defined for causal attention alone; add --causal true", done.stdout)
        done = self.run_program("run", "-v", "moba", "--length", "16", "-n", "--causal", "true")
        self.assertIn(" 0 skipped", done.stderr)

    def test_a_reason_names_the_variant_once(self) -> None:
        keys = self.k[:, :, :4]
        self.refused("cosformer cannot run here: 6 queries are more than the 4 keys", "cosformer", q=self.q, k=keys, v=keys)
        seen = np.arange(6)[:, None] - 2 - np.arange(4)[None, :]  # aligned at the end
        weights = np.einsum("bhid,bhjd->bhij", np.maximum(self.q, 0), np.maximum(keys, 0)) * np.cos(np.pi * seen / 12)
        total = weights.sum(-1, keepdims=True)
        wanted = np.divide(weights @ self.v[:, :, :4], total, out=np.zeros_like(self.q), where=total > 0)
        found = self.out("cosformer[span=6]", q=self.q, k=keys, v=self.v[:, :, :4])
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)

    def test_an_empty_array_is_said_to_be_empty(self) -> None:
        for shape in ((2, 3, 0, 4), (2, 3, 5, 0), (0, 3, 5, 4)):
            empty = np.zeros(shape)
            self.refused("has an empty dimension", "full", q=empty, k=empty, v=empty)

    def test_a_folder_that_is_made_is_told(self) -> None:
        arrays = {"q": self.q, "k": self.k, "v": self.v}
        first, again = (self.apply("full", out="new/deep/o.npy", **arrays) for _ in range(2))
        self.assertEqual((first.returncode, first.stderr), (0, "made the folder 'new/deep'\n"))
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual(np.load(self.folder / "new/deep/o.npy").shape, self.q.shape)
