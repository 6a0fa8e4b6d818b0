"""R9: values read back from sums and from the delta rule, keys written once and re-bound."""

import numpy as np

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

NOTHING = 1e-12  # a squared error of float64's rounding, over 64 products
NEAR = 0.1  # of a closed form
ONCE, REBOUND = "written once", "re-bound"


def verdict(evidence):
    records = evidence.records("recall")
    held = {key: _whole(own) for key, own in _by(records, "orthonormal").items()}
    random = _by(records, "random")
    dim = min((key[0] for key in held), default=0)
    counts = sorted({key[0] for key in random})
    if not counts or len(held) < 8:
        raise MissingError("orthonormal or random keys are missing in recall.jsonl")
    findings = _exactly(held, dim)
    chosen = {(n, times): _chosen(random, n, times) for n in counts for times in (ONCE, REBOUND)}
    for n in counts:
        gain = _gain(random, n, REBOUND, chosen[n, REBOUND], len(counts))
        findings.append(
            Finding(f"accuracy, delta rule minus sums, {n} random keys {REBOUND}", gain, least=0, published="above 0")
        )
    return Verdict(tuple(findings), _why(random, dim, counts, chosen), _panels(random, counts, chosen))


def _by(records, keys):
    """Records by pairs, times, rule and strength."""
    by = {}
    for r in records:
        if r["keys"] == keys:
            by.setdefault((r["pairs"], r["times"], r["rule"], r["strength"]), []).append(r)
    return by


def _whole(own):
    return [r["squared_error"] for r in own]


def _exactly(held, dim):
    """Of orthonormal keys: nothing is lost up to d of them; beyond, Welch's bound for sums."""
    errors = {key[:3]: found for key, found in held.items()}
    told = [
        (f"squared error of sums, {dim} orthonormal keys {ONCE}", (dim, ONCE, "sums"), None, "0"),
        (f"squared error of the delta rule, {dim} orthonormal keys {ONCE}", (dim, ONCE, "delta rule"), None, "0"),
        (f"squared error of the delta rule, {dim} orthonormal keys {REBOUND}", (dim, REBOUND, "delta rule"), None, "0"),
        (f"squared error of sums, {dim} orthonormal keys {REBOUND}", (dim, REBOUND, "sums"), 1, "above 0"),
        (f"squared error of sums, {2 * dim} keys of two bases {ONCE}, over N/d − 1", (2 * dim, ONCE, "sums"), 1, "1 or more"),
    ]
    found = []
    for what, key, form, published in told:
        if form is None:
            found.append(Finding(what, exact(max(errors[key])), most=NOTHING, published=published))
        else:
            found.append(Finding(what, mean_of(errors[key]), form - NEAR, form + NEAR, published))
    return found


def _scores(own, testing):
    return {r["draw"]: r["accuracy"] for r in own if r["testing"] is testing}


def _chosen(by, n, times):
    """The strength of the largest accuracy over the draws that choose; of equal ones the smallest."""
    strengths = sorted(key[3] for key in by if key[:3] == (n, times, "delta rule"))
    if not strengths or (n, times, "sums", 0.0) not in by:
        raise MissingError(f"no accuracy of both rules for {n} random keys {times}")
    return max(strengths, key=lambda s: np.mean(list(_scores(by[n, times, "delta rule", s], False).values())))


def _gain(by, n, times, strength, among):
    sums = _scores(by[n, times, "sums", 0.0], True)
    delta = _scores(by[n, times, "delta rule", strength], True)
    return mean_of([delta[draw] - sums[draw] for draw in sorted(sums)], among)


def _accuracy(by, n, times, rule, strength):
    return mean_of(list(_scores(by[n, times, rule, strength], True).values()))


def _why(by, dim, counts, chosen):
    most = counts[-1]
    told = "; ".join(
        f"{times}: sums {_accuracy(by, most, times, 'sums', 0.0).value:.2f}, the delta rule "
        f"{_accuracy(by, most, times, 'delta rule', chosen[most, times]).value:.2f} with β = {chosen[most, times]:g} and "
        f"{_accuracy(by, most, times, 'delta rule', 1.0).value:.2f} with β = 1"
        for times in (ONCE, REBOUND)
    )
    once = _gain(by, most, ONCE, chosen[most, ONCE], 1)
    return f"""Accuracy with {most} random keys of {dim} dimensions, {told}. Where keys are written once, the delta rule gains {once.value:.3f}
        [{once.low:.3f}, {once.high:.3f}]: no finding, since with small strengths it is sums and can hardly be worse. A write of β = 1 takes all that its key overlaps with out of the state, which
        is right for a key that is there and wrong for others: where keys are written once, smaller strengths lose less. What the delta rule adds is that a key can be written again."""


def _panels(by, counts, chosen):
    panels = []
    for times in (ONCE, REBOUND):
        lines = [
            ("sums", {n: ("sums", 0.0) for n in counts}),
            ("delta rule, β chosen", {n: ("delta rule", chosen[n, times]) for n in counts}),
            ("delta rule, β = 1", {n: ("delta rule", 1.0) for n in counts}),
        ]
        panels.append(
            Panel(f"random keys {times}", "pairs", "accuracy of recall",
                  tuple(Line(label, tuple(Point(n, _accuracy(by, n, times, *of[n])) for n in counts)) for label, of in lines),
                  x_scale="log", y_scale="linear")  # fmt: skip
        )
    return tuple(panels)
