"""Markdown: the tables of results/decoding.md, of a decoded token by type of cache and by what is kept, of workloads as they are
served, of packed sequences and of layers of models that people run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from attnbench._place import ROOT
from attnbench.plots.rows.kept import TYPED, is_whole
from attnbench.plots.rows.read import Cell, Params, Rows, canonical, read_rows
from attnbench.plots.rows.settings import mark_of, marks_of, mode_of, spec_text
from attnbench.plots.rows.style import BASELINE, Styles
from attnbench.plots.rows.units import bytes_text, length_text, markdown, seconds_text, thousands_text

from .by_family import entry
from .decode_rows import (
    ONE,
    RECALL,
    TWO,
    bytes_of,
    exact_line,
    few_seeds,
    lines_of,
    marks_of_score,
    not_measured,
    ratio_of,
    scores_like,
    scores_of,
    time_of,
    time_text,
    tokens,
)

FLOAT32 = "float32"
ASKED_TIME = {"bfloat16": 0.55, "int8": 0.35, "int4": 0.3}  # of float32's, where bandwidth bounds it
ASKED_BYTES = {"int8": 0.28, "int4": 0.16}  # of float32's
ROUNDING = 1e-8  # of a divergence that is a sum of differences of logarithms
NONE = "—"
LEVEL, KIB = "L3", 1024


def types(path: Path) -> str:
    """A line a length and a type of cache, by one thread."""
    rows = read_rows([path])
    cells = [c for c in tokens(rows, ONE) if is_whole(c) or c.axes.get(TYPED)]
    by = {(c.length or 0, str(c.axes.get(TYPED) or FLOAT32)): c for c in cells}
    names = sorted({name for _, name in by}, key=lambda n: (n != FLOAT32, -(bytes_of(next(c for (_, m), c in by.items() if m == n)) or 0)))
    lines = []
    for length in sorted({n for n, _ in by}):
        plain = by.get((length, FLOAT32))
        for place, name in enumerate(names):
            cell = by.get((length, name))
            if cell is None or not cell.ok:
                continue
            copy, where = copy_of(cell, rows)
            share = f"{copy / (time_of(cell) or copy):.2f}{mark_of(cell)}" if copy else NONE
            lines.append([
                "" if place else length_text(length), f"`{name}`", time_text(cell),
                NONE if name == FLOAT32 else ratio_of(cell, plain), asked(ASKED_TIME.get(name)),
                bytes_text(bytes_of(cell) or 0), NONE if name == FLOAT32 else f"{_bytes_ratio(cell, plain)}", asked(ASKED_BYTES.get(name)),
                f"{seconds_text(copy)}, {where}" if copy else NONE, share,
            ])  # fmt: skip
    heads = [
        "length", "cache", "a token", "of float32's", "asked", "bytes", "of float32's", "asked", "its bytes by a copy", "share of copy bandwidth",
    ]  # fmt: skip
    return markdown(heads, lines) + not_measured(cells)


def errors(path: Path) -> str:
    """A line a type of cache: how far the outputs and weights of decoding are from those of exact attention, on random inputs."""
    cells = [c for c in read_rows([path]).of("fidelity") if c.variant == BASELINE and c.ok]
    lengths = sorted({c.length or 0 for c in cells})
    by = {(c.axes.get(TYPED) or FLOAT32, c.length): c for c in cells}
    names = dict.fromkeys(name for name, _ in by)
    lines = [
        [f"`{name}`", *(_error(by.get((name, n)), key) for key in ("relative_error", "weights_kl") for n in lengths)]
        for name in sorted(names, key=lambda name: by[name, lengths[-1]].metric("relative_error") or 0)
    ]
    told = [f"{what}, {n:,} positions" for what in ("relative error of outputs", "KL of weights") for n in lengths]
    return markdown(["cache", *told], lines)


def _error(cell: Cell | None, key: str) -> str:
    """Below what double precision tells apart it is none."""
    found = cell.metric(key) if cell else None
    return NONE if found is None else f"{found:.1e}" if found > ROUNDING else "0"


def asked(most: float | None) -> str:
    return NONE if most is None else f"≤ {most:g}"


def _bytes_ratio(cell: Cell, of: Cell | None) -> str:
    own, other = bytes_of(cell), bytes_of(of)
    return f"{own / other:.3f}" if own and other else NONE


def copy_of(cell: Cell, rows: Rows) -> tuple[float | None, str]:
    """The time in which a copy moves the bytes of a token: over the bandwidth that one core copies with, and from where it copies: memory, or the last cache
    where what is read fits into it. The rate of the cache is the best that a witness of the same run reached. A step reads, and a copy
    writes too: the time of a copy is no bound."""
    environment = next((r for r in rows.runs if r["run"] == cell.run), rows.runs[0]).get("environment") or {}
    moved = cell.metric("bytes")
    size = last_cache(environment)
    if moved is None:
        return None, ""
    if size and moved < size:
        rates = [r for c in rows.of("speed") if c.run == cell.run and c.axes.get("threads") == ONE for r in c.witness.get("copy_bytes_per_s") or []]
        return (moved / max(rates), LEVEL) if rates else (None, "")
    rate = (environment.get("calibration") or {}).get("copy_bytes_per_s_one")
    return (moved / rate, "memory") if rate else (None, "")


def last_cache(environment: dict[str, Any]) -> float | None:
    """Bytes: of `L1d 32K, L2 512K, L3 32768K` the last."""
    held = dict(part.split() for part in str(environment.get("caches") or "").split(", ") if len(part.split()) == 2)
    return float(held[LEVEL].rstrip("K")) * KIB if LEVEL in held else None


def states(path: Path, scored: Path) -> str:
    """A line for each way to keep less: time and bytes by length, and what the tasks of recall score under it."""
    rows = read_rows([path])
    scores = scores_of(scored)
    lines = lines_of(rows)
    exact = exact_line(lines)
    lengths = sorted({n for own in lines.values() for n in own})
    table = []
    for name, own in lines.items():
        times = [_token_text(own.get(n), exact.get(n) if own is not exact else None) for n in lengths]
        sizes = [bytes_of(own.get(n)) for n in lengths]
        kept = " / ".join(bytes_text(size) if size else NONE for size in sizes)
        table.append([name, *times, kept, *(recall_text(own, scores, task) for task in RECALL)])
    heads = ["what is kept", *(f"{length_text(n)}: a token, of exact attention's" for n in lengths), "bytes at " + " / ".join(map(length_text, lengths))]
    return markdown([*heads, *(f"`{task}`" for task in RECALL)], table) + not_measured(c for own in lines.values() for c in own.values())


def _token_text(cell: Cell | None, exact: Cell | None) -> str:
    """`353 µs ±2 %, 0.28`."""
    ratio = ratio_of(cell, exact)
    return time_text(cell) if ratio == NONE else f"{time_text(cell)}, {ratio}"


def recall_text(own: dict[int, Cell], scores: list[Cell], task: str) -> str:
    """Where the setting is another share of the positions at each length, no score is its."""
    found = [scores_like(cell, scores, task) for cell in own.values()]
    if not found or not found[0] or any(f != found[0] for f in found):
        return NONE
    return entry(found[0]) + marks_of_score(next(iter(own.values())), found[0]) + few_seeds(found[0])


def workloads(path: Path) -> str:
    """A line a workload, a number of threads and a variant."""
    rows = read_rows([path])
    styles = Styles(rows)
    cells = [c for c in rows.of("speed") if mode_of(c) == "serve"]
    cells.sort(key=lambda c: (str(c.axes["workload"]), c.axes["threads"], styles.place(c.variant)))
    lines, before = [], None
    for c in (c for c in cells if c.ok):
        at = c.axes["workload"], c.axes["threads"]
        told = ("", "") if at == before else (f"`{at[0]}`", str(at[1]))
        before = at
        figures = [c.metric(f"serving.{name}") for name in ("first_token_s", "token_p50_s", "token_p99_s")]
        rate, size = c.metric("serving.generated_per_s"), bytes_of(c)
        lines.append([
            *told, f"`{spec_text(c.variant, _own(c, styles))}`", *(seconds_text(f) + mark_of(c) if f is not None else NONE for f in figures),
            f"{thousands_text(rate)}{mark_of(c)}" if rate else NONE, bytes_text(size) if size else NONE,
        ])  # fmt: skip
    heads = ["workload", "threads", "variant", "first token", "a token: p50", "p99", "tokens a second", "bytes of all"]
    return markdown(heads, lines) + not_measured(cells)


def _own(cell: Cell, styles: Styles) -> Params:
    """Parameters that are not the defaults."""
    usual = dict(styles.defaults(cell.variant))
    return tuple((k, v) for k, v in cell.params if usual.get(k, v) != v)


def packings(path: Path) -> str:
    """A line a variant, a pass and a distribution of lengths: tokens that are no padding, a second."""
    rows = read_rows([path])
    styles = Styles(rows)
    cells = [c for c in rows.of("speed") if c.axes.get("packed")]
    cells.sort(key=lambda c: (styles.place(c.variant), str(c.axes["packed"]), str(mode_of(c))))
    lines, before = [], None
    for c in (c for c in cells if c.ok):
        rates = [f"{thousands_text(r)}{mark_of(c)}" if r else NONE for r in (c.metric("tokens_per_s"), c.metric("packed.padded_tokens_per_s"))]
        lines.append([
            "" if c.variant == before else f"`{c.variant}`", f"`{c.axes['packed']}`", mode_of(c), f"{c.metric('packed.useful') or 0:.2f}",
            *rates, _speedup(c),
        ])  # fmt: skip
        before = c.variant
    heads = ["variant", "lengths", "pass", "useful share of the padded", "useful tokens a second: packed", "padded", "packed over padded"]
    return markdown(heads, lines) + not_measured(cells)


def _speedup(cell: Cell) -> str:
    """`1.02 (0.98 to 1.05, undecided)`: with its 95 % interval, undecided where that holds 1."""
    times, low, high = (cell.metric(f"packed.speedup{end}") for end in ("", "_ci_low", "_ci_high"))
    if not times:
        return NONE
    said = f"{times:.2f}{mark_of(cell)}"
    return said if low is None or high is None else f"{said} ({low:.2f} to {high:.2f}{', undecided' if low <= 1 <= high else ''})"


def shapes(path: Path, known: Path = ROOT / "profiles" / "shapes.toml") -> str:
    """A line a model: one token of one sequence through the attention of all its layers, by two threads, and what they keep; at the longest
    length that most of its layers have."""
    rows = read_rows([path])
    found = [c for c in rows.of("speed") if mode_of(c) == "decode" and (c.axes.get("batch"), c.axes.get("threads")) == (1, TWO)]
    lengths = {c.length or 0 for c in found}
    lines = []
    for model in tomllib.loads(known.read_text(encoding="utf-8"))["shape"]:
        at_each = ([(layer["count"], _cell_of(layer, found, n)) for layer in model["layers"]] for n in sorted(lengths))
        own = max(at_each, key=lambda each: (sum(c is not None for _, c in each), max((c.length or 0 for _, c in each if c), default=0)), default=[])
        cells = [c for _, c in own]
        if not any(cells):
            continue
        whole = all(c is not None and c.ok for c in cells)
        time = sum(count * (time_of(c) or 0) for count, c in own)
        size = sum(count * (bytes_of(c) or 0) for count, c in own)
        at = next(c.length for c in cells if c)
        layers = " + ".join(f"{layer['count']} × `{layer['variant']}`" for layer in model["layers"])
        lines.append([
            f"`{model['name']}`", layers, length_text(at or 0), " + ".join(time_text(c) for c in cells),
            f"{seconds_text(time)}{marks_of(cells)}" if whole else NONE, bytes_text(size) if whole and size else NONE,
        ])  # fmt: skip
    return markdown(["model", "layers", "length", "a token in one layer of each", "in all layers", "bytes of all layers"], lines)


def _cell_of(layer: dict[str, Any], cells: list[Cell], length: int) -> Cell | None:
    """The cell of a layer at a length: its variant with these parameters, and its heads."""
    name, _, rest = str(layer["variant"]).partition("[")
    wanted = dict(canonical(dict(word.split("=") for word in rest.rstrip("]").split(",") if word)))
    heads = {k: layer[k] for k in ("heads", "kv_heads", "head_dim") if k in layer}

    def fits(c: Cell) -> bool:
        here = {k: c.axes[k] for k in ("heads", "kv_heads", "head_dim") if k in c.axes}
        plain = not c.axes.get(TYPED) and dict(c.params).get("evict", "none") == "none"
        return c.length == length and c.variant == name and here == heads and plain and all(_alike(dict(c.params).get(k), v) for k, v in wanted.items())

    return next((c for c in cells if fits(c)), None)


def _alike(own: str | None, wanted: str) -> bool:
    try:
        return own is not None and float(own) == float(wanted)
    except ValueError:
        return own == wanted
