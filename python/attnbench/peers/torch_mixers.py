"""Variants that mix a layer's rows without queries and keys. v is [batch, 1, len, width]."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# How PyTorch's layers hold weights, in attnbench's order of dimensions; turned outside the clock.
TURNED = {
    "recurrent": {"input": (1, 0), "state": (1, 0)},
    "conv": {"weight": (2, 1, 0)},
    "window_mlp": {"hidden": (2, 1, 0), "output": (2, 1, 0)},
}


class recurrent:
    """torch.nn.LSTM or GRU. Their second bias is frozen at zero, but for the GRU's candidate."""

    def __init__(self, length: int, causal: bool, cell: str) -> None:
        self.cell = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.module: nn.RNNBase | None = None

    def __call__(
        self, v: Tensor, input: Tensor, bias: Tensor, state: Tensor,
        candidate_bias: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        width = v.shape[3]
        if self.module is None:
            self.module = self.cell(width, width, batch_first=True)
        second = torch.zeros_like(bias)
        if candidate_bias is not None:
            second = torch.cat([second[: 2 * width], candidate_bias])
        weights = {"weight_ih": input, "weight_hh": state, "bias_ih": bias, "bias_hh": second}
        named: dict[str, Any] = {f"{name}_l0": weight for name, weight in weights.items()}
        return torch.func.functional_call(self.module, named, v[:, 0])[0].unsqueeze(1)


def conv(v: Tensor, weight: Tensor, bias: Tensor, kernel: int, causal: bool = False) -> Tensor:
    before = kernel - 1 if causal else kernel // 2
    return convolved(v[:, 0], weight, bias, before, kernel - 1 - before).unsqueeze(1)


def convolved(x: Tensor, weight: Tensor, bias: Tensor, before: int, after: int) -> Tensor:
    """[batch, len, in] -> [batch, len, out]; weight [out, in, kernel]."""
    return F.conv1d(F.pad(x, (0, 0, before, after)).mT, weight, bias).mT


def window_mlp(
    v: Tensor, hidden: Tensor, hidden_bias: Tensor, output: Tensor, output_bias: Tensor,
    window: int, causal: bool = False,
) -> Tensor:  # fmt: skip
    inner = convolved(v[:, 0], hidden, hidden_bias, window, 0 if causal else window).tanh()
    return F.linear(inner, output.squeeze(-1), output_bias).unsqueeze(1)


def mean(v: Tensor, causal: bool = False) -> Tensor:
    if causal:
        return v.cumsum(2) / torch.arange(1, v.shape[2] + 1).unsqueeze(-1)
    return v.mean(2, keepdim=True).expand_as(v).contiguous()  # a row for each position, as ours
