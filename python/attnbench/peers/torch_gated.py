"""Linear attention with a state that decays or is overwritten, in chunks. See torch_chunks.py; gates
and weights are named as by `attnbench info NAME`, gates with gate_ before the name."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_chunks import (
    Rows, all_pairs, chunk_by_chunk, decayed, delta_rule, solved, states_before,
)  # fmt: skip
from .torch_parts import CHUNK, always_causal, cut, joined, turned, unit


def steps(gate: Tensor, a_log: Tensor) -> tuple[Tensor, Tensor]:
    """The step softplus(gate) of Mamba-2 and its followers, and its log-decay."""
    step = F.softplus(gate)
    return step, -a_log.exp()[:, None, None] * step


def gla(q: Tensor, k: Tensor, v: Tensor, gate_decay: Tensor, temperature: float = 16) -> Tensor:
    return decayed(q * q.shape[3] ** -0.5, k, v, F.logsigmoid(gate_decay) / temperature)


def mamba2(q: Tensor, k: Tensor, v: Tensor, gate_dt: Tensor, A_log: Tensor) -> Tensor:
    step, log_decay = steps(gate_dt, A_log)
    return decayed(q, k, v * step, log_decay)


def hgrn2(q: Tensor, v: Tensor, gate_forget: Tensor) -> Tensor:
    """With the lower bound 0."""
    q = q * q.shape[3] ** -0.5
    return decayed(q, torch.sigmoid(-gate_forget), v, F.logsigmoid(gate_forget))


def rwkv6(q: Tensor, k: Tensor, v: Tensor, gate_decay: Tensor, bonus: Tensor) -> Tensor:
    return decayed(q, k, v, -gate_decay.exp(), bonus)


def deltanet(q: Tensor, k: Tensor, v: Tensor, gate_beta: Tensor) -> Tensor:
    return delta_rule(unit(q) * q.shape[3] ** -0.5, unit(k), v, torch.sigmoid(gate_beta))


def gated_deltanet(
    q: Tensor, k: Tensor, v: Tensor, gate_dt: Tensor, gate_beta: Tensor, A_log: Tensor
) -> Tensor:
    """Also kda, whose gate has a number for each column."""
    _, log_decay = steps(gate_dt, A_log)
    q = unit(q) * q.shape[3] ** -0.5
    return delta_rule(q, unit(k), v, torch.sigmoid(gate_beta), log_decay)


def rwkv7(
    q: Tensor, k: Tensor, v: Tensor, gate_decay: Tensor, gate_rate: Tensor, k_k: Tensor, k_a: Tensor
) -> Tensor:
    """What each position reads of the state to remove it solves a triangular system, as in the delta
    rule; the removed and the written key differ."""
    length, dim = q.shape[2:]
    rate = torch.sigmoid(gate_rate)
    erase = unit(k * k_k[:, None])
    log_decay = cut(-math.exp(-0.5) * torch.sigmoid(gate_decay))
    at = log_decay.cumsum(3)
    rows_at, last = at - log_decay, at[..., -1:, :]
    q, v, written, removed, erase = (
        cut(x) for x in (q, v, k * (1 + (rate - 1) * k_a[:, None]), erase * rate, erase)
    )
    (read_k, read_r), (erase_k, erase_r) = all_pairs(
        [Rows(q, at), Rows(erase, rows_at, strict=True)], [written, removed], at
    )
    values, keys = solved(
        erase_r, torch.cat([erase_k @ v, erase * rows_at.exp()], dim=-1)
    ).split(dim, dim=-1)
    kept = (last - at).exp()
    sums = (written * kept).mT @ v
    state, out = torch.zeros_like(sums[:, :, 0]), []
    for value, key, answer, score, read, left, more, less in chunk_by_chunk(
        values, keys, read_k @ v, read_r, q * at.exp(), last.exp().mT, sums, (removed * kept).mT
    ):
        gone = value + key @ state
        out.append(answer - score @ gone + read @ state)
        state = state * left + more - less @ gone
    return joined(torch.stack(out, dim=2), length)


GATE_CAP = 15.0


def mlstm(q: Tensor, k: Tensor, v: Tensor, gate_input: Tensor, gate_forget: Tensor) -> Tensor:
    """The sum of the written keys is one more column of the values."""
    strength, forget = (GATE_CAP * torch.tanh(x / GATE_CAP) for x in (gate_input, gate_forget))
    written = torch.cat([v, torch.ones_like(strength)], dim=3) * strength.exp()
    sums = decayed(q * q.shape[3] ** -0.5, k, written, F.logsigmoid(forget))
    return sums[..., :-1] / (sums[..., -1:].abs().clamp(min=1) + 1e-6)


class Fixed:
    """A decay of each head that is no weight: its powers are made once, outside the clock."""

    def __init__(self, length: int, causal: bool) -> None:
        assert causal
        self.length = length
        self.rates: Tensor | None = None

    def log_decay(self, heads: int) -> Tensor:
        raise NotImplementedError

    @torch.inference_mode(False)
    def prepare(self, heads: int, dim: int) -> None:
        self.rates = self.log_decay(heads)[:, None, None, None]  # [heads, 1, 1, 1]
        at = torch.arange(CHUNK).unsqueeze(-1)
        self.near = ((at - at.mT) * self.rates).exp().tril()  # [heads, 1, CHUNK, CHUNK]
        self.read = ((at + 1) * self.rates).exp()
        self.kept = ((CHUNK - 1 - at) * self.rates).exp()
        self.left = (CHUNK * self.rates).exp()

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if self.rates is None:
            self.prepare(q.shape[1], q.shape[3])
        q, k = self.rows(q, k)
        q, k, v = (cut(x) for x in (q, k, v))
        left = self.left.expand(*q.shape[:3], 1, 1)
        before = states_before(left, (k * self.kept).mT @ v)
        return joined((q @ k.mT * self.near) @ v + (q * self.read) @ before, self.length)

    def rows(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q * q.shape[3] ** -0.5, k


class lightning(Fixed):
    """The slopes of ALiBi, for heads that are a power of two."""

    def log_decay(self, heads: int) -> Tensor:
        assert heads & (heads - 1) == 0
        return -(2.0 ** (-8 * torch.arange(1, heads + 1) / heads))


class retention(Fixed):
    """Rotated queries and keys; a row is divided by the root of the sum of its decays."""

    def log_decay(self, heads: int) -> Tensor:
        return torch.log1p(-(2.0 ** (-5 - torch.arange(heads, dtype=torch.float64)))).float()

    @torch.inference_mode(False)
    def prepare(self, heads: int, dim: int) -> None:
        super().prepare(heads, dim)
        at = torch.arange(self.length, dtype=torch.float64).unsqueeze(-1)
        share = torch.arange(dim // 2, dtype=torch.float64) / max(1, dim // 2 - 1)
        angles = at * 10000.0**-share
        self.turn = torch.polar(torch.ones_like(angles), angles).to(torch.complex64)
        decay = 1 - 2.0 ** (-5 - torch.arange(heads, dtype=torch.float64))[:, None, None]
        sums = (1 - decay ** (at + 1)) / (1 - decay)  # [heads, len, 1]
        self.turn_q = (self.turn * (sums * dim).rsqrt()).to(torch.complex64)

    def rows(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return turned(q, self.turn_q), turned(k, self.turn)


VARIANTS = {
    **{
        made.__name__: always_causal(made)
        for made in (gla, mamba2, deltanet, gated_deltanet, hgrn2, rwkv6, rwkv7, mlstm)
    },
    "kda": always_causal(gated_deltanet),
    "retention": retention,
    "lightning": lightning,
}
