"""PyTorch's side, eager: its own attention, the variants written out, a training step."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from . import torch_attention, torch_model
from .torch_model import read


def hello() -> dict[str, Any]:
    return {
        "version": torch.__version__,
        "settings": {
            "mode": "eager",
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        },
    }


def model(request: dict[str, Any]) -> torch_model.Training:
    torch.set_num_threads(request["threads"])
    return torch_model.Training(request)


class attention:
    """One variant on given q, k, v and weights: forward alone, or forward and all gradients."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(request["threads"])
        self.inputs = {name: read(request[name]).requires_grad_() for name in "qkv"}
        self.grad_out = read(request["grad_out"])
        name, params = request["name"], request["params"]
        weights = {key: read(path) for key, path in request.get("set", {}).items()}
        learned = {key: w.requires_grad_() for key, w in weights.items() if key != "omega"}
        self.leaves = {**self.inputs, **learned}
        function = getattr(torch_attention, name)
        self.call = partial(function, **self.inputs, **weights, **params)
        if request["causal"]:
            self.call = partial(self.call, causal=True)

    def forward(self) -> torch.Tensor:
        with torch.inference_mode():
            return self.call()

    def train(self) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        out = self.call()
        return out, torch.autograd.grad(out, tuple(self.leaves.values()), self.grad_out)

    def write(self, folder: str) -> None:
        np.save(f"{folder}/forward.npy", self.forward().numpy())
        out, gradients = self.train()
        np.save(f"{folder}/out.npy", out.detach().numpy())
        for name, gradient in zip(self.leaves, gradients):
            np.save(f"{folder}/grad_{name}.npy", gradient.numpy())
