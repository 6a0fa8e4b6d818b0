"""The contract checks of the library on any function of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from . import _core
from ._callees import function_of, make_callee, refuses_double
from ._core import Error
from ._function import Function

NOT_COUNTED = "the cost of a Python function is not counted"
PROMISES = ("exact", "causal", "cross", "padding", "convex", "permutable", "rowwise", "random",
            "fixed_length")  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One check of one function."""

    subject: str  # the function's name
    check: str  # "causality", "gradients (double)"
    outcome: str  # "passed", "failed" or "skipped"
    detail: str  # what was measured and what is allowed, or why it was skipped

    def __str__(self) -> str:
        words = (self.subject, self.check, self.outcome, self.detail)
        return _core.report_line(*words, False).removesuffix("\n")


@dataclass(frozen=True)
class Report:
    """The results of all checks, in the order of `attnbench check`. Printed, it is that report."""

    results: tuple[Result, ...]
    has_formula: bool = True  # whether a wrong formula would have been seen, or was not looked for

    @property
    def passed(self) -> bool:
        """Whether no check failed, and not all were skipped."""
        return not self.failed and any(r.outcome == "passed" for r in self.results)

    @property
    def failed(self) -> tuple[Result, ...]:
        return tuple(r for r in self.results if r.outcome == "failed")

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __getitem__(self, check: str) -> Result:
        """The result of a check by its name, such as "causality"."""
        for result in self.results:
            if result.check == check:
                return result
        raise KeyError(check)

    def __str__(self) -> str:
        count = {o: sum(r.outcome == o for r in self.results) for o in ("passed", "failed", "skipped")}
        total = f"{count['passed']} passed, {count['failed']} red, {count['skipped']} skipped"
        told = [(r.subject, r.check, r.outcome, r.detail) for r in self.results]
        return "\n".join([*map(str, self.results), total, *_core.remarks_on(told, self.has_formula)])

    __repr__ = __str__


def check(
    fn: Callable[..., Any],
    *,
    exact: bool = False,
    causal: bool = False,
    cross: bool = False,
    padding: bool = False,
    convex: bool = False,
    permutable: bool = False,
    rowwise: bool = False,
    random: bool = False,
    fixed_length: bool = False,
    multiple_of: int = 1,
    reads: str = "qk",
    backward: Callable[..., Any] | None = None,
    params: dict[str, Any] | None = None,
    framework: str | None = None,
    name: str | None = None,
    quick: bool = False,
    only: str | None = None,
) -> Report:
    """Runs the contract checks of `attnbench check` on a function: the same code, which calls it.

    Args:
        fn: One of
            a function of torch tensors or NumPy arrays, fn(q, k, v) -> output. It gets `causal`
            (bool) where it promises to be causal, and `kv_lengths` (integers [batch], or None)
            where it promises padding;
            a class of torch.nn.Module, made as fn(heads=, head_dim=, max_len=, causal=, **params)
            and called, in evaluation mode, as module(q, k, v, mask). mask is None, or bool [batch, 1, q_len, kv_len],
            True where a query sees a key. Its parameters and floating-point buffers are weights,
            whose gradients are checked too. max_len is the longest length that it will see.
            q is [batch, heads, q_len, head_dim], k and v [batch, heads, kv_len, head_dim], the
            output as q. All are C-contiguous and must not be changed.
        exact: It promises to equal softmax attention with scale 1/sqrt(head_dim).
        causal: It can hide the future. Query i sees keys j <= i + kv_len - q_len.
        cross: q_len may differ from kv_len.
        padding: It honours kv_lengths; padding may hold anything, even NaN.
        convex: Outputs are weighted means of visible values.
        permutable: Permuting positions permutes the output.
        rowwise: The output of a query of cross-attention does not depend on the other queries.
        random: It draws from the global generator of torch or NumPy, which is seeded before a call.
        fixed_length: A class is made for one longest length.
        multiple_of: Lengths that are no multiple are not tried. Most checks need others, and are
            skipped: let the function pad its inputs instead.
        reads: Which of queries and keys it reads: "qk", "q", "k" or "".
        backward: Of a NumPy function, backward(q, k, v, grad_output, causal=, kv_lengths=) ->
            gradients of q, k and v. Without it gradients of NumPy functions are not checked.
        params: Further keywords of a class when it is made, or of a function when it is called.
        framework: "numpy" or "torch"; None finds out by a call.
        name: In the report; None: the function's own.
        quick: Only the checks that `attnbench run` asks before it publishes, at fewer lengths.
        only: The name of one check.

    Returns:
        The report. Gradients, masks and what else rounding could hide are also checked in float64,
        where the function computes in float64. FLOPs and memory are not counted: skipped. An
        exception of the function is a failed check.

    Raises:
        Error: `fn` does not take what it is called with, which is said before any check; or an
            argument is not valid.
        KeyboardInterrupt: Ctrl-C, also where the function caught it last.
    """
    promised = {"exact": exact, "causal": causal, "cross": cross, "padding": padding,
                "convex": convex, "permutable": permutable, "rowwise": rowwise, "random": random,
                "fixed_length": fixed_length}  # fmt: skip
    if multiple_of < 1:
        raise Error(f"multiple_of is {multiple_of}; expected at least 1")
    if not set(reads) <= {"q", "k"}:
        raise Error(f"reads is '{reads}'; expected 'qk', 'q', 'k' or ''")
    called = name or getattr(fn, "__name__", type(fn).__name__)
    function = function_of(fn, framework, causal=causal, padding=padding, random=random,
                           backward=backward, params=dict(params or {}))  # fmt: skip
    promises = {"name": called, "multiple_of": multiple_of, "reads_queries": "q" in reads,
                "reads_keys": "k" in reads, **promised}  # fmt: skip
    names = _core.checks_of(promises)
    if only is not None and only not in names:
        raise Error(f"check '{only}' is not one of {', '.join(names)}")
    chosen = [n for n in names if only in (None, n)]
    return Report(tuple(_results(function, promises, chosen, quick)), exact or only is not None)


def _results(function: Function, promises: dict[str, Any], names: list[str],
             quick: bool) -> Iterator[Result]:  # fmt: skip
    subject = promises["name"]
    in_double = [n for n in _core.double_checks_of(promises) if n in names]
    if not function.has_gradients:
        in_double = [n for n in in_double if n != "gradients"]
    refusal = refuses_double(function, False, promises["multiple_of"]) if in_double else None
    for name in names:
        if name in ("flops", "memory"):
            yield Result(subject, name, "skipped", NOT_COUNTED)
        elif name == "gradients" and not function.has_gradients:
            yield Result(subject, name, "skipped", "a NumPy function without `backward` has none")
        elif name == "gradients" and refusal is None:
            continue  # in double alone, as of the catalogue
        else:
            yield from _one(function, promises, name, quick, False)
    for name in in_double:
        if refusal is not None:
            yield Result(subject, f"{name} (double)", "skipped", refusal)
        else:
            yield from _one(function, promises, name, quick, True)


def _one(function: Function, promises: dict[str, Any], name: str, quick: bool,
         in_double: bool) -> Iterator[Result]:  # fmt: skip
    found = Result(*_core.check(promises, partial(make_callee, function), name, not quick, in_double))
    if found.detail != "not one of the quick checks":
        yield found
