"""onnxruntime's side: its contributed operator com.microsoft.MultiHeadAttention, forward only."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

DOMAIN, IR_VERSION, OPSET = "com.microsoft", 10, 17


def hello() -> dict[str, Any]:
    return {"version": onnxruntime.__version__, "settings": {"provider": "CPUExecutionProvider"}}


def model_of(heads: int, causal: bool) -> bytes:
    """q [batch, len, heads·head_dim], k and v [batch, heads, len, head_dim] to an output like q."""

    def value(name: str) -> Any:
        shape = [None] * (4 if name in "kv" else 3)
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    node = helper.make_node(
        "MultiHeadAttention", list("qkv"), ["out"], domain=DOMAIN,
        num_heads=heads, unidirectional=int(causal),
    )  # fmt: skip
    graph = helper.make_graph([node], "attention", [value(x) for x in "qkv"], [value("out")])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString()


class attention:
    """k and v are as everybody's; q is [batch, len, heads·head_dim], the only layout the operator
    takes. It is turned once, outside the clock."""

    def __init__(self, request: dict[str, Any]) -> None:
        if request["name"] != "full":
            raise ValueError(f"no {request['name']} in onnxruntime")
        arrays = {name: np.load(request[name]) for name in "qkv"}
        self.heads = arrays["q"].shape[1]
        self.inputs = {**arrays, "q": self.merged(arrays["q"])}
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = request["threads"]
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            model_of(self.heads, request["causal"]), options, providers=["CPUExecutionProvider"]
        )

    @staticmethod
    def merged(array: np.ndarray) -> np.ndarray:
        batch, heads, length, dim = array.shape
        return np.ascontiguousarray(array.transpose(0, 2, 1, 3)).reshape(batch, length, heads * dim)

    def forward(self) -> np.ndarray:
        return self.session.run(None, self.inputs)[0]

    def write(self, folder: str) -> None:
        out = self.forward()
        split = out.reshape(*out.shape[:2], self.heads, -1).transpose(0, 2, 1, 3)
        np.save(f"{folder}/forward.npy", split)
