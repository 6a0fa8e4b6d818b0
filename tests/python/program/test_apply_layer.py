"""`attnbench apply --scope layer`: layers written out in NumPy, weights by name, and what is refused."""

from __future__ import annotations

import numpy as np

from ..faults import BUILT, FaultCase

BATCH, LENGTH, WIDTH, HEADS = 2, 7, 8, 2
DIM = WIDTH // HEADS


def silu(x):
    return x / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(x))


def heads_of(rows, heads=HEADS):
    return rows.reshape(*rows.shape[:2], heads, -1).swapaxes(1, 2)


def rows_of(heads):
    heads = heads.swapaxes(1, 2)
    return heads.reshape(*heads.shape[:2], -1)


def attention_layer(x, w, causal=True):
    q, k, v = (heads_of(x @ w[f"W_{name}"]) for name in "qkv")
    logits = q @ k.swapaxes(2, 3) / np.sqrt(DIM)
    if causal:
        logits = np.where(np.tri(x.shape[1], dtype=bool), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return rows_of(weights / weights.sum(-1, keepdims=True) @ v) @ w["W_o"]


def convolved(rows, taps, bias):
    padded = np.pad(rows, ((0, 0), (len(taps) - 1, 0), (0, 0)))
    return silu(sum(tap * padded[:, i : i + rows.shape[1]] for i, tap in enumerate(taps)) + bias)


def mamba2_layer(x, w):
    """Dao and Gu 2024, figure 6: one head of B and C, 2 · HEADS of x, and the norm after the gate."""
    read, write, values = (convolved(x @ w[f"W_{n}"], w[f"{n}.convolution"], w[f"{n}.convolution.bias"]) for n in "qkv")
    values, step = heads_of(values, 2 * HEADS), softplus(x @ w["gate.dt"] + w["gate.dt.bias"])
    state = np.zeros((BATCH, 2 * HEADS, DIM, DIM))
    out = np.zeros_like(values)
    for t in range(x.shape[1]):
        delta = step[:, t, :, None, None]
        written = write[:, t, None, :, None] * values[:, :, t, None, :]
        state = np.exp(-np.exp(w["mixer.A_log"])[:, None, None] * delta) * state + delta * written
        out[:, :, t] = np.einsum("bc,bhcj->bhj", read[:, t], state) + w["D"][:, None] * values[:, :, t]
    gated = rows_of(out) * silu(x @ w["gate"])
    return gated / np.sqrt((gated**2).mean(-1, keepdims=True) + 1e-5) * w["norm.gain"] @ w["W_o"]


@BUILT
class ApplyLayer(FaultCase):
    def setUp(self) -> None:
        super().setUp()
        self.rng = np.random.default_rng(11)
        self.x = self.rng.normal(size=(BATCH, LENGTH, WIDTH))

    def layer(self, *words: str, heads: int | None = HEADS, variant: str = "mamba2", out: bool = True):
        more = [] if heads is None else ["--heads", str(heads)]
        more += ["--out", "out.npy"] if out else []
        return self.run_program("apply", "--scope", "layer", "-v", variant, *more, *words)

    def listed(self, variant: str, block: str) -> dict[str, tuple[int, ...]]:
        done = self.layer("--list-weights", "--block", block, "--x", self.save(self.x), "--causal", variant=variant, out=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [line.split("[") for line in done.stdout.splitlines()[1:]]
        return {line[0].strip(): tuple(int(n) for n in line[1].split("]")[0].split(",")) for line in lines}

    def set_weights(self, weights: dict[str, np.ndarray]) -> list[str]:
        return [word for name, array in weights.items() for word in ("--set", f"{name}={self.save(array)}")]

    def test_layers_are_what_their_equations_say(self) -> None:
        for variant, block, written in (("full", "mixer", attention_layer), ("mamba2", "paper", mamba2_layer)):
            weights = {name: self.rng.normal(size=shape) / 2 for name, shape in self.listed(variant, block).items()}
            want = written(self.x, weights)
            upstream = self.rng.normal(size=self.x.shape)
            for dtype, allowed in ((np.float64, 1e-12), (np.float32, 1e-5)):
                with self.subTest(variant=variant, dtype=dtype.__name__):
                    cast = {name: array.astype(dtype) for name, array in weights.items()}
                    words = ["--x", self.save(self.x.astype(dtype)), "--grad-out", self.save(upstream.astype(dtype)), "--grad-x", "grad.npy"]
                    done = self.layer(*words, *self.set_weights(cast), "--block", block, "--causal", variant=variant)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(done.stdout, f"weights: {len(weights)} of {len(weights)} set\n")
                    found = np.load(self.folder / "out.npy")
                    self.assertEqual(found.dtype, dtype)
                    self.assertLess(np.abs(found - want).max(), allowed * np.abs(want).max())
                    direction = self.rng.normal(size=self.x.shape)
                    ends = [(written(self.x + sign * 1e-5 * direction, weights) * upstream).sum() for sign in (1, -1)]
                    slope = (np.load(self.folder / "grad.npy") * direction).sum()
                    self.assertAlmostEqual(slope, (ends[0] - ends[1]) / 2e-5, delta=1e-2 * max(1, abs(slope)))

    def test_weights_that_are_not_set_are_told_and_drawn_by_seed(self) -> None:
        outputs = []
        for seed in ("1", "1", "2"):
            done = self.layer("--x", self.save(self.x), "--causal", "--seed", seed, "--block", "paper")
            self.assertRegex(done.stdout, rf"^weights: 0 of 16 set; as they start, by seed {seed}: W_q, .*mixer\.A_log\n$")
            outputs.append(np.load(self.folder / "out.npy"))
        np.testing.assert_array_equal(outputs[0], outputs[1])
        self.assertGreater(np.abs(outputs[0] - outputs[2]).max(), 1e-3)

    def test_the_spec_may_name_the_block(self) -> None:
        words = ("--x", self.save(self.x), "--causal")
        self.assertEqual(self.layer(*words, "--block", "paper").returncode, 0)
        want = np.load(self.folder / "out.npy")
        self.assertEqual(self.layer(*words, variant="mamba2[block=paper]").returncode, 0)
        np.testing.assert_array_equal(np.load(self.folder / "out.npy"), want)

    def test_padding_may_hold_anything(self) -> None:
        lengths = ["--kv-lengths", self.save(np.array([4, LENGTH]))]
        for variant, block in (("full", "mixer"), ("linear", "mixer"), ("mamba2", "paper")):
            outputs = []
            for value in (0, 7, 3e300, np.nan):
                x = self.x.copy()
                x[0, 4:] = value
                words = [*lengths, "--block", block, *(["--causal"] if block == "paper" else [])]
                self.assertEqual(self.layer("--x", self.save(x), *words, variant=variant).returncode, 0)
                outputs.append(np.load(self.folder / "out.npy"))
            for other in outputs[1:]:
                with self.subTest(variant=variant):
                    np.testing.assert_array_equal(outputs[0][0, :4], other[0, :4])
                    np.testing.assert_array_equal(outputs[0][1], other[1])
            x = self.x.copy()
            x[0, 3] = 7  # and a valid row is read
            self.assertEqual(self.layer("--x", self.save(x), *words, variant=variant).returncode, 0)
            self.assertFalse(np.array_equal(np.load(self.folder / "out.npy")[0, :4], outputs[0][0, :4]))

    def refused(self, said: str, *words: str, **options) -> None:
        done = self.layer(*words, **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn(said, done.stderr)
        self.assertFalse((self.folder / "out.npy").exists())

    def test_what_does_not_fit_is_refused_in_one_line(self) -> None:
        x = ["--x", self.save(self.x)]
        causal, paper = [*x, "--causal"], [*x, "--causal", "--block", "paper"]
        square = self.save(np.zeros((WIDTH, WIDTH)))
        broken = self.x.copy()
        broken[1, 2, 3] = np.nan
        for said, words, options in (
            ("needs --x", [], {}),
            ("needs --heads", x, {"heads": None}),
            ("--heads 3: the width 8 of --x is no multiple", causal, {"heads": 3}),
            ("--heads", causal, {"heads": 0}),
            ("needs --out", causal, {"out": False}),
            ("--q is of --scope attention; a layer reads --x", [*x, "--q", square], {}),
            ("--input is of --scope attention; a layer projects its gates", [*x, "--input", f"dt={square}"], {}),
            ("shape [8, 8]; expected [batch, len, width]", ["--x", square], {}),
            ("expected float32", ["--x", self.save(self.x.astype(np.int32))], {}),
            ("value nan at flat index 75", ["--x", self.save(broken)], {}),
            ("--set W_Q: no such weight; nearest is 'W_q'", [*paper, "--set", f"W_Q={square}"], {}),
            ("--set W_q: the array is [8, 8], the weight is [8, 4]", [*paper, "--set", f"W_q={square}"], {}),
            ("--set A_log: no such weight; nearest is 'mixer.A_log'", [*paper, "--set", f"A_log={square}"], {}),
            ("--block", [*causal, "--block", "papers"], {}),
            ("contradicts", [*causal, "--block", "mixer"], {"variant": "mamba2[block=paper]"}),
            ("add --causal", x, {"variant": "dsa"}),
            ("--grad-out and --grad-x need each other", [*causal, "--grad-x", "grad.npy"], {}),
            ("every dimension", [*causal, "--grad-x", "grad.npy", "--grad-out", self.save(self.x[:1])], {}),
            ("one type for all arrays", [*causal, "--grad-x", "g.npy", "--grad-out", self.save(self.x.astype(np.float32))], {}),
            ("stack of layers", causal, {"variant": "full+mamba2"}),
        ):
            with self.subTest(said):
                self.refused(said, *words, **options)
        for option, value in (("x", square), ("heads", "2"), ("block", "paper"), ("grad-x", "g.npy")):
            done = self.run_program("apply", "-v", "full", f"--{option}", value, "--v", square, "--out", "out.npy")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(f"--{option} is of a layer; add --scope layer", done.stderr)
