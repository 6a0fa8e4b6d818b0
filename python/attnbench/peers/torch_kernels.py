"""Linear attention with other feature maps in PyTorch.

q, k, v are [batch, heads, len, head_dim] with one length for all; weights are named as by
`attnbench info NAME`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_attention import kernel_attention, kernel_sums
from .torch_chunks import decayed
from .torch_parts import always_causal, unit

LEAST = 1e-6  # what cosformer's authors divide by where no feature meets another
LEAST_SIGNED = 1e-3  # the least size of a divisor of random features


class cosformer:
    """relu features times the cosine and the sine of the position, prepared once."""

    def __init__(self, length: int, causal: bool) -> None:
        self.causal = causal
        angles = torch.arange(length).double() * (math.pi / 2 / length)
        self.waves = torch.stack([angles.cos(), angles.sin()], dim=-1).float().unsqueeze(-1)

    def features(self, x: Tensor) -> Tensor:
        return (F.relu(x).unsqueeze(3) * self.waves).flatten(3)  # [.., len, 2 * head_dim]

    def __call__(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = kernel_sums(self.features(q), self.features(k), v, self.causal)
        return out[..., :-1] / out[..., -1:].clamp(min=LEAST)


def taylor(
    q: Tensor, k: Tensor, v: Tensor, projection_q: Tensor, projection_k: Tensor, dim: int,
    causal: bool = False,
) -> Tensor:  # fmt: skip
    """1 + s + s^2/2 of projected rows, by each product of two numbers once: 1 + f + f (f + 1) / 2
    features."""

    def features(x: Tensor) -> Tensor:
        products = [x[..., i : i + 1] * x[..., i:] for i in range(dim)]
        return torch.cat([torch.ones_like(x[..., :1]), x, *products], dim=-1)

    # In s^2/2 the product of two numbers counts once, a square half.
    factors = [0.5 if i == j else 1.0 for i in range(dim) for j in range(i, dim)]
    counted = torch.tensor([1.0] * (1 + dim) + factors)
    phi_q = features(q @ (projection_q.mT * dim**-0.5)) * counted
    return kernel_attention(phi_q, features(k @ projection_k.mT), v, causal)


def waves(x: Tensor, omega: Tensor, scale: Tensor) -> Tensor:
    """Cosines and sines of rows of length 1 along random directions, [.., 2 * directions]."""
    angles = unit(x) @ (omega * scale.unsqueeze(1)).mT
    return torch.cat([angles.cos(), angles.sin()], dim=-1) * omega.shape[1] ** -0.5


def over_signed(out: Tensor) -> Tensor:
    """The numerators over the divisor in the last column, which may have either sign."""
    total = out[..., -1:]
    least = torch.full_like(total, LEAST_SIGNED).copysign(total)
    return out[..., :-1] / torch.where(total.abs() < LEAST_SIGNED, least, total)


def rfa(
    q: Tensor, k: Tensor, v: Tensor, omega: Tensor, scale: Tensor, directions: int,
    causal: bool = False,
) -> Tensor:  # fmt: skip
    assert omega.shape[1] == directions
    return over_signed(kernel_sums(waves(q, omega, scale), waves(k, omega, scale), v, causal))


def gated_rfa(
    q: Tensor, k: Tensor, v: Tensor, gate_forget: Tensor, omega: Tensor, scale: Tensor, directions: int
) -> Tensor:  # fmt: skip
    """S_t = g_t S_(t-1) + (1 - g_t) phi(k_t)^T [v_t 1]."""
    assert omega.shape[1] == directions
    phi_k = waves(k, omega, scale) * torch.sigmoid(-gate_forget)  # 1 - g
    v = F.pad(v, (0, 1), value=1.0)
    return over_signed(decayed(waves(q, omega, scale), phi_k, v, F.logsigmoid(gate_forget)))


def hedgehog(
    q: Tensor, k: Tensor, v: Tensor, projection_q: Tensor, projection_k: Tensor,
    causal: bool = False,
) -> Tensor:  # fmt: skip
    """Features [softmax(x W), softmax(-x W)]."""

    def features(x: Tensor, projection: Tensor) -> Tensor:
        y = x @ projection.mT
        return torch.cat([y.softmax(-1), (-y).softmax(-1)], dim=-1)

    return kernel_attention(features(q, projection_q), features(k, projection_k), v, causal)


VARIANTS = {
    **{made.__name__: made for made in (cosformer, taylor, rfa, hedgehog)},
    "gated_rfa": always_causal(gated_rfa),
}
