"""R12: changes of the first outputs of a causal sequence by what stands behind them."""

import math

import numpy as np

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

ROUNDING = 1e-12  # of float64, over 128 keys
PREFIX, LENGTHS = 128, (129, 256)  # of the findings: one token more, and as many again
BY_LENGTH, FIXED = "cosformer", "cosformer[span=2048]"
WITHOUT = (FIXED, "linear", "full")  # what should change nothing
SAMPLES = 1000  # of an integral over distances


def verdict(evidence):
    by = {}  # what, correlation, variant, prefix, length, position -> changes of the draws
    for r in evidence.records("prefix"):
        key = r["of"], r["correlation"], r["variant"], r["prefix"], r["length"], r.get("position")
        by.setdefault(key, []).append(r["change"])
    for variant in (BY_LENGTH, *WITHOUT):
        for length in LENGTHS:
            if not any(key[:1] + key[2:] == ("prefix", variant, PREFIX, length, None) for key in by):
                raise MissingError(f"no change of {variant} with {length} positions in prefix.jsonl")
    correlations = sorted({key[1] for key in by})
    findings = [
        Finding(f"change of {PREFIX} outputs in a sequence of {n}, M its length, {_tokens(c)}",
                mean_of(by["prefix", c, BY_LENGTH, PREFIX, n, None]), most=ROUNDING, published="0")  # fmt: skip
        for c in correlations
        for n in LENGTHS
    ]
    findings += [
        Finding(f"largest change of {PREFIX} outputs, {_label(variant)}", exact(_largest(by, "prefix", variant)), most=ROUNDING, published="0")
        for variant in WITHOUT
    ]
    findings.append(
        Finding(f"largest change of {PREFIX} outputs, cosformer, where alone they have the M of the longer sequence",
                exact(_largest(by, "prefix of the same M", BY_LENGTH)), most=ROUNDING, published="0")  # fmt: skip
    )
    panels = (_by_length(by, correlations), _by_position(by, correlations))
    return Verdict(tuple(findings), _why(by, correlations), panels)


def change_in_theory():
    """Of the last output of a sequence that is doubled, with M its length before and after, for independent
    values and many positions: weights c(x) = cos(πx/2) and cos(πx/4) at a share x of the
    length, each over its sum, in mean squares. Of positive features of equal law the rest cancels."""
    x = (np.arange(SAMPLES) + 0.5) / SAMPLES
    before, after = (w / w.sum() for w in (np.cos(np.pi * x / 2), np.cos(np.pi * x / 4)))
    return math.sqrt(np.square(after - before).sum() / np.square(before).sum())


def _tokens(correlation):
    return "correlated tokens" if correlation else "independent tokens"


def _label(variant):
    return "cosformer with M = 2048" if variant == FIXED else variant


def _largest(by, of, variant):
    return max(max(found) for key, found in by.items() if (key[0], key[2]) == (of, variant))


def _mean(by, *key):
    return mean_of(by[key]).value


def _why(by, correlations):
    told = "; ".join(
        f"{_tokens(c)}: "
        + ", ".join(f"{_mean(by, 'prefix', c, BY_LENGTH, PREFIX, n, None):.2g} at {n}" for n in _lengths(by, c, BY_LENGTH))
        for c in correlations
    )
    halves = [mean_of(found).value for key, found in by.items() if key[0] == "doubling"]
    doubled = f""" Where a sequence is doubled the change does not vanish with its length: that of the first half is {min(halves):.2g} to
        {max(halves):.2g} from 64 to 1024 positions.""" if halves else ""  # fmt: skip
    last = [f"{_mean(by, 'position', c, BY_LENGTH, PREFIX, 2 * PREFIX, PREFIX):.2g} ({_tokens(c)})" for c in correlations
            if ("position", c, BY_LENGTH, PREFIX, 2 * PREFIX, PREFIX) in by]  # fmt: skip
    at = f""" It grows with the position: the first output never changes, and the last of {PREFIX}, in a sequence of {2 * PREFIX}, changes by
        {' and '.join(last)}; {change_in_theory():.2g} follows from the two cosines alone for independent values.""" if last else ""  # fmt: skip
    return f"""With M the length, as in the authors' code, outputs of {PREFIX} positions change by what stands behind them, means of the draws: {told}.{at}{doubled}
        The change is M's alone: with one M for all lengths, which equation 10 permits, it is nothing, as it is for `linear` and `full`. A model with M the
        length is no causal model: one that writes a text token by token computes other outputs than the one that was trained on the whole text, and a
        state for decoding needs a fixed M. The library's `cosformer` has one M for a layer."""


def _lengths(by, correlation, variant):
    return sorted(key[4] for key in by if key[:3] == ("prefix", correlation, variant))


def _by_length(by, correlations):
    lines = [
        Line(f"M the length, {_tokens(c)}",
             tuple(Point(n, mean_of(by["prefix", c, BY_LENGTH, PREFIX, n, None])) for n in _lengths(by, c, BY_LENGTH)))
        for c in correlations
    ]  # fmt: skip
    most = {n: max(max(by["prefix", c, v, PREFIX, n, None]) for c in correlations for v in WITHOUT)
            for n in _lengths(by, correlations[0], FIXED)}  # fmt: skip
    lines.append(Line("M = 2048; linear; full: largest of all", tuple(Point(n, exact(x)) for n, x in most.items())))
    return Panel(f"change of the first {PREFIX} outputs", "positions of the sequence", "relative change", tuple(lines), y_scale="linear")


def _by_position(by, correlations):
    lines = [
        Line(f"M the length, {_tokens(c)}",
             tuple(Point(key[5], mean_of(found)) for key, found in by.items() if key[:2] == ("position", c)))
        for c in correlations
    ]  # fmt: skip
    return Panel(f"by position, {PREFIX} of {2 * PREFIX}", "position", "relative change", tuple(lines), y_scale="linear")
