"""attention() in torch's graph: the library's backward pass as an autograd.Function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ._arrays import shared
from ._attention import Call


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, arrays: tuple[Any, ...], *inputs: torch.Tensor) -> torch.Tensor:
        ctx.call, ctx.made = call, _pass_of(call, arrays, True)
        ctx.save_for_backward(*inputs)  # raises in backward where one was changed
        return torch.from_numpy(ctx.made.output())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        saved = ctx.saved_tensors
        # A tape is read once. With retain_graph, a later backward makes the pass again.
        made, ctx.made = ctx.made, None
        if made is None:
            made = _pass_of(ctx.call, [tensor.detach().numpy() for tensor in saved], True)
        q, k, v, weights = made.backward(shared("grad_output", grad_output.contiguous()))
        of_weights = [weights.get(name) for name in ctx.call.names]
        found = [None if g is None else torch.from_numpy(g) for g in (q, k, v, *of_weights)]
        wanted = zip(found, ctx.needs_input_grad[2:])
        return (None, None, *(gradient if needed else None for gradient, needed in wanted))


def _pass_of(call: Call, arrays: Sequence[Any], gradients: bool) -> Any:
    q, k, v, *weights = arrays
    return call.forward(q, k, v, weights, gradients)


def on_tensors(call: Call, arrays: tuple[Any, ...], given: tuple[Any, ...]) -> torch.Tensor:
    """The output for q, k, v and the weights `given`, whose memory `arrays` are; recorded in torch's
    graph where one of them requires a gradient."""
    tensors = [x if isinstance(x, torch.Tensor) else torch.from_numpy(x) for x in given]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return _Attention.apply(call, arrays, *tensors)
    return torch.from_numpy(_pass_of(call, arrays, False).output())
