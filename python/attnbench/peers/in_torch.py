"""PyTorch's side, eager: its own attention, the variants written out, a training step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from . import (
    torch_attention,
    torch_convolutions,
    torch_gated,
    torch_hashing,
    torch_kernels,
    torch_levels,
    torch_low_rank,
    torch_memories,
    torch_model,
    torch_normalisers,
    torch_patterns,
    torch_selection,
    torch_states,
    torch_units,
)
from .torch_model import read

FAMILIES = (
    torch_attention, torch_patterns, torch_levels, torch_low_rank, torch_kernels, torch_hashing,
    torch_selection, torch_normalisers, torch_gated, torch_memories, torch_states, torch_convolutions,
    torch_units,
)  # fmt: skip
VARIANTS: dict[str, Callable[..., Any]] = {
    name: made for family in FAMILIES for name, made in family.VARIANTS.items()
}
# How PyTorch's layers hold weights, in attnbench's order of dimensions; turned outside the clock.
TURNED = {
    "recurrent": {"input": (1, 0), "state": (1, 0)},
    "conv": {"weight": (2, 1, 0)},
    "window_mlp": {"hidden": (2, 1, 0), "output": (2, 1, 0)},
    "base_conv": {"taps": (1, 0)},
}


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


class cache:
    """A step over keys and values of float32 or bfloat16; the query heads that share keys are so many
    queries of one head, which need no mask and no repeated keys."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(request["threads"])
        dtype = getattr(torch, request["kv_dtype"])
        q, self.k, self.v = (read(request[name]).to(dtype) for name in "qkv")
        self.shape = q.shape
        self.q = q.view(*self.k.shape[:2], -1, q.shape[3])

    def decode(self) -> torch.Tensor:
        with torch.inference_mode():
            return torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v)

    def write(self, folder: str) -> None:
        np.save(f"{folder}/decode.npy", self.decode().float().view(self.shape).numpy())


class attention:
    """One variant on given q, k, v and weights: forward alone, or forward and all gradients."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.set_num_threads(request["threads"])
        name, frozen = request["name"], request["frozen"]
        self.grad_out = read(request["grad_out"])
        self.turned = TURNED.get(name, {})
        inputs = {key: read(request[key]) for key in request["reads"]}
        weights = {key: self.turn(key, read(path)) for key, path in request["set"].items()}
        gates = {f"gate_{key}": read(path) for key, path in request.get("gates", {}).items()}
        held = {**inputs, **gates, **weights}
        self.leaves = {key: x.requires_grad_() for key, x in held.items() if key not in frozen}
        self.call = partial(self.called(request), **held)

    def called(self, request: dict[str, Any]) -> Any:
        """The variant with its parameters, and prepared where it is a class."""
        made, causal = VARIANTS[request["name"]], request["causal"]
        if isinstance(made, type):
            given = {key: read(path) for key, path in request.get("given", {}).items()}
            length = self.grad_out.shape[2]
            return made(length=length, causal=causal, **given, **request["params"])
        return partial(made, **request["params"], **({"causal": True} if causal else {}))

    def turn(self, name: str, weight: torch.Tensor) -> torch.Tensor:
        """As PyTorch's layers hold it, or back: these turns are their own inverses."""
        return weight.permute(self.turned[name]).contiguous() if name in self.turned else weight

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
            np.save(f"{folder}/grad_{name}.npy", self.turn(name, gradient).numpy())
