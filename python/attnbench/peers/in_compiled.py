"""PyTorch's side under torch.compile: the code of in_torch.py. Half a minute more a shape."""

from __future__ import annotations

from typing import Any

import torch

from . import in_torch, torch_model


def hello() -> dict[str, Any]:
    said = in_torch.hello()
    return {**said, "settings": {**said["settings"], "mode": "torch.compile"}}


def model(request: dict[str, Any]) -> torch_model.Training:
    torch.compiler.reset()  # what was compiled for the block before
    training = in_torch.model(request)
    training.model.compile(dynamic=False)
    return training


class attention(in_torch.attention):
    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request)
        torch.compiler.reset()
        self.call = torch.compile(self.call, dynamic=False)
