"""JAX's side: jax.nn.dot_product_attention, compiled by jit.

It has no setting for threads: it takes the cores that this process may use.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_platforms", "cpu")


def hello() -> dict[str, Any]:
    return {"version": jax.__version__, "settings": {"mode": "jit", "implementation": "xla"}}


class attention:
    """[batch, len, heads, head_dim], JAX's layout; arrays are turned once, outside the clock."""

    def __init__(self, request: dict[str, Any]) -> None:
        if request["name"] != "full":
            raise ValueError(f"no {request['name']} in JAX")
        causal = request["causal"]
        self.inputs = [self.read(request[name]) for name in "qkv"]
        self.grad_out = self.read(request["grad_out"])

        def call(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
            return jax.nn.dot_product_attention(q, k, v, is_causal=causal)

        def differentiated(grad_out: jax.Array, *inputs: jax.Array) -> Any:
            out, pull_back = jax.vjp(call, *inputs)
            return out, pull_back(grad_out)

        self.call, self.differentiated = jax.jit(call), jax.jit(differentiated)

    @staticmethod
    def read(path: str) -> jax.Array:
        return jnp.asarray(np.load(path).transpose(0, 2, 1, 3))

    def forward(self) -> jax.Array:
        return jax.block_until_ready(self.call(*self.inputs))

    def train(self) -> Any:
        return jax.block_until_ready(self.differentiated(self.grad_out, *self.inputs))

    def write(self, folder: str) -> None:
        out, gradients = self.train()
        names = ("forward", "out", "grad_q", "grad_k", "grad_v")
        for name, array in zip(names, (self.forward(), out, *gradients), strict=True):
            np.save(f"{folder}/{name}.npy", np.asarray(array).transpose(0, 2, 1, 3))
