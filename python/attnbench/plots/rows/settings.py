"""What a cell was measured under: contract, scope, mode and shape; settings of training, of which
those chosen on validation are drawn; the metric of its score; the marks of a number that fails a
condition. And names of variants among others."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from .read import FAILURES, RUN, Cell, Params
from .terms import BITS, is_error

SCOPES = ("attention", "layer", "model")
SCOPE_WORDS = {"attention": "attention alone", "layer": "encoder layer", "model": "whole model"}
MODES = ("forward", "train", "decode")
MODE_WORDS = {"forward": "forward", "train": "forward and backward", "decode": "decoding one token", "serve": "a call of a workload"}
SHAPE = {
    "batch": "batch {}",
    "heads": "{} heads",
    "head_dim": "head width {}",
    "threads": "{} threads",
    "kv_heads": "kv_heads {}",  # where query heads share keys
    "dtype": "{}",  # where it is not float32
    "kv_dtype": "cache {}",  # of decoding, where it is not float32
    "layers": "{} layers",  # of a whole model, where they are not two
    "equal": "equal {}",  # of layers, where it is not their width
    "workload": "workload {}",  # a batch as it is served
    "arrivals": "{} arrivals a second",  # at the server of a workload
    "packed": "packed {}",  # sequences of unequal lengths
}


def contract(cell: Cell) -> str:
    return "causal" if cell.axes.get("causal") else "not causal"


def scope_of(cell: Cell) -> str:
    return str(cell.axes.get("scope") or "attention")


def scope_text(scope: str) -> str:
    return SCOPE_WORDS.get(scope, scope)


def mode_of(cell: Cell) -> str:
    return str(cell.axes.get("mode") or "forward")


def dtype_of(cell: Cell) -> str:
    """What numbers are stored in; figures of different ones are no rows of one comparison."""
    stored = str(cell.axes.get("dtype") or "float32")
    cached = cell.axes.get("kv_dtype")
    return f"{stored}, cache {cached}" if cached else stored


def decodes(cell: Cell) -> bool:
    return mode_of(cell) == "decode"


def shape_of(cell: Cell) -> tuple[Any, ...]:
    return tuple(cell.axes.get(name) for name in SHAPE)


def shape_name(cell: Cell) -> str:
    """Returns `-b1-h8-d64-t1`, of names of files."""
    batch, heads, head_dim, threads, kv_heads, dtype, kv_dtype, layers, equal, workload, arrivals, packed = shape_of(cell)
    shared = f"-kv{kv_heads}" if kv_heads else ""
    stored = f"-{dtype}" if dtype else ""
    stored += f"-kv-{kv_dtype.replace('/', '-')}" if kv_dtype else ""
    deep = f"-n{layers}" if layers else ""
    alike = f"-equal-{equal}" if equal else ""
    served = f"-{workload}" if workload else ""
    served += f"-arrivals-{arrivals:g}" if arrivals else ""
    served += f"-packed-{packed}" if packed else ""
    return f"-b{batch}-h{heads}-d{head_dim}-t{threads}{shared}{stored}{deep}{alike}{served}"


def shape_text(cell: Cell, names: Iterable[str] = tuple(SHAPE)) -> str:
    known = {name: cell.axes[name] for name in names if cell.axes.get(name) is not None}
    said = [SHAPE[name].format(value) for name, value in known.items()]
    return ", ".join(s[:-1] if s in ("1 heads", "1 threads") else s for s in said)


SETTING = "training."  # before the name of a setting among a cell's parameters


def told_apart(cells: list[Cell], always: tuple[str, ...] = ()) -> list[Cell]:
    """Cells that differ in a setting and in nothing else drawn carry it as a parameter, all cells
    those of `always` that differ anywhere. What was tuned is each variant's own choice."""
    own, shared = _values(cells, _series), _values(cells, lambda _: None).get(None, {})
    out = []
    for cell in cells:
        told = tuple(
            (SETTING + name, value)
            for name, value in sorted(_fixed(cell).items())
            if len(own[_series(cell)][name]) > 1 or (name in always and len(shared[name]) > 1)
        )
        out.append(replace(cell, params=(*cell.params, *told)) if told else cell)
    return out


