"""`attnbench apply` on the user's own gates: outputs and gradients against NumPy, and what is refused."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from .test_apply import PROGRAM, gradient, relative

BATCH, HEADS, LENGTH, DIM = 2, 3, 7, 4


def softplus(x):
    return np.log1p(np.exp(x))


def recurrence(q, k, v, decay, strength, scale):
    """o_t = scale * q_t S_t with S_t = decay_t S_{t-1} + strength_t k_t^T v_t."""
    state = np.zeros((*q.shape[:2], DIM, DIM))
    out = np.zeros_like(q)
    for t in range(q.shape[2]):
        written = np.einsum("bhc,bhj->bhcj", k[:, :, t], v[:, :, t])
        state = decay[:, :, t, :, None] * state + strength[:, :, t, :, None] * written
        out[:, :, t] = scale * np.einsum("bhc,bhcj->bhj", q[:, :, t], state)
    return out


def gla(q, k, v, gate, _):
    decay = np.exp(-softplus(-gate) / 16)
    return recurrence(q, k, v, decay, np.ones((*q.shape[:3], 1)), DIM**-0.5)


def mamba2(q, k, v, gate, a_log):
    step = softplus(gate)
    return recurrence(q, k, v, np.exp(-np.exp(a_log)[None, :, None, None] * step), step, 1)


@unittest.skipUnless(PROGRAM.exists(), "build/native/attnbench is not built")
class ApplyGates(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.rng = np.random.default_rng(5)
        self.q, self.k, self.v, self.upstream = (
            self.rng.normal(size=(BATCH, HEADS, LENGTH, DIM)) for _ in range(4)
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
        a_log = self.rng.normal(size=HEADS) / 2
        for name, gate, width, forward in (
            ("gla", "decay", DIM, gla),
            ("mamba2", "dt", 1, mamba2),
        ):
            with self.subTest(name):
                raw = self.rng.normal(size=(BATCH, HEADS, LENGTH, width))
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
        raw = self.save("gate", np.zeros((BATCH, HEADS, LENGTH, DIM)))
        narrow = self.save("narrow", np.zeros((BATCH, HEADS, LENGTH, 1)))
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


if __name__ == "__main__":
    unittest.main()
