"""PyTorch's flex_attention under torch.compile, forward only: patterns said as a mask of pairs, and
what a variant adds to a logit as a change of scores.

On CPUs PyTorch 2.15 answers a backward pass by "FlexAttention does not support backward on CPU".
It needs a C++ compiler, and compiles for 10 s and more a shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from . import in_torch
from .torch_model import read

Sees = Callable[[Tensor, Tensor, Tensor], Tensor]  # head, query, key -> whether it sees it
Mask = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # batch entry, head, query, key
Score = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]  # the score, and those


def hello() -> dict[str, Any]:
    said = in_torch.hello()
    return {**said, "settings": {**said["settings"], "mode": "flex_attention, torch.compile"}}


def sees(request: dict[str, Any], length: int) -> Sees:
    """The variant's pattern, without causality."""
    name, p = request["name"], request["params"]
    if name == "truncated":
        return lambda h, i, j: (i - j).abs() <= p["window"]
    if name == "longformer":
        first = p["global_tokens"]
        return lambda h, i, j: ((i - j).abs() <= p["window"]) | (i < first) | (j < first)
    if name == "local":
        size, back = p["block"], p["look_back"]
        return lambda h, i, j: (i // size >= j // size) & (i // size - j // size <= back)
    if name == "sparse":
        stride = round(length**0.5)
        return lambda h, i, j: ((i - j).abs() <= stride) | ((i - j) % stride == 0)
    if name == "bigbird":
        size, pattern = p["block"], read(request["given"]["pattern"])
        return lambda h, i, j: pattern[h, i // size, j // size]
    if name == "sinks":
        return lambda h, i, j: (j < p["sinks"]) | (j > i - p["window"])
    if name == "dilated":
        times = times_of(request)
        return lambda h, i, j: times(h, i, j) > 0
    if name in ("softmax_one", "fox"):
        return lambda h, i, j: i >= 0
    raise ValueError(f"no {name} in flex_attention")


def times_of(request: dict[str, Any]) -> Sees:
    """On how many levels of `dilated` a query sees a key; so often the key counts."""
    p, heads = request["params"], np.load(request["q"], mmap_mode="r").shape[1]

    def times(h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        count = torch.zeros_like(i - j)
        for level in range(p["levels"]):
            step = p["ratio"] ** level
            whole, offset = p["segment"] * step, h // -(-heads // step)
            same = (i // whole == j // whole) & (i % whole % step == offset)
            count = count + (same & (j % whole % step == offset))
        return count

    return times


def mask_of(request: dict[str, Any], length: int) -> Mask:
    """What flex_attention calls mask_mod. The key behind all others is softmax_one's sink."""
    pattern, causal = sees(request, length), request["causal"]

    def mask(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return pattern(h, i, j) & ((i >= j) | (j == length)) if causal else pattern(h, i, j)

    return mask


def score_of(request: dict[str, Any]) -> Score | None:
    """What flex_attention calls score_mod."""
    if request["name"] == "dilated":
        times = times_of(request)
        return lambda score, b, h, i, j: score + times(h, i, j).clamp(min=1).float().log()
    if request["name"] == "fox":  # a sum over all gates has too few digits in float32
        gates = read(request["gates"]["forget"]).double()
        kept = torch.nn.functional.logsigmoid(gates).cumsum(2)[..., 0].contiguous()
        return lambda score, b, h, i, j: score + (kept[b, h, i] - kept[b, h, j]).float()
    return None


def inputs_of(request: dict[str, Any]) -> list[Tensor]:
    return [read(request[name]) for name in "qkv"]


def with_sink(request: dict[str, Any], x: Tensor) -> Tensor:
    """The keys or values of softmax_one have a row of zeros behind them."""
    return torch.nn.functional.pad(x, (0, 0, 0, 1)) if request["name"] == "softmax_one" else x


BY_HEAD = ("bigbird", "dilated")  # whose mask differs from head to head


class attention:
    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(request["threads"])
        self.inputs = inputs_of(request)
        heads, length = self.inputs[0].shape[1:3]
        keys = with_sink(request, self.inputs[1]).shape[2]
        by_head = heads if request["name"] in BY_HEAD else None
        mask = create_block_mask(
            mask_of(request, length), None, by_head, length, keys, device="cpu"
        )
        score = score_of(request)

        def call(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            k, v = with_sink(request, k), with_sink(request, v)
            return flex_attention(q, k, v, score_mod=score, block_mask=mask)

        torch.compiler.reset()  # what was compiled for the block before
        self.call = torch.compile(call, dynamic=False)

    def forward(self) -> Tensor:
        with torch.inference_mode():
            return self.call(*self.inputs)

    def write(self, folder: str) -> None:
        np.save(f"{folder}/forward.npy", self.forward().numpy())
