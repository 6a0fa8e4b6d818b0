"""`attnbench apply` against attention written independently in double-precision NumPy, outputs and gradients.

Every variant x {causal, not} x {padding, none} x {self, cross}, where the variant supports it; weights are set by --set, so that
both sides hold the same ones. Gradients are central differences of the NumPy forward.

`attnbench apply` on the user's own gates: outputs and gradients against NumPy, and what is refused.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from ..faults import BUILT, PROGRAM, InFolder

BATCH, HEADS, DIM = 2, 2, 4
RANK, FEATURES, WINDOW = 3, 12, 2


def visible(q_len: int, kv_len: int, causal: bool, lengths) -> np.ndarray:
    """[batch, 1, q_len, kv_len]: query i sees key j."""
    j = np.arange(kv_len)
    seen = np.ones((q_len, kv_len), bool)
    if causal:
        seen = j[None, :] <= np.arange(q_len)[:, None] + kv_len - q_len
    valid = np.ones((BATCH, kv_len), bool) if lengths is None else j[None, :] < lengths[:, None]
    return seen[None, None] & valid[:, None, None, :]


def softmax_rows(logits, seen):
    """Rows that see nothing give zeros."""
    seen = np.broadcast_to(seen, logits.shape)
    top = np.max(np.where(seen, logits, -np.inf), -1, keepdims=True)
    weights = np.where(seen, np.exp(logits - np.where(np.isfinite(top), top, 0)), 0)
    total = weights.sum(-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def scores(q, k):
    return np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1])


def full(q, k, v, seen, weights):
    return softmax_rows(scores(q, k), seen) @ v


def truncated(q, k, v, seen, weights):
    offset = k.shape[2] - q.shape[2]  # aligned at the end
    distance = np.arange(k.shape[2])[None, :] - (np.arange(q.shape[2])[:, None] + offset)
    return softmax_rows(scores(q, k), seen & (np.abs(distance) <= WINDOW)) @ v


def linformer(q, k, v, seen, weights):
    valid = seen.any(axis=2)[:, :, :, None]  # [batch, 1, kv_len, 1]: this variant is never causal
    keys = weights["projection_k"][None, :, :, : k.shape[2]] @ np.where(valid, k, 0)
    values = weights["projection_v"][None, :, :, : k.shape[2]] @ np.where(valid, v, 0)
    return softmax_rows(scores(q, keys), np.ones((1, 1, 1, 1), bool)) @ values


def kernelised(phi_q, phi_k, v, seen):
    weights = np.where(seen, np.einsum("bhim,bhjm->bhij", phi_q, phi_k), 0)
    total = weights.sum(-1, keepdims=True)
    return np.divide(
        weights @ v, total, out=np.zeros(weights.shape[:-1] + v.shape[-1:]), where=total > 0
    )


def performer(q, k, v, seen, weights, relu=False):
    omega = weights["omega"]

    def features(x):
        if not relu:
            x = x * x.shape[-1] ** -0.25
        projected = np.einsum(
            "bhid,hmd->bhim", x, np.broadcast_to(omega, (HEADS,) + omega.shape[1:])
        )
        if relu:
            return np.maximum(projected, 0) + 1e-3
        return np.exp(projected - (x * x).sum(-1, keepdims=True) / 2)

    return kernelised(features(q), features(k), v, seen)


def linear(q, k, v, seen, weights):
    def features(x):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))

    return kernelised(features(q), features(k), v, seen)


VARIANTS = {
    "full": full,
    "full[kernel=materialized]": full,
    f"truncated[window={WINDOW}]": truncated,
    f"linformer[rank={RANK},share_heads=false,share_kv=false]": linformer,
    f"performer[features={FEATURES}]": performer,
    f"performer[features={FEATURES},kernel=relu]": lambda *a: performer(*a, relu=True),
    "linear": linear,
}


def gradient(forward, array, upstream):
    """Central differences. No head reads another one: a step is taken in all of them at once."""
    result, step = np.zeros_like(array), 1e-5
    for index in np.ndindex(*array.shape[2:]):
        place = (slice(None), slice(None), *index)
        kept = array[place].copy()
        array[place] = kept + step
        above = (forward() * upstream).sum((2, 3))
        array[place] = kept - step
        below = (forward() * upstream).sum((2, 3))
        array[place] = kept
        result[place] = (above - below) / (2 * step)
    return result


def relative(a, b):
    return np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)


@BUILT
class Apply(unittest.TestCase):
    def weights_of(self, rng, variant, kv_len):
        if variant.startswith("linformer"):
            return {
                name: rng.normal(size=(HEADS, RANK, kv_len)) / 2
                for name in ("projection_k", "projection_v")
            }
        if variant.startswith("performer"):
            listed = subprocess.run(
                [PROGRAM, "info", variant, "--json"], capture_output=True, text=True, check=True
            )
            shared = '"shape": [\n        1,' in listed.stdout
            return {"omega": rng.normal(size=(1 if shared else HEADS, FEATURES, DIM))}
        return {}

    def compare(self, variant, causal, padding, cross, dtype):
        rng = np.random.default_rng(7)
        q_len, kv_len = (5, 9) if cross else (9, 9)
        q, k, v = (
            rng.normal(size=(BATCH, HEADS, n, DIM)).astype(dtype) for n in (q_len, kv_len, kv_len)
        )
        upstream = rng.normal(size=q.shape).astype(dtype)
        weights = self.weights_of(rng, variant, kv_len)
        lengths = np.array([6, 0]) if padding else None
        with tempfile.TemporaryDirectory() as folder:
            files = {"q": q, "k": k, "v": v, "grad-out": upstream}
            command = [PROGRAM, "apply", "--variant", variant]
            for name, array in files.items():
                np.save(f"{folder}/{name}.npy", array)
                command += [f"--{name}", f"{folder}/{name}.npy"]
            for name, array in weights.items():
                np.save(f"{folder}/{name}.npy", array)
                command += ["--set", f"{name}={folder}/{name}.npy"]
            if causal:
                command.append("--causal")
            if padding:
                np.save(f"{folder}/lengths.npy", lengths)
                command += ["--kv-lengths", f"{folder}/lengths.npy"]
            for name in ("out", "grad-q", "grad-k", "grad-v"):
                command += [f"--{name}", f"{folder}/{name}.result.npy"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 2 and "cannot run here" in done.stderr:
                return False
            self.assertEqual(done.returncode, 0, done.stderr)
            found = {
                name: np.load(f"{folder}/{name}.result.npy")
                for name in ("out", "grad-q", "grad-k", "grad-v")
            }
        self.assertEqual(found["out"].dtype, dtype)
        q, k, v, upstream = (a.astype(np.float64) for a in (q, k, v, upstream))
        seen = visible(q_len, kv_len, causal, lengths)
        forward = lambda: VARIANTS[variant](q, k, v, seen, weights)  # noqa: E731
        self.assertLessEqual(relative(found["out"], forward()), 1e-5)
        for name, array in (("grad-q", q), ("grad-k", k), ("grad-v", v)):
            self.assertLessEqual(
                relative(found[name], gradient(forward, array, upstream)), 1e-4, name
            )
        return True

    def test_every_variant_and_mask(self):
        ran = set()
        for variant, causal, padding, cross in itertools.product(VARIANTS, *[(False, True)] * 3):
            for dtype in (np.float32, np.float64):
                with self.subTest(
                    variant=variant,
                    causal=causal,
                    padding=padding,
                    cross=cross,
                    dtype=dtype.__name__,
                ):
                    if self.compare(variant, causal, padding, cross, dtype):
                        ran.add((variant.split("[")[0], causal, cross))
        # What the maths allows must not hide behind "cannot run here".
        for variant in ("full", "truncated", "performer", "linear"):
            self.assertIn((variant, True, False), ran)
        for variant in ("full", "truncated", "linformer", "performer", "linear"):
            self.assertIn((variant, False, False), ran)
            self.assertIn((variant, False, True), ran)

    def refused(self, expected, *arguments, folder, code=2):
        out = Path(folder) / "never.npy"
        done = subprocess.run(
            [PROGRAM, "apply", "--variant", "full", "--out", out, *arguments],
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertRegex(done.stderr, expected)
        self.assertFalse(out.exists())

    def test_bad_arrays(self):
        good = np.zeros((1, 2, 3, 4), np.float32)
        broken = good.copy()
        broken[0, 1, 2, 3] = np.nan
        cases = [
            (good.astype(np.int32), "float32"),
            (good.astype(np.float16), "float32"),
            (np.asfortranarray(np.ones((2, 2, 3, 4))), "Fortran"),
            (good[0], r"\[2, 3, 4\]"),
            (good[:, :1], "agree"),
            (good[..., :3], "agree"),
            (broken, "nan.*flat index 23"),
            (good.astype(np.float64), "one type"),
            (np.zeros((1, 2, 0, 4), np.float32), "empty dimension"),
        ]
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/good.npy", good)
            for array, expected in cases:
                np.save(f"{folder}/bad.npy", array)
                with self.subTest(expected=expected):
                    self.refused(
                        expected,
                        "--q",
                        f"{folder}/good.npy",
                        "--k",
                        f"{folder}/bad.npy",
                        "--v",
                        f"{folder}/good.npy",
                        folder=folder,
                    )
            whole = Path(folder, "good.npy").read_bytes()
            for cut in (0, 5, 40, len(whole) - 1):
                Path(folder, "bad.npy").write_bytes(whole[:cut])
                self.refused(
                    "bad.npy",
                    "--q",
                    f"{folder}/bad.npy",
                    "--k",
                    f"{folder}/good.npy",
                    "--v",
                    f"{folder}/good.npy",
                    folder=folder,
                )
            self.refused("cannot read", "--q", f"{folder}/none.npy", folder=folder, code=6)
            inputs = [
                "--q",
                f"{folder}/good.npy",
                "--k",
                f"{folder}/good.npy",
                "--v",
                f"{folder}/good.npy",
            ]
            self.refused(
                "no such weight", *inputs, "--set", f"omega={folder}/good.npy", folder=folder
            )
            self.refused("NAME=FILE", *inputs, "--set", "omega", folder=folder)
            self.refused("folder", "--q", folder, folder=folder, code=6)
            np.save(f"{folder}/big.npy", np.full_like(good, 1e30))
            big = ["--q", f"{folder}/big.npy", "--k", f"{folder}/big.npy"]
            self.refused("too large for", *big, "--v", f"{folder}/good.npy", folder=folder)
            np.save(f"{folder}/lengths.npy", np.array([4]))
            self.refused(
                "length 4 is not in 0..3",
                *inputs,
                "--kv-lengths",
                f"{folder}/lengths.npy",
                folder=folder,
            )

    def test_what_is_no_regular_file_is_never_replaced(self):
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/q.npy", np.ones((1, 1, 2, 2)))
            pipe = Path(folder, "pipe")
            os.mkfifo(pipe)
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            inputs = [f"--{name}={folder}/q.npy" for name in "qkv"]
            command = [PROGRAM, "apply", "--variant=full", *inputs, f"--out={pipe}"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(pipe.is_fifo())
            self.assertEqual(os.read(reader, 6), b"\x93NUMPY")
            os.close(reader)


GATED_BATCH, GATED_HEADS, LENGTH, GATED_DIM = 2, 3, 7, 4


def softplus(x):
    return np.log1p(np.exp(x))


def recurrence(q, k, v, decay, strength, scale):
    """o_t = scale * q_t S_t with S_t = decay_t S_{t-1} + strength_t k_t^T v_t."""
    state = np.zeros((*q.shape[:2], GATED_DIM, GATED_DIM))
    out = np.zeros_like(q)
    for t in range(q.shape[2]):
        written = np.einsum("bhc,bhj->bhcj", k[:, :, t], v[:, :, t])
        state = decay[:, :, t, :, None] * state + strength[:, :, t, :, None] * written
        out[:, :, t] = scale * np.einsum("bhc,bhcj->bhj", q[:, :, t], state)
    return out


def gla(q, k, v, gate, _):
    decay = np.exp(-softplus(-gate) / 16)
    return recurrence(q, k, v, decay, np.ones((*q.shape[:3], 1)), GATED_DIM**-0.5)


def mamba2(q, k, v, gate, a_log):
    step = softplus(gate)
    return recurrence(q, k, v, np.exp(-np.exp(a_log)[None, :, None, None] * step), step, 1)


@BUILT
class ApplyGates(InFolder):
    def setUp(self):
        super().setUp()
        self.rng = np.random.default_rng(5)
        self.q, self.k, self.v, self.upstream = (
            self.rng.normal(size=(GATED_BATCH, GATED_HEADS, LENGTH, GATED_DIM)) for _ in range(4)
        )

    def save(self, name, array):
        np.save(self.folder / f"{name}.npy", array)
        return f"{self.folder}/{name}.npy"

    def run_apply(self, variant, *more):
        command = [str(PROGRAM), "apply", "--variant", variant, "--causal"]
        for name, array in {"q": self.q, "k": self.k, "v": self.v}.items():
            command += [f"--{name}", self.save(name, array)]
        command += ["--out", f"{self.folder}/out.npy", *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def refusal(self, variant, *more):
        done = self.run_apply(variant, *more)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        return done.stderr

    def test_outputs_and_gradients(self):
        a_log = self.rng.normal(size=GATED_HEADS) / 2
        for name, gate, width, forward in (
            ("gla", "decay", GATED_DIM, gla),
            ("mamba2", "dt", 1, mamba2),
        ):
            with self.subTest(name):
                raw = self.rng.normal(size=(GATED_BATCH, GATED_HEADS, LENGTH, width))
                more = ["--input", f"{gate}={self.save('gate', raw)}"]
                more += ["--grad-out", self.save("up", self.upstream)]
                more += ["--grad-input", f"{gate}={self.folder}/grad.npy"]
                if name == "mamba2":
                    more += ["--set", f"A_log={self.save('a_log', a_log)}"]
                done = self.run_apply(name, *more)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("relative error against exact attention", done.stdout)

                def answer(raw=raw, forward=forward):
                    return forward(self.q, self.k, self.v, raw, a_log)

                self.assertLess(relative(np.load(self.folder / "out.npy"), answer()), 1e-12)
                wanted = gradient(answer, raw, self.upstream)
                self.assertLess(relative(np.load(self.folder / "grad.npy"), wanted), 1e-6)

    def test_what_does_not_fit_is_refused_in_one_line(self):
        raw = self.save("gate", np.zeros((GATED_BATCH, GATED_HEADS, LENGTH, GATED_DIM)))
        narrow = self.save("narrow", np.zeros((GATED_BATCH, GATED_HEADS, LENGTH, 1)))
        self.assertIn("gate decay is missing: --input decay=FILE.npy", self.refusal("gla"))
        self.assertIn("nearest is 'decay'", self.refusal("gla", "--input", f"decy={raw}"))
        self.assertIn("this variant reads none", self.refusal("full", "--input", f"decay={raw}"))
        self.assertIn(
            "gate decay is [2, 3, 7, 1]; expected [2, 3, 7, 4]",
            self.refusal("gla", "--input", f"decay={narrow}"),
        )
        self.assertIn("expected NAME=FILE.npy", self.refusal("gla", "--input", raw))
        up = ("--grad-out", self.save("up", self.upstream))
        self.assertIn(
            "--grad-input dt: no --input has that name",
            self.refusal("gla", "--input", f"decay={raw}", *up, "--grad-input", f"dt={raw}"),
        )
