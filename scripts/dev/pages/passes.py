"""Markdown tables of speed rows: each variant's time and its share of the multiply-add peak, the parts of its
pass (`--breakdown`), from which length on it is faster than exact attention; and of results/performance.md
beside: the machine, the floors, other settings, growth and decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attnbench.plots.kinds.crossing import Verdict, verdicts
from attnbench.plots.layout.panels import pages
from attnbench.plots.rows.read import Cell, Rows, read_rows
from attnbench.plots.rows.settings import MODE_WORDS, contract, mode_of
from attnbench.plots.rows.style import Series, Styles
from attnbench.plots.rows.units import bytes_text, markdown, ratio_text
from attnbench.reports.book import Book
from attnbench.reports.curves import measured

LEAST = 0.02  # parts below it are left out
MODES = ("forward", "train")


def shares_of(cell: Cell) -> dict[str, Any]:
    """The share of the threads' time of each part; empty without `--breakdown`."""
    return (cell.metrics.get("breakdown") or {}).get("shares") or {}


def parts_text(cell: Cell | None) -> str:
    """`products 85, softmax 10, other 3`: percent of the threads' time, the largest part first;
    `other`, what no mark names, last."""
    if cell is None or not cell.ok:
        return "—"
    shares = shares_of(cell)
    parts = [part for part in shares if part != "other" and shares[part] >= LEAST]
    parts.sort(key=lambda part: -shares[part])
    if shares.get("other", 0) >= LEAST:
        parts.append("other")
    return ", ".join(f"{part.replace('_', ' ')} {100 * shares[part]:.0f}" for part in parts) or "—"


def breakdown(path: Path, length: int) -> str:
    """A line for each variant, a column for each mode."""
    cells = [cell for cell in read_rows([path]).cells if cell.measure == "speed"]
    by = {(cell.variant, cell.axes["mode"]): cell for cell in cells if cell.length == length}
    variants = sorted({name for name, _ in by})
    return markdown(["variant", *MODES], ([f"`{v}`", *(parts_text(by.get((v, mode))) for mode in MODES)] for v in variants))


def share_text(cell: Cell | None) -> str:
    """`42.4, 0.86 (0.88)`: milliseconds, share of the peak by the median and by the best sample."""
    if cell is None or not cell.ok:
        return "—"
    median, least = cell.metric("time_s.median"), cell.metric("time_s.min")
    share = cell.metric("peak_fraction")
    if median is None or least is None or share is None:
        return "—"
    return f"{median * 1e3:.3g}, {share:.2f} ({share * median / least:.2f})"


def shares(path: Path) -> str:
    """A line for each variant and mode, in the order of the rows; a column for each length."""
    cells = [cell for cell in read_rows([path]).cells if cell.measure == "speed"]
    lengths = sorted({cell.axes["length"] for cell in cells})
    by = {(cell.variant, cell.axes["mode"], cell.axes["length"]): cell for cell in cells}
    lines = (
        [f"`{variant}`", mode, *(share_text(by.get((variant, mode, length))) for length in lengths)]
        for variant, mode in sorted({key[:2] for key in by})
    )
    return markdown(["variant", "", *map(str, lengths)], lines)


HEADS = ["pass", "variant", "faster from (95 % interval)", "beyond the noise from"]


def crossings(path: Path, length: int) -> str:
    """A line for each pass and variant. The last columns are of `length`: the time over that of
    exact attention, and the percent of the threads' time that goes to selection."""
    rows = read_rows([path])
    book = Book(rows, Styles(rows))
    lines = []
    for panel in (panel for _, own in pages("speed", rows.of("speed")) for panel in own):
        which = f"{MODE_WORDS[mode_of(panel.cells[0])]}, {contract(panel.cells[0])}"
        for verdict in verdicts(panel, measured(panel, book), book.styles, rows):
            own, exact = at(verdict.series, length), at(verdict.baseline, length)
            lines.append([which, f"`{verdict.series.label}`", *_told(verdict), _ratio(own, exact), _selection(own)])
    return markdown([*HEADS, f"time / exact's at {length:,}", f"selection at {length:,}, %"], lines)


def at(series: Series, length: int) -> Cell | None:
    return next((c for c in series.cells if c.ok and c.length == length), None)


def _told(verdict: Verdict) -> tuple[str, str]:
    return verdict.crossing.text(), verdict.faster_from or "—"


def _ratio(own: Cell | None, exact: Cell | None) -> str:
    times = [cell.metric("time_s.median") if cell else None for cell in (own, exact)]
    return "—" if None in times else f"{times[0] / times[1]:.2f}"  # type: ignore[operator]


def _selection(cell: Cell | None) -> str:
    shares = shares_of(cell) if cell else {}
    return f"{100 * shares.get('selection', 0):.0f}" if shares else "—"


# The setting of the tables of all variants, by axis; a row without dtype is of float32.
USUAL: dict[str, Any] = {"heads": 1, "head_dim": 64, "threads": 1, "causal": False, "dtype": "float32"}
CACHES = ("L1d", "L2", "L3")
FIRST_FIVE = ("full", "truncated", "linformer", "performer", "linear")


def speeds(rows: Rows) -> list[Cell]:
    return [cell for cell in rows.of("speed") if cell.ok]


def setting(cell: Cell) -> dict[str, Any]:
    """The axes of USUAL that the cell sets otherwise."""
    axes = {"dtype": "float32", **cell.axes}
    return {name: axes[name] for name in USUAL if axes[name] != USUAL[name]}


