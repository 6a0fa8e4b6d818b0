"""What a test score is: its name on an axis, which way is better, and how a value is written."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

NAMES = {
    "accuracy": "test accuracy",
    "exact_match": "test exact match",
    "mean_squared_error": "test mean squared error",
}
ERRORS = ("mean_squared_error",)  # less is better, and 1 is no limit


def is_error(metric: str) -> bool:
    return metric in ERRORS


def name(metric: str) -> str:
    return NAMES.get(metric, f"test {metric.replace('_', ' ')}")


def written(value: float, metric: str) -> str:
    if is_error(metric):
        return f"{value:.2g}"
    return f"{value:.2f}" if value < 0.995 else f"{value:.3f}"


def unless_error(metrics: Iterable[str], shares: str, errors: str) -> str:
    """A subtitle's word on what is better, for the metrics of its panels."""
    kinds = {is_error(m) for m in metrics}
    words = {False: shares, True: f"of errors {errors}"}
    return ", ".join(words[kind] for kind in sorted(kinds))


def score_axis(axes: Axes, metric: str, values: Iterable[float]) -> None:
    """The y axis of scores: shares from 0 to 1, errors over the decades that are drawn."""
    if is_error(metric):
        axes.set_yscale("log")
        axes.set_ylim(error_ticks(axes.yaxis, values))
    else:
        axes.set_ylim(0, 1.02)


def error_ticks(axis: Axis, values: Iterable[float], most: int = 7) -> tuple[float, float]:
    """Round ticks for the logarithmic axis of errors, and the limits that show all of `values`."""
    drawn = [v for v in values if v > 0] or [1.0]
    low, high = min(drawn) / 1.6, max(drawn) * 1.6
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,), numticks=most))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    return low, high
