"""attention() in torch's graph: the library's backward pass as an autograd.Function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from ._arrays import Call, contiguous, shared
from ._core import Error


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: Call, arrays: list[Any], *inputs: torch.Tensor) -> torch.Tensor:
        ctx.call, ctx.made = call, _pass_of(call, arrays, True)
        ctx.save_for_backward(*inputs)  # raises in backward where one was changed
        return _output_of(ctx.made)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        saved = ctx.saved_tensors
        # A tape is read once. With retain_graph, a later backward makes the pass again.
        made, ctx.made = ctx.made, None
        if made is None:
            made = _pass_of(ctx.call, [tensor.detach().numpy() for tensor in saved], True)
        q, k, v, weights = made.backward(shared(contiguous("grad_output", grad_output)))
        of_weights = [weights.get(name) for name in ctx.call.names]
        found = [None if g is None else torch.from_numpy(g) for g in (q, k, v, *of_weights)]
        wanted = zip(found, ctx.needs_input_grad[2:])
        return (None, None, *(gradient if needed else None for gradient, needed in wanted))


def _pass_of(call: Call, arrays: Sequence[Any], gradients: bool) -> Any:
    q, k, v, *weights = arrays
    return call.forward(q, k, v, weights, gradients)


def _output_of(made: Any) -> torch.Tensor:
    output = torch.from_numpy(made.output())
    return output.view(torch.bfloat16) if output.dtype == torch.int16 else output


def on_tensors(call: Call, arrays: list[Any], given: tuple[Any, ...]) -> torch.Tensor:
    """The output for q, k, v and the weights `given`, whose memory `arrays` are; recorded in torch's
    graph where one of them requires a gradient."""
    named = zip(("q", "k", "v", *call.names), given)
    learned = [name for name, x in named if isinstance(x, torch.Tensor) and x.requires_grad]
    if not learned or not torch.is_grad_enabled():
        return _output_of(_pass_of(call, arrays, False))
    if given[0].dtype == torch.bfloat16:
        raise Error(f"{learned[0]} requires a gradient, and bfloat16 has no backward pass; "
                    "pass float32, or call under torch.no_grad()")  # fmt: skip
    tensors = [x if isinstance(x, torch.Tensor) else _tensor_over(x) for x in given]
    return _Attention.apply(call, arrays, *tensors)


def _tensor_over(array: np.ndarray) -> torch.Tensor:
    """Torch takes no array that is read-only or has a stride below 0, which a dimension of 1 may."""
    fits = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array if fits else array.copy())