def plain(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{float(f'{value:.3g}'):,g}"


def machine(path: Path) -> str:
    """The processor of the rows, its measured peak and bandwidth, and the commits, in one line."""
    runs = read_rows([path]).runs
    environment: dict[str, Any] = runs[0]["environment"]
    commits = dict.fromkeys(run["environment"]["commit"][:12] for run in runs)
    found = environment["calibration"]
    sizes = {name: f"{size.rstrip('K')} KiB" for name, size in (held.split() for held in environment["caches"].split(", "))}
    return (
        f"{environment['cpu_model']}, kernels for `{environment['kernel_instruction_set']}`, {environment['cores']} cores, "
        f"caches of {' / '.join(sizes[name] for name in CACHES if name in sizes)}: "
        f"**{found['fma_flops_per_s_one'] / 1e9:.0f} GFLOP/s** of fused multiply-adds by one core, "
        f"**{found['copy_bytes_per_s_one'] / 1e9:.0f} GB/s** copied by one core; commit{'s' if len(commits) > 1 else ''} {', '.join(f'`{one}`' for one in commits)}."
    )


def floors(path: Path, length: int, variants: tuple[str, ...] = FIRST_FIVE) -> str:
    """What a pass must do at least, by the formulas in the rows, at the peak and the bandwidth of one core."""
    rows = read_rows([path])
    found = rows.runs[0]["environment"]["calibration"]
    cells = {(c.variant, c.axes["mode"]): c for c in speeds(rows) if c.length == length and not setting(c)}
    lines = []
    for variant in variants:
        flops = [cells[variant, mode].metric("flops") or 0.0 for mode in MODES]
        moved = cells[variant, "forward"].metric("bytes") or 0.0
        arithmetic = [1e3 * count / found["fma_flops_per_s_one"] for count in flops]
        memory = 1e3 * moved / found["copy_bytes_per_s_one"]
        lines.append([f"`{variant}`", f"{flops[0] / 1e6:,.0f}", f"{arithmetic[0]:.3g}", f"{moved / 1e6:.3g}", f"{memory:.2g}",
                      f"{flops[1] / 1e6:,.0f}", f"{arithmetic[1]:.3g}"])  # fmt: skip
    return markdown(["variant", "forward: MFLOP", "ms", "MB", "ms", "train: MFLOP", "ms"], lines)


def timed(cell: Cell | None, usual: Cell | None) -> str:
    """Milliseconds and share of the peak as in the shares, where the row has one, and the time over the usual setting's."""
    if cell is None:
        return "—"
    median = cell.metric("time_s.median") or 0.0
    told = share_text(cell) if cell.metric("peak_fraction") is not None else f"{median * 1e3:.3g}"
    return f"{told}, {ratio_text(median / (usual.metric('time_s.median') or 0.0))}" if usual else told


def settings(path: Path, length: int) -> str:
    """What passes of another setting than the usual one take."""
    by = {(tuple(setting(c).items()), c.variant, c.axes["mode"]): c for c in speeds(read_rows([path])) if c.length == length}
    lines = []
    for other, variant in sorted({(other, variant) for other, variant, mode in by if mode in MODES and other}, key=str):
        words = ", ".join(f"{name}={str(value).lower()}" for name, value in other)
        entries = [timed(by.get((other, variant, mode)), by.get(((), variant, mode))) for mode in MODES]
        lines.append([f"`{variant}`", f"`{words}`", *entries])
    return markdown(["variant", "setting", *MODES], lines)


def growth(path: Path, least: int) -> str:
    """The factor in time of each doubling of the length from `least` on, and the workspace at the first and the last length."""
    rows = read_rows([path])
    cells = [c for c in rows.cells if c.ok and c.axes.get("mode") == "forward" and (c.length or 0) >= least]
    times = {(c.variant, c.length): c.metric("time_s.median") for c in cells if c.measure == "speed"}
    spaces = {(c.variant, c.length): c.metric("workspace_bytes") for c in cells if c.measure == "memory"}
    lengths = sorted({length for _, length in times})
    lines = []
    for variant in sorted({variant for variant, _ in times}):
        factors = [f"{times[variant, n] / times[variant, m]:.2f}" for m, n in zip(lengths, lengths[1:])]
        lines.append([f"`{variant}`", *factors, *(bytes_text(spaces[variant, n]) for n in (lengths[0], lengths[-1]))])
    return markdown(["variant", *(f"{m} to {n}" for m, n in zip(lengths, lengths[1:])),
                     *(f"workspace at {n}" for n in (lengths[0], lengths[-1]))], lines)  # fmt: skip


def decoding(path: Path) -> str:
    """Microseconds a token by the length of what was read, and the bytes that are kept at the longest."""
    cells = [c for c in read_rows([path]).cells if c.ok and c.axes.get("mode") == "decode"]
    times = {(c.variant, c.length): c.metric("time_s.median") for c in cells if c.measure == "speed"}
    states = {(c.variant, c.length): c.metric("state_bytes") for c in cells if c.measure == "memory"}
    lengths = sorted({length for _, length in times})
    lines = []
    for variant in sorted({variant for variant, _ in times}):
        line = [plain(times[variant, n] * 1e6) if (variant, n) in times else "—" for n in lengths]
        lines.append([f"`{variant}`", *line, bytes_text(states[variant, lengths[-1]])])
    return markdown(["variant", *map(str, lengths), f"state at {lengths[-1]}"], lines)
