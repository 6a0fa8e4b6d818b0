"""ggml's side: ggml_flash_attn_ext on one CPU backend, forward only, in float32, and over caches of
16, 8 and 4 bits.

The libraries are those of the package libggml-python, called through ctypes. Its wheel is built for
AVX2; llama.cpp holds keys and values in 16 bits, which would not agree with the others to 1e-5.
"""

from __future__ import annotations

import ctypes
from ctypes import c_bool, c_float, c_int, c_int64, c_size_t, c_uint32, c_void_p
from importlib import metadata
from pathlib import Path
from typing import Any

import libggml
import numpy as np

from .plan import CACHES

LIBRARIES = Path(libggml.__file__).parent / "lib64"
TYPES = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8}  # enum ggml_type
EXACT = 10  # GGML_PREC_F32: sums in float32
# Threads wait by polling for a moment, then asleep: ours have their turn meanwhile. Without a pool ggml starts threads at each call,
# which takes milliseconds where the first one keeps polling on the core of the second.
POLL = 1
ROOM = 16 << 20  # bytes beside the arrays, for the graph
FEATURES = ("avx2", "fma", "f16c", "avx512")


class Memory(ctypes.Structure):
    _fields_ = [("mem_size", c_size_t), ("mem_buffer", c_void_p), ("no_alloc", c_bool)]


class Plan(ctypes.Structure):
    """ggml_cplan: the caller owns the memory that a computation works in."""

    _fields_ = [
        ("work_size", c_size_t), ("work_data", c_void_p), ("n_threads", c_int),
        ("threadpool", c_void_p), ("abort_callback", c_void_p), ("abort_callback_data", c_void_p),
        ("use_ref", c_bool),
    ]  # fmt: skip


class Pool(ctypes.Structure):
    """ggml_threadpool_params."""

    _fields_ = [
        ("cpumask", c_bool * 512), ("n_threads", c_int), ("priority", c_int), ("poll", c_uint32),
        ("strict_cpu", c_bool), ("paused", c_bool),
    ]  # fmt: skip


base = ctypes.CDLL(str(LIBRARIES / "libggml-base.so"), mode=ctypes.RTLD_GLOBAL)
cpu = ctypes.CDLL(str(LIBRARIES / "libggml-cpu.so"), mode=ctypes.RTLD_GLOBAL)
for library, name, result, arguments in (
    (base, "ggml_init", c_void_p, [Memory]),
    (base, "ggml_free", None, [c_void_p]),
    (base, "ggml_new_tensor_4d", c_void_p, [c_void_p, c_int] + [c_int64] * 4),
    (base, "ggml_get_data", c_void_p, [c_void_p]),
    (base, "ggml_quantize_chunk", c_size_t, [c_int, c_void_p, c_void_p] + [c_int64] * 3 + [c_void_p]),
    (base, "ggml_flash_attn_ext", c_void_p, [c_void_p] * 5 + [c_float] * 3),
    (base, "ggml_flash_attn_ext_set_prec", None, [c_void_p, c_int]),
    (base, "ggml_new_graph", c_void_p, [c_void_p]),
    (base, "ggml_build_forward_expand", None, [c_void_p, c_void_p]),
    (base, "ggml_threadpool_params_default", Pool, [c_int]),
    (cpu, "ggml_threadpool_new", c_void_p, [ctypes.POINTER(Pool)]),
    (cpu, "ggml_threadpool_free", None, [c_void_p]),
    (cpu, "ggml_graph_plan", Plan, [c_void_p, c_int, c_void_p]),
    (cpu, "ggml_graph_compute", c_int, [c_void_p, ctypes.POINTER(Plan)]),
):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments


def hello() -> dict[str, Any]:
    built = [name for name in FEATURES if getattr(cpu, f"ggml_cpu_has_{name}")()]
    return {
        "version": metadata.version("libggml-python"),
        "settings": {"built_for": " ".join(built), "keys_and_values": "float32, or as the cache is"},
    }


class Flash:
    """The operation on q in float32, and k and v of a type; the output is [batch, len, heads,
    head_dim], ggml's layout."""

    def __init__(self, request: dict[str, Any], kv_type: str) -> None:
        arrays = {name: np.ascontiguousarray(np.load(request[name]), np.float32) for name in "qkv"}
        batch, heads, length, dim = arrays["q"].shape
        self.shape = (batch, length, heads, dim)
        size = sum(array.nbytes for array in arrays.values()) + arrays["q"].nbytes
        wanted = base.ggml_threadpool_params_default(request["threads"])
        wanted.poll = POLL
        self.pool = cpu.ggml_threadpool_new(ctypes.byref(wanted))
        self.context = base.ggml_init(Memory(size + ROOM, None, False))
        tensors = [
            self.tensor(array, TYPES["f32" if name == "q" else kv_type])
            for name, array in arrays.items()
        ]
        self.out = base.ggml_flash_attn_ext(self.context, *tensors, None, dim**-0.5, 0.0, 0.0)
        base.ggml_flash_attn_ext_set_prec(self.out, EXACT)
        self.graph = base.ggml_new_graph(self.context)
        base.ggml_build_forward_expand(self.graph, self.out)
        self.plan = cpu.ggml_graph_plan(self.graph, request["threads"], self.pool)
        self.work = ctypes.create_string_buffer(max(1, self.plan.work_size))
        self.plan.work_data = ctypes.cast(self.work, c_void_p)

    def tensor(self, array: np.ndarray, kind: int) -> int:
        made = base.ggml_new_tensor_4d(self.context, kind, *reversed(array.shape))
        width = array.shape[-1]
        base.ggml_quantize_chunk(
            kind, array.ctypes.data, base.ggml_get_data(made), 0, array.size // width, width, None
        )
        return made

    def __del__(self) -> None:
        if hasattr(self, "context"):
            cpu.ggml_threadpool_free(self.pool)
            base.ggml_free(self.context)

    def compute(self) -> None:
        if failed := cpu.ggml_graph_compute(self.graph, ctypes.byref(self.plan)):
            raise RuntimeError(f"ggml_graph_compute answered {failed}")

    def answer(self) -> np.ndarray:
        self.compute()
        numbers = ctypes.cast(base.ggml_get_data(self.out), ctypes.POINTER(c_float))
        return np.ctypeslib.as_array(numbers, self.shape).transpose(0, 2, 1, 3)


class attention(Flash):
    """q, k, v as everybody's."""

    def __init__(self, request: dict[str, Any]) -> None:
        if request["name"] != "full" or request["causal"]:
            raise ValueError(f"no {request['name']} in ggml")
        super().__init__(request, "f32")

    forward = Flash.compute

    def write(self, folder: str) -> None:
        np.save(f"{folder}/forward.npy", self.answer())


class cache(Flash):
    """A step over a cache, whose heads of keys the query heads share."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request, CACHES[request["kv_dtype"]]["ggml"])

    decode = Flash.compute

    def write(self, folder: str) -> None:
        np.save(f"{folder}/decode.npy", self.answer())