def differing(cells: list[Cell]) -> list[str]:
    """Settings that were not tuned and differ between cells of one task."""
    values = _values(cells, _task)
    return sorted({name for of in values.values() for name, seen in of.items() if len(seen) > 1})


def without_settings(params: Params) -> Params:
    return tuple((k, v) for k, v in params if not k.startswith(SETTING))


def without_run(params: Params) -> Params:
    """Without the name of a run, which is no parameter of the variant."""
    return tuple((k, v) for k, v in params if k != RUN)


def shown(key: str) -> str:
    return key.removeprefix(SETTING).replace("_", " ") if key.startswith(SETTING) else key


def trained_width(cell: Cell) -> int | None:
    """Of the settings; None where equal layers have a width of their own."""
    return None if cell.axes.get("equal") else cell.training.get("width")


def _fixed(cell: Cell) -> dict[str, str]:
    fixed = {
        k: v if isinstance(v, str) else json.dumps(v)
        for k, v in cell.training.items()
        if k not in cell.tuned
    }
    if cell.training:
        fixed["equal_layers"] = str(cell.axes.get("equal") or "width")  # what layers have in common
    return fixed


def _values(cells: list[Cell], key: Callable[[Cell], Any]) -> dict[Any, dict[str, set[str]]]:
    """What each setting is among the cells of one key."""
    out: dict[Any, dict[str, set[str]]] = {}
    for cell in cells:
        for name, value in _fixed(cell).items():
            out.setdefault(key(cell), {}).setdefault(name, set()).add(value)
    return out


def _task(cell: Cell) -> Any:
    return cell.task, cell.task_params


def _series(cell: Cell) -> Any:
    return *_task(cell), cell.variant, cell.params


NAMES = {
    "accuracy": "test accuracy",
    "exact_match": "test exact match",
    "mean_squared_error": "test mean squared error",
    "bits_per_token": "test bits a token",
}


def name(metric: str) -> str:
    return NAMES.get(metric, f"test {metric.replace('_', ' ')}")


def written(value: float, metric: str) -> str:
    return f"{value:.2g}" if is_error(metric) and metric != BITS else f"{value:.3f}"


def unless_error(metrics: Iterable[str], shares: str, errors: str) -> str:
    """A subtitle's word on what is better, for the metrics of its panels."""
    found = set(metrics)
    scores = [shares] if any(not is_error(m) for m in found) else []
    least = [word for word, metric in (("errors", "mean_squared_error"), ("bits", BITS)) if metric in found]
    return ", ".join(scores + ([f"of {' and '.join(least)} {errors}"] if least else []))


def spec_text(name: str, params: Iterable[tuple[str, Any]]) -> str:
    """`truncated[window=4]`, as the command line takes it."""
    words = ",".join(f"{k}={v}" for k, v in params)
    return f"{name}[{words}]" if words else name


def spec_among(variant: str, params: Params, cells: Iterable[Cell]) -> str:
    """`truncated[window=4]`: with those parameters in which the cells of the variant differ."""
    every = [dict(c.params) for c in cells if c.variant == variant]
    return spec_text(variant, [(n, v) for n, v in params if len({str(p.get(n)) for p in every}) > 1])


CUT, LOST, IDENTITIES, UNKNOWN, DISTURBED = "\u2020", "!", "~", "?", "*"
MEANINGS = {
    CUT: "the training was stopped by its number of steps, not by itself: what was learned by then",
    LOST: "a training of another seed failed, and the score is that of the others",
    IDENTITIES: "no reference was compared at this length, only answers of the variant with each other",
    UNKNOWN: "the answer was not compared at this length",
    DISTURBED: "measured on a disturbed machine",
}
SHORT = {
    CUT: "training cut off by its steps",
    LOST: "without a seed whose training failed",
    IDENTITIES: "compared with its own answers alone",
    UNKNOWN: "answer not compared at this length",
    DISTURBED: "disturbed",
}
STOPPED = ("steps", "time")  # how a training that did not end by itself ended


def unfinished(cells: Iterable[Cell | None]) -> bool:
    """Whether a training of the cells was cut off: its score is marked, and neither ranked, nor told in sentences, nor
    joined by a line."""
    return any(c is not None and c.ok and _ended_by(c) in STOPPED for c in cells)


