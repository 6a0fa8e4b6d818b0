"""Gated variants with more than one state or with a solver, in chunks: log_linear, ttt_linear, mesa and
path. See torch_chunks.py and torch_gated.py."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_chunks import chunk_by_chunk, falling, solved, states_before
from .torch_gated import steps
from .torch_parts import CHUNK, always_causal, cut, joined, padded, unit


class log_linear:
    """Chunks attend to themselves pair by pair; the past of a chunk is a block of 2^z chunks for each
    binary one of its number, read by all chunks with that one at once."""

    def __init__(self, length: int, causal: bool, levels: int = 17) -> None:
        assert causal
        self.length = length
        i, j = torch.arange(CHUNK).unsqueeze(-1), torch.arange(CHUNK)
        # 0 for j = i, else the number of binary digits of i xor j.
        self.level = torch.frexp((i ^ j).double()).exponent.long().tril()

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, gate_dt: Tensor, gate_levels: Tensor, A_log: Tensor
    ) -> Tensor:
        step, log_decay = steps(gate_dt, A_log)
        chunks = 1 << max(0, (-(-self.length // CHUNK) - 1).bit_length())
        rest = chunks * CHUNK - self.length
        q, k, v, at, weights = (
            padded(x, rest).unflatten(2, (-1, CHUNK))
            for x in (q, k, v * step, log_decay, F.softplus(gate_levels))
        )
        at = at.cumsum(3)
        last = at[..., -1:, :]  # [batch, heads, chunks, 1, 1]
        inside = weights.gather(-1, self.level.expand(*at.shape[:3], CHUNK, CHUNK))
        out = ((q @ k.mT) * falling(at - at.mT) * inside) @ v
        read, states = q * at.exp(), (k * (last - at).exp()).mT @ v
        total = last  # the log-decay of each block
        for z in range((chunks - 1).bit_length()):
            # Of each two blocks the second reads the first; `passed` lies between, of each chunk.
            within = last.unflatten(2, (-1, 2, 1 << z))
            passed = (within.cumsum(4) - within)[:, :, :, 1].exp()
            weight = weights[..., CHUNK.bit_length() + z : CHUNK.bit_length() + z + 1]
            rows = (read * weight).unflatten(2, (-1, 2, 1 << z))[:, :, :, 1] * passed
            states, total = states.unflatten(2, (-1, 2)), total.unflatten(2, (-1, 2))
            more = rows @ states[:, :, :, :1]
            more = torch.stack([torch.zeros_like(more), more], dim=3).flatten(2, 4)
            out = out + more
            states = states[:, :, :, 0] * total[:, :, :, 1].exp() + states[:, :, :, 1]
            total = total.sum(3)
        return joined(out, self.length)


def ttt_linear(
    q: Tensor, k: Tensor, v: Tensor, gate_lr: Tensor, theta: Tensor, gain: Tensor, shift: Tensor,
    W: Tensor, b: Tensor, mini_batch: int = 16, base_rate: float = 1.0,
) -> Tensor:  # fmt: skip
    """One mini-batch after the other, by the dual form, as the authors' code: the state passes a norm,
    so that no form takes several at once."""
    length, dim = q.shape[2:]
    by = F.relu(1 / torch.arange(1, mini_batch + 1) + theta)
    rate = torch.sigmoid(gate_lr) * (base_rate / dim)
    gain, shift = gain.unsqueeze(1), shift.unsqueeze(1)
    target = v - k
    rows, keys, target, rate = (cut(x, mini_batch) for x in (q, k, target, rate))
    near = (rows @ keys.mT + 1) * rate.mT * by.unsqueeze(-1).expand(-1, mini_batch).tril()
    moved = rate * by[-1]
    written = (keys * moved).mT
    state, bias, found = W, b.unsqueeze(1), []
    for query, key, wanted, pair, more, own in chunk_by_chunk(
        rows, keys, target, near, written, moved
    ):
        gradient = norm_gradient(key @ state + bias, wanted, gain, shift)
        found.append(query @ state + bias - pair @ gradient)
        state = state - more @ gradient
        bias = bias - (own * gradient).sum(-2, keepdim=True)
    z = F.layer_norm(joined(torch.stack(found, dim=2), length), (dim,), eps=1e-6)
    return q + z * gain + shift


def norm_gradient(z: Tensor, wanted: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """The gradient of |LN(z) - wanted|²/2."""
    variance, mean = torch.var_mean(z, dim=-1, keepdim=True, unbiased=False)
    inverse = (variance + 1e-6).rsqrt()
    x = (z - mean) * inverse
    g = (x * gain + shift - wanted) * gain
    return (g - g.mean(-1, keepdim=True) - x * (x * g).mean(-1, keepdim=True)) * inverse


class Ridge:
    """x -> x·(H + diag(λ)), H = Σ_j exp(..)·k_jᵀ·w_j over the past, with what all iterations share."""

    def __init__(self, k: Tensor, written: Tensor, log_decay: Tensor, ridge: Tensor) -> None:
        self.length, self.ridge = k.shape[2], ridge.unsqueeze(1)
        k, self.written, log_decay = (cut(x) for x in (k, written, log_decay))
        at = log_decay.cumsum(3)
        last = at[..., -1:, :]
        self.keys, self.near, self.read = k.mT, falling(at - at.mT), at.exp()
        sums = (k * (last - at).exp()).mT @ self.written
        self.before = states_before(last.exp(), sums)

    def __call__(self, x: Tensor) -> Tensor:
        rows = cut(x)
        found = (rows @ self.keys * self.near) @ self.written + (rows * self.read) @ self.before
        return joined(found, self.length) + x * self.ridge

    def solve(self, right: Tensor, iterations: int) -> Tensor:
        """Conjugate gradients from 0, of all positions at once. A system that is solved stays."""
        x, residual, toward = torch.zeros_like(right), right, right
        square = residual.square().sum(-1, keepdim=True)
        for _ in range(iterations):
            moved = self(toward)
            curvature = (toward * moved).sum(-1, keepdim=True)
            step = torch.where(curvature > 0, square / curvature, 0)
            x = x + step * toward
            residual = residual - step * moved
            before, square = square, residual.square().sum(-1, keepdim=True)
            toward = residual + torch.where(before > 0, square / before, 0) * toward
        return x


class Solved(torch.autograd.Function):
    """The solution x, given what is missing of the right side, which is 0: its gradient is that of the
    linear system, by a second solve, not that of the iterations."""

    @staticmethod
    def forward(ctx: Any, missing: Tensor, x: Tensor, ridge: Ridge, iterations: int) -> Tensor:
        ctx.ridge, ctx.iterations = ridge, iterations
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        with torch.no_grad():
            return ctx.ridge.solve(grads[0], ctx.iterations), None, None, None


def mesa(
    q: Tensor, k: Tensor, v: Tensor, gate_decay: Tensor, gate_beta: Tensor, ridge: Tensor,
    iterations: int = 30,
) -> Tensor:  # fmt: skip
    q, k, beta = unit(q), unit(k), torch.sigmoid(gate_beta)
    system = Ridge(k, k * beta, F.logsigmoid(gate_decay), F.softplus(ridge) + 0.25)
    with torch.no_grad():
        x = system.solve(q, iterations)
    if torch.is_grad_enabled():
        x = Solved.apply(q - system(x), x, system, iterations)
    rows, values = cut(x), cut(v * beta)
    # The decays of the solver, and a state of values beside its own.
    last = system.read[..., -1:, :]
    kept = system.keys * system.near[..., -1:, :]
    before = states_before(last, kept @ values)
    out = (rows @ system.keys * system.near) @ values + (rows * system.read) @ before
    return joined(out, x.shape[2])


def path(q: Tensor, k: Tensor, v: Tensor, gate_w: Tensor, gate_beta: Tensor) -> Tensor:
    """The maps of a chunk become one (the UT transform). Chunks of keys are met from the last to the
    first by all later queries at once, which then pass the map of that chunk; the softmax is kept
    up to date as FlashAttention does."""
    length, dim = q.shape[2:]
    w, beta = unit(gate_w), 2 * torch.sigmoid(gate_beta)
    q, k, v, w, scaled = (cut(x) for x in (q * dim**-0.5, k, v, w, w * beta))
    system = (scaled @ w.mT).tril(-1)
    passed = solved(system.mT, (q @ w.mT).tril().mT, upper=True).mT
    erased = (scaled @ k.mT).tril(-1)
    hidden = torch.full((CHUNK, CHUNK), -torch.inf).triu(1)
    near = q @ k.mT - passed @ erased + hidden
    queries = q - passed @ scaled
    back = solved(system.mT, w, upper=True)
    keys = k - erased.mT @ back
    maps = torch.eye(dim) - w.mT @ solved(system, scaled)
    most = near.detach().amax(-1, keepdim=True)
    weights = (near - most).exp()
    sums, totals = weights @ v, weights.sum(-1, keepdim=True)
    queries, most, sums, totals, keys, v, maps = (
        x.unbind(2) for x in (queries, most, sums, totals, keys, v, maps)
    )
    rows, top, out, total = queries[-1], most[-1], sums[-1], totals[-1]
    for c in reversed(range(len(queries) - 1)):
        logits = rows @ keys[c].mT
        higher = torch.maximum(top, logits.detach().amax(-1, keepdim=True))
        weights, left = (logits - higher).exp(), (top - higher).exp()
        out = torch.cat([sums[c], out * left + weights @ v[c]], dim=2)
        total = torch.cat([totals[c], total * left + weights.sum(-1, keepdim=True)], dim=2)
        rows = torch.cat([queries[c], rows @ maps[c]], dim=2)
        top = torch.cat([most[c], higher], dim=2)
    return (out / total)[:, :, :length]


VARIANTS = {
    "log_linear": log_linear,
    **{made.__name__: always_causal(made) for made in (ttt_linear, mesa, path)},
}
