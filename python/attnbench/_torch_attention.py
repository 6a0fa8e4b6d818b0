"""attention() in torch's graph: the library's backward pass as an autograd.Function."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ._arrays import shared
from ._attention import Call


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, q: Any, k: Any, v: Any, *weights: Any) -> torch.Tensor:
        needed = any(ctx.needs_input_grad[1:])
        made = _pass_of(call, (q, k, v, *weights), needed)
        if needed:
            ctx.call, ctx.made = call, made
            ctx.save_for_backward(q, k, v, *weights)  # raises in backward where one was changed
        return torch.from_numpy(made.output())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        saved = ctx.saved_tensors
        # A tape is read once. With retain_graph, a later backward makes the pass again.
        made, ctx.made = ctx.made, None
        if made is None:
            made = _pass_of(ctx.call, saved, True)
        q, k, v, weights = made.backward(shared("grad_output", grad_output.contiguous()))
        of_weights = [weights.get(name) for name in ctx.call.names]
        found = [None if g is None else torch.from_numpy(g) for g in (q, k, v, *of_weights)]
        wanted = zip(found, ctx.needs_input_grad[1:])
        return (None, *(gradient if needed else None for gradient, needed in wanted))


def _pass_of(call: Call, inputs: tuple[torch.Tensor, ...], gradients: bool) -> Any:
    q, k, v, *weights = (tensor.detach().numpy() for tensor in inputs)
    return call.forward(q, k, v, weights, gradients)


def differentiable(call: Call, q: Any, k: Any, v: Any, weights: list[Any]) -> torch.Tensor:
    """The output, recorded in torch's graph where an input requires a gradient."""
    tensors = [w if isinstance(w, torch.Tensor) else torch.from_numpy(w) for w in weights]
    return _Attention.apply(call, q, k, v, *tensors)
