"""Functions and modules of torch as the checks call them; see _callees.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ._function import Function, Weights, answer_of


def visible_pairs(
    causal: bool, kv_lengths: list[int] | None, q: torch.Tensor, k: torch.Tensor
) -> torch.Tensor | None:
    """bool [batch, 1, q_len, kv_len], True where a query sees a key; None: all see all. Causal rows
    are aligned at the end: query i sees keys j <= i + kv_len - q_len."""
    if not causal and kv_lengths is None:
        return None
    (batch, _, q_len, _), kv_len = q.shape, k.shape[2]
    keys = torch.arange(kv_len)
    seen = torch.ones(batch, 1, q_len, kv_len, dtype=torch.bool)
    if causal:
        seen &= keys <= torch.arange(q_len)[:, None] + kv_len - q_len
    if kv_lengths is not None:
        seen &= (keys < torch.tensor(kv_lengths)[:, None])[:, None, None]
    return seen


class TorchCallee:
    """A function, a module, or an instance of a class of modules made for one configuration."""

    def __init__(self, function: Function, config: dict[str, Any], seed: int,
                 in_double: bool) -> None:  # fmt: skip
        self.function, self.seed = function, seed
        self.module: torch.nn.Module | None = None
        if function.is_class:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.module = function.call(**config, **function.params).eval()
            self.module = self.module.double() if in_double else self.module.float()
        self.values = dict(self._values())
        self.masks: dict[tuple[int, ...], torch.Tensor | None] = {}  # without padding, by shape

    def _values(self) -> list[tuple[str, torch.Tensor]]:
        if self.module is None:
            return []
        named = [*self.module.named_parameters(), *self.module.named_buffers()]
        return [(name, t) for name, t in named if t.is_floating_point()]

    def weights(self) -> Weights:
        return [(name, np.ascontiguousarray(t.detach().numpy()), t.requires_grad)
                for name, t in self.values.items()]  # fmt: skip

    def call(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool,
             kv_lengths: list[int] | None, weights: list[np.ndarray],
             gradients: bool) -> tuple[np.ndarray, Any]:  # fmt: skip
        for tensor, now in zip(self.values.values(), weights):
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(now))
        inputs = [torch.from_numpy(x).requires_grad_(gradients) for x in (q, k, v)]
        with torch.set_grad_enabled(gradients), torch.random.fork_rng(
            devices=[], enabled=self.function.random
        ):
            if self.function.random:
                torch.manual_seed(self.seed)
            output = self._forward(inputs, causal, kv_lengths)
        answer = output.detach().numpy() if isinstance(output, torch.Tensor) else output
        array = answer_of(self.function, answer, q)
        if not gradients or not output.requires_grad:
            return array, None
        learned = [t for t in self.values.values() if t.requires_grad]

        def back(grad_output: np.ndarray) -> list[np.ndarray | None]:
            seed = torch.from_numpy(grad_output).reshape(output.shape)
            found = torch.autograd.grad(output, [*inputs, *learned], seed, allow_unused=True)
            of_weights = iter(found[3:])
            all_of = [next(of_weights) if t.requires_grad else None for t in self.values.values()]
            return [None if g is None else np.ascontiguousarray(g.numpy())
                    for g in (*found[:3], *all_of)]  # fmt: skip

        return array, back

    def _forward(self, inputs: list[torch.Tensor], causal: bool,
                 kv_lengths: list[int] | None) -> Any:  # fmt: skip
        if self.module is not None:
            return self.module(*inputs, self._mask(inputs, causal, kv_lengths))
        lengths = None if kv_lengths is None else torch.tensor(kv_lengths)
        return self.function.call(*inputs, **self.function.options(causal, lengths))

    def _mask(self, inputs: list[torch.Tensor], causal: bool,
              kv_lengths: list[int] | None) -> torch.Tensor | None:  # fmt: skip
        q, k = inputs[0], inputs[1]
        if kv_lengths is not None:
            return visible_pairs(causal, kv_lengths, q, k)
        shape = (q.shape[0], q.shape[2], k.shape[2], int(causal))
        if shape not in self.masks:
            self.masks = {shape: visible_pairs(causal, None, q, k)}
        return self.masks[shape]
