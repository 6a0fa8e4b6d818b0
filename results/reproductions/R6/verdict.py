"""R6: how much of an attention matrix its largest singular values hold."""

import numpy as np

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import mean_of
from attnbench.reproduce.judging import Finding, State, Verdict


DRAWS = 5


def verdict(evidence):
    by = {}
    for r in evidence.records("spectra"):
        by.setdefault((r["correlation"], r["spread"]), []).append(r)
    at = evidence.published("share")
    beside = {spread: _of_noise(r[0], spread) for (_, spread), r in by.items()}
    findings = tuple(
        Finding(f"share of {r[0]['index']} of {r[0]['length']} singular values over that of noise, {_label(key[0])}, logits {key[1]:g}",
                mean_of([one["share"] / beside[key[1]] for one in r]), least=1, published=f"over {at['least']:g} of the sum")  # fmt: skip
        for key, r in sorted(by.items())
    )
    return Verdict(findings, _why(findings, by, beside), tuple(_panel(by, key, name) for key, name in KEYS.items()))


def _of_noise(record, spread):
    """The share that the largest values have of the softmax of independent normal logits with this deviation."""
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(DRAWS):
        weights = np.exp(spread * rng.normal(size=(record["length"], record["length"])))
        values = np.linalg.svd(weights / weights.sum(axis=1, keepdims=True), compute_uv=False)
        shares.append(values[: record["index"]].sum() / values.sum())
    return float(np.mean(shares))


KEYS = {"share": "share of the sum", "share_of_squares": "share of the sum of squares", "effective_rank": "effective rank"}


def _label(correlation):
    return f"tokens with correlation {correlation:g}" if correlation else "independent tokens"


def _why(findings, by, beside):
    states = {s: sum(f.state is s for f in findings) for s in State}
    shares = {key: mean_of([r["share"] for r in own]).value for key, own in by.items()}
    most, least = max(shares, key=shares.get), min(shares, key=shares.get)
    squares = mean_of([r["share_of_squares"] for r in by[least]]).value
    return f"""Of matrices that nothing was trained for, {states[State.holds]} of {len(findings)} settings have more of the sum in a quarter of the singular
        values than the softmax of independent logits of the same deviation, which has {min(beside.values()):.2f} to {max(beside.values()):.2f} of it there, and {states[State.fails]} do not. The share goes from {shares[least]:.2f} ({_label(least[0])}, logits with a deviation of {least[1]:g}; of the squares
        {squares:.2f}) to {shares[most]:.2f} ({_label(most[0])}, {most[1]:g}). A spectrum of a trained model tells what training made of the rank only beside
        one of the same tokens without training."""


def _panel(by, key, name):
    lines = [
        Line(_label(c), tuple(
            Point(s, mean_of([r[key] for r in by[c, s]])) for s in sorted(k[1] for k in by if k[0] == c)
        ))
        for c in sorted({k[0] for k in by})
    ]  # fmt: skip
    scale = "log" if key == "effective_rank" else "linear"
    return Panel(name, "standard deviation of the logits", name, tuple(lines), x_scale="log", y_scale=scale)
