"""`attnbench apply` against attention written independently in double-precision NumPy, outputs and gradients.

Every variant x {causal, not} x {padding, none} x {self, cross}, where the variant supports it; weights are set by --set, so that
both sides hold the same ones. Gradients are central differences of the NumPy forward.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build" / "native" / "attnbench"
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
    result, step = np.zeros_like(array), 1e-5
    for index in np.ndindex(*array.shape):
        kept = array[index]
        array[index] = kept + step
        above = (forward() * upstream).sum()
        array[index] = kept - step
        below = (forward() * upstream).sum()
        array[index] = kept
        result[index] = (above - below) / (2 * step)
    return result


def relative(a, b):
    return np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
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


if __name__ == "__main__":
    unittest.main()
