"""scripts/peers: gates on our side against a recurrence in NumPy, and gradients that are rounding alone."""

from __future__ import annotations

import unittest

import numpy as np

from attnbench.peers import loading
from attnbench.peers.inputs import write_inputs
from attnbench.peers.sides import SideError

from ..faults import BUILT
from .test_peers_variants import Sided, form_of, small


def gla(q, k, v, gate):
    """One position after the other, in double."""
    state, out = np.zeros((*q.shape[:2], q.shape[3], q.shape[3])), np.empty_like(v)
    for t in range(q.shape[2]):
        decay = (1 / (1 + np.exp(-gate[:, :, t]))) ** (1 / 16)
        state = decay[..., None] * state + k[:, :, t, :, None] * v[:, :, t, None, :]
        out[:, :, t] = (q[:, :, t, None, :] @ state)[:, :, 0] / np.sqrt(q.shape[3])
    return out


@BUILT
class Gates(Sided):
    def test_they_are_read_and_have_gradients(self):
        block = small(form_of("gla"), 11, True)
        request = write_inputs(block, self.folder, 0)
        q, k, v, grad = (np.load(request[name]).astype(float) for name in ("q", "k", "v", "grad_out"))
        gate = np.load(request["gates"]["decay"]).astype(float)
        found = self.answers(self.ours, block, request)
        self.assertLess(loading.difference(found["forward"], gla(q, k, v, gate)), 1e-6)
        rng = np.random.default_rng(1)
        for _ in range(3):  # along a direction, by a central difference
            toward = rng.standard_normal(gate.shape)
            ends = [(gla(q, k, v, gate + h * toward) * grad).sum() for h in (1e-4, -1e-4)]
            slope = (found["grad_gate_decay"].astype(float) * toward).sum()
            self.assertAlmostEqual(slope, (ends[0] - ends[1]) / 2e-4, delta=1e-4 * abs(slope) + 1e-5)

    def test_a_gate_too_few_or_too_many_is_an_error(self):
        block = small(form_of("kda"), 11, True)
        request = write_inputs(block, self.folder, 0)
        dt, beta = request["gates"]["dt"], request["gates"]["beta"]
        for gates, words in (
            ({"dt": dt}, "gates: 'beta' is missing"),
            ({"dt": dt, "beta": beta, "gamma": beta}, "gates: 3 given, kda reads 2"),
            ({"dt": beta, "beta": beta}, "dt"),
        ):
            with self.assertRaisesRegex(SideError, words):
                loading.load(self.ours, block, {**request, "gates": gates})
                self.ours.ask("forward")
        with self.assertRaisesRegex(SideError, "gates: 1 given, full reads 0"):
            other = small(form_of("full"), 11, False)
            full = write_inputs(other, self.folder, 0)
            loading.load(self.ours, other, {**full, "gates": {"dt": dt}})


class WithoutGradient(unittest.TestCase):
    def test_what_rounding_leaves_is_left_out_and_more_is_a_fault(self):
        block = small(form_of("mega"), 16, False)
        found = {"out": np.ones(3), "grad_key_shift": np.full(3, 1e-6), "grad_query_shift": np.ones(3)}
        kept = loading.without_gradientless(block, found)
        self.assertEqual(set(kept), {"out", "grad_query_shift"})
        with self.assertRaisesRegex(loading.Disagreement, "grad_key_shift is 1.0e-02 of grad_query"):
            loading.without_gradientless(block, {**found, "grad_key_shift": np.full(3, 1e-2)})
        gau = small(form_of("gau"), 16, False)  # whose weights see it
        self.assertEqual(loading.without_gradientless(gau, found), found)
