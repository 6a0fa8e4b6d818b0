"""Attention with another normaliser than one softmax in PyTorch.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`. What PyTorch's fused attention cannot do is made in chunks of queries; where
all n x n numbers that training keeps would not fit, each chunk is made again for its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .torch_parts import always_causal, later, padded, strips, unit

ROWS = 128  # queries at once
MOST_KEPT = 1 << 27  # weights that training keeps: 512 MB

Answer = Callable[..., Tensor]  # rows, keys, values, first row -> outputs


def in_rows(
    answer: Answer, q: Tensor, k: Tensor, v: Tensor, causal: bool, rows: int = ROWS
) -> Tensor:
    """A causal chunk of queries does not read later keys."""
    n = q.shape[2]
    again = torch.is_grad_enabled() and q.shape[0] * q.shape[1] * n * n > MOST_KEPT
    out = []
    for some, seen in strips(n, rows, causal):
        given = (q[:, :, some], k[:, :, seen], v[:, :, seen], some.start)
        out.append(checkpoint(answer, *given, use_reentrant=False) if again else answer(*given))
    return torch.cat(out, dim=2)


def softmax_one(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """A key and a value of zeros are the sink of PyTorch's fused attention. Causal, they stand
    first, and so does a query that nobody asks for."""
    if not causal:
        return F.scaled_dot_product_attention(q, padded(k, 1), padded(v, 1))
    q, k, v = (F.pad(x, (0, 0, 1, 0)) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, 1:]


def sigmoid(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    """Each pair by itself, with a bias of -ln n."""
    bias = -math.log(q.shape[2])

    def answer(rows: Tensor, keys: Tensor, values: Tensor, start: int) -> Tensor:
        weights = torch.sigmoid(rows @ keys.mT + bias)
        return (weights.tril(start) if causal else weights) @ values

    return in_rows(answer, q * q.shape[3] ** -0.5, k, v, causal)


def qk_norm(q: Tensor, k: Tensor, v: Tensor, temperature: Tensor, causal: bool = False) -> Tensor:
    """Rows of length 1, and a temperature of each head."""
    queries, keys = unit(q, 1e-12) * temperature.unsqueeze(1), unit(k, 1e-12)
    return F.scaled_dot_product_attention(queries, keys, v, is_causal=causal, scale=1.0)


def talking_heads(
    q: Tensor, k: Tensor, v: Tensor, logits: Tensor, weights: Tensor, causal: bool = False
) -> Tensor:
    """Logits are mixed over heads before the softmax, and weights after it."""
    before, after = logits[0].mT, weights[0].mT  # [to, from]

    def mixed(by: Tensor, x: Tensor) -> Tensor:
        return (by @ x.flatten(2)).view_as(x)

    def answer(rows: Tensor, keys: Tensor, values: Tensor, start: int) -> Tensor:
        scores = mixed(before, rows @ keys.mT)
        if causal:
            scores = scores.masked_fill(later(scores, start), -torch.inf)
        return mixed(after, scores.softmax(-1)) @ values

    return in_rows(answer, q * q.shape[3] ** -0.5, k, v, causal)


LAMBDA_INIT = 0.2  # 0.8 - 0.6 exp(-0.3 layer) of the first layer


def differential(
    q: Tensor, k: Tensor, v: Tensor, lambda_q1: Tensor, lambda_k1: Tensor, lambda_q2: Tensor,
    lambda_k2: Tensor, gain: Tensor, causal: bool = False,
) -> Tensor:  # fmt: skip
    """Two softmaxes, of half the channels each. Queries and keys are filled up with zeros: PyTorch's
    fused attention wants them as wide as values."""
    first, second = (lambda_q1 * lambda_k1).sum().exp(), (lambda_q2 * lambda_k2).sum().exp()
    half = q.shape[3] // 2

    def attend(columns: slice) -> Tensor:
        query, key = (F.pad(x[..., columns], (0, half)) for x in (q, k))
        return F.scaled_dot_product_attention(query, key, v, is_causal=causal, scale=half**-0.5)

    out = attend(slice(half)) - (first - second + LAMBDA_INIT) * attend(slice(half, None))
    return F.rms_norm(out, gain.shape[1:], gain[0], eps=1e-5) * (1 - LAMBDA_INIT)


class Entmax15(torch.autograd.Function):
    """1.5-entmax of rows by sorting, as in Peters et al. 2019 and the package `entmax`: p = (z/2 -
    threshold)^2 where that is positive."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        z = (logits - logits.amax(-1, keepdim=True)) / 2
        high = z.sort(-1, descending=True)[0].clamp(min=-1)  # lower ones have no weight
        count = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        mean, square = high.cumsum(-1) / count, high.square().cumsum(-1) / count
        apart = (1 - count * (square - mean.square())) / count
        threshold = mean - apart.clamp(min=0).sqrt()
        support = (threshold <= high).sum(-1, keepdim=True)
        weights = (z - threshold.gather(-1, support - 1)).clamp(min=0).square()
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        (weights,) = ctx.saved_tensors
        root = weights.sqrt()
        scaled = grad * root
        return scaled - root * (scaled.sum(-1, keepdim=True) / root.sum(-1, keepdim=True))


def entmax(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    def answer(rows: Tensor, keys: Tensor, values: Tensor, start: int) -> Tensor:
        logits = rows @ keys.mT
        if causal:
            logits = logits.masked_fill(later(logits, start), -1e4)
        return Entmax15.apply(logits) @ values

    return in_rows(answer, q * q.shape[3] ** -0.5, k, v, causal)


def fox(q: Tensor, k: Tensor, v: Tensor, gate_forget: Tensor) -> Tensor:
    """Logits fall by the forget gates between key and query. The sums of their logarithms are made
    in double, and told to a chunk relative to its first query."""
    kept = F.logsigmoid(gate_forget).double().cumsum(2)  # [batch, heads, len, 1]

    def answer(rows: Tensor, keys: Tensor, values: Tensor, start: int) -> Tensor:
        own = kept[:, :, start : start + rows.shape[2]] - kept[:, :, start : start + 1]
        past = kept[:, :, : keys.shape[2]] - kept[:, :, start : start + 1]
        bias = own.to(q.dtype) - past.to(q.dtype).mT
        bias = bias.masked_fill(later(bias, start), -torch.inf)
        return F.scaled_dot_product_attention(rows, keys, values, attn_mask=bias)

    return in_rows(answer, q, k, v, True, rows=2 * ROWS)


CAP = 50.0


def softcap(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    def answer(rows: Tensor, keys: Tensor, values: Tensor, start: int) -> Tensor:
        logits = CAP * torch.tanh(rows @ keys.mT / CAP)
        if causal:
            logits = logits.masked_fill(later(logits, start), -torch.inf)
        return logits.softmax(-1) @ values

    return in_rows(answer, q * q.shape[3] ** -0.5, k, v, causal)


def gated_attention(
    q: Tensor, k: Tensor, v: Tensor, gate_output: Tensor, causal: bool = False
) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal) * torch.sigmoid(gate_output)


VARIANTS = {
    **{
        made.__name__: made
        for made in (
            softmax_one, sigmoid, qk_norm, talking_heads, differential, entmax, softcap,
            gated_attention,
        )
    },
    "fox": always_causal(fox),
}  # fmt: skip
