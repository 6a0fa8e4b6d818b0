"""PyTorch's flex_attention under torch.compile: patterns said as a mask of pairs, forward only.

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
    raise ValueError(f"no {name} in flex_attention")


def mask_of(request: dict[str, Any], length: int) -> Mask:
    """What flex_attention calls mask_mod."""
    pattern, causal = sees(request, length), request["causal"]

    def mask(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return pattern(h, i, j) & (i >= j) if causal else pattern(h, i, j)

    return mask


class attention:
    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(request["threads"])
        self.inputs = [read(request[name]) for name in "qkv"]
        heads, length = self.inputs[0].shape[1:3]
        mask = mask_of(request, length)
        by_head = heads if request["name"] == "bigbird" else None
        self.mask = create_block_mask(mask, None, by_head, length, length, device="cpu")
        torch.compiler.reset()  # what was compiled for the block before
        self.call = torch.compile(flex_attention, dynamic=False)

    def forward(self) -> Tensor:
        with torch.inference_mode():
            return self.call(*self.inputs, block_mask=self.mask)

    def write(self, folder: str) -> None:
        np.save(f"{folder}/forward.npy", self.forward().numpy())