def _ended_by(cell: Cell) -> str:
    """Rows from before `ended_by` say `stopped_by`."""
    return str(cell.metrics.get("ended_by") or cell.metrics.get("stopped_by") or "")


def mark_of(cell: Cell) -> str:
    """Returns the marks of a cell's own number."""
    if not cell.ok:
        return LOST if cell.measure == "accuracy" and cell.status in FAILURES else ""
    if cell.measure == "accuracy":
        return CUT if _ended_by(cell) in STOPPED else ""
    if cell.measure not in ("speed", "memory"):
        return ""
    noisy = DISTURBED if cell.noisy else ""
    by = cell.verified.get("by")
    if by == "identities":
        return (IDENTITIES if cell.verified.get("identities") else UNKNOWN) + noisy
    return noisy if by else UNKNOWN + noisy


def key_of(cells: Iterable[Cell | None]) -> list[str]:
    """Returns what each mark of the cells says, a line each."""
    return [f"{mark} {SHORT[mark]}" for mark in marks_of(cells)]


def marks_of(cells: Iterable[Cell | None]) -> str:
    """Returns each mark of the cells behind a number once, in the order of MEANINGS."""
    found = {mark for cell in cells if cell for mark in mark_of(cell)}
    return "".join(mark for mark in MEANINGS if mark in found)


def chosen_on_validation(cells: list[Cell]) -> list[Cell]:
    """Cells without those of tuned settings that lost, by the mean validation score over seeds.

    A cell that failed counts as the worst score, 0 or an endless error, a choice with fewer cells
    than another, in a sweep that is not done, loses to it, a tie goes to the smaller values: as in
    the table of `attnbench run`. What else differs in training becomes a parameter of the cells.
    """
    return told_apart(winners(cells))


def winners(cells: list[Cell], apart: Callable[[Cell], Any] = lambda _: None) -> list[Cell]:
    """The cells chosen; those for which `apart` differs do not compete with each other."""
    errors = {c.task for c in cells if c.ok and is_error(c.scored_by)}
    contests: dict[Any, dict[tuple[Any, ...], list[float]]] = {}
    for cell in filter(is_tuned, cells):
        scores = contests.setdefault((_shared(cell), apart(cell)), {})
        scores.setdefault(_setting(cell), []).append(_merit(cell, cell.task in errors))
    best = {
        shared: max(sorted(choices), key=lambda v: (len(choices[v]), sum(choices[v])))
        for shared, choices in contests.items()
    }
    return [c for c in cells if not is_tuned(c) or best[_shared(c), apart(c)] == _setting(c)]


def _merit(cell: Cell, error: bool) -> float:
    """Validation, of an error its negative; the worst there is where the cell failed."""
    score = cell.metric("validation") if cell.ok else None
    if error:
        return -math.inf if score is None else -score
    return score or 0.0


def is_tuned(cell: Cell) -> bool:
    return bool(cell.tuned and cell.training)


def choice_of(cell: Cell) -> str:
    """`learning_rate=0.003`: the tuned settings of a cell."""
    return ", ".join(f"{name}={json.dumps(cell.training.get(name))}" for name in cell.tuned)


def tuning_note(cells: list[Cell]) -> str:
    """The caption's word on what was chosen, for every variant from the same choices, and on what
    differs without having been chosen."""
    names = sorted({name for c in cells if is_tuned(c) for name in c.tuned})
    others = differing(cells)
    words = [f"Chosen on validation for each variant and task: {_listed(names)}."] if names else []
    words += [f"Trained with different {_listed(others)}."] if others else []
    return " ".join(words)


def _listed(names: list[str]) -> str:
    return ", ".join(names).replace("_", " ")


def _setting(cell: Cell) -> tuple[Any, ...]:
    return tuple(cell.training.get(name) for name in cell.tuned)


def _shared(cell: Cell) -> str:
    """All but seed and choice; runs that must be told apart are so by a parameter, see runs.py."""
    training: dict[str, Any] = {k: v for k, v in cell.training.items() if k not in cell.tuned}
    axes = {k: v for k, v in cell.axes.items() if k != "seed"}
    what = [cell.variant, cell.params, cell.task, cell.task_params, axes, training, cell.tuned]
    return json.dumps(what, sort_keys=True)
