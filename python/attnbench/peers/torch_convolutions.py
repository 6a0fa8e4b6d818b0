"""Convolutions of each channel by Fourier transforms, and a short one, as a careful PyTorch user
writes them. Rows are [batch, heads, len, head_dim]; a mixer has one head of the full width."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_parts import always_causal


def convolved(x: Tensor, filter: Tensor, skip: Tensor | None, causal: bool) -> Tensor:
    """Σ_j filter_{i-j}⊙x_j + skip⊙x_i along dimension -2. filter [.., taps, channels]: causal, row t
    is of distance t; else the middle row is of distance 0. Twice the length leaves room for what
    would wrap."""
    length = x.shape[-2]
    size = 2 * length
    product = torch.fft.rfft(x, n=size, dim=-2) * torch.fft.rfft(filter, n=size, dim=-2)
    out = torch.fft.irfft(product, n=size, dim=-2)
    first = 0 if causal else length - 1
    out = out[..., first : first + length, :]
    return out if skip is None else out + x * skip


def long_conv(v: Tensor, filter: Tensor, skip: Tensor, causal: bool = False) -> Tensor:
    return convolved(v, filter, skip, causal)


class hyena:
    """The filter is a small network of the distance, made anew by each call. What the network reads
    and its window are made once."""

    def __init__(self, length: int, causal: bool, bands: int) -> None:
        self.causal = causal
        longest = max(1, length - 1)
        at = torch.arange(0 if causal else 1 - length, length).unsqueeze(-1)
        angles = 2 * math.pi / (longest + 1 if length > 1 else 1) * at * torch.arange(1, bands + 1)
        waves = torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)
        self.read = torch.cat([at / longest, waves], dim=1)  # [taps, 1 + 2 * bands]
        self.share = at.abs() / longest
        self.window: Tensor | None = None

    @torch.inference_mode(False)
    def window_of(self, width: int) -> Tensor:
        fast, slow = -math.log(0.01) / 0.3, -math.log(0.01) / 1.5
        return (-self.share * torch.linspace(slow, fast, width)).exp()

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, first: Tensor, first_bias: Tensor, second: Tensor,
        second_bias: Tensor, third: Tensor, third_bias: Tensor, frequency: Tensor, out: Tensor,
        skip: Tensor,
    ) -> Tensor:  # fmt: skip
        heads, dim = q.shape[1], q.shape[3]
        if self.window is None:
            self.window = self.window_of(heads * dim)
        rows = self.read
        for weight, bias in ((first, first_bias), (second, second_bias), (third, third_bias)):
            rows = torch.sin(frequency * torch.addmm(bias, rows, weight))
        filter = (rows @ out) * self.window  # [taps, width]
        filter = filter.unflatten(1, (heads, dim)).transpose(0, 1)
        return q * convolved(k * v, filter, skip.view(heads, 1, dim), self.causal)


def base_conv(v: Tensor, taps: Tensor, **weights: Tensor) -> Tensor:
    """taps [channels, kernel], as torch.nn.Conv1d holds them. `in` is a word of Python's."""

    def through(x: Tensor, name: str) -> Tensor:
        return F.linear(x, weights[name].mT, weights[f"{name}.bias"])

    x = v[:, 0]
    rows = F.pad(through(x, "in").mT, (taps.shape[1] - 1, 0))
    mixed = F.conv1d(rows, taps.unsqueeze(1), groups=taps.shape[0]).mT
    return through(F.silu(mixed) * through(x, "gate"), "out").unsqueeze(1)


def short_conv(q: Tensor, k: Tensor, v: Tensor, taps: Tensor) -> Tensor:
    """taps [heads, kernel, head_dim], the tap of distance 0 first. Few taps: a sum of shifted rows."""
    length, kernel = q.shape[2], taps.shape[1]
    rows = F.pad(k * v, (0, 0, kernel - 1, 0))
    out = rows[:, :, kernel - 1 :] * taps[:, :1]
    for back in range(1, kernel):
        first = kernel - 1 - back
        out = out + rows[:, :, first : first + length] * taps[:, back : back + 1]
    return q * out


VARIANTS = {
    "long_conv": long_conv,
    "hyena": hyena,
    **{made.__name__: always_causal(made) for made in (base_conv, short_conv)},
}
