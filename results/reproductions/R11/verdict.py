"""R11: errors of attention through landmarks, by their number and by the inverse of their weights."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import Estimate, exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

LANDMARKS = (16, 32, 64, 128, 256, 512)
INVERSES = {6: "6 iterations", 20: "20 iterations", 0: "pseudo-inverse"}
EXACT, PAPER = 0, 6  # iterations: none but the pseudo-inverse itself, and the paper's
ROUNDING = 1e-12  # of the norm of a difference that is below 1
NEAR = 1e-6  # relative: float64's rounding, times weights whose condition is 1e7
CURVES = (16, 64, 256)  # numbers of landmarks whose residuals are drawn


def verdict(evidence):
    good = evidence.published("pseudo-inverse")["good"], evidence.published("landmarks")["good"]
    usual = evidence.published("landmarks")["landmarks"]
    by = _by(evidence)
    correlations = sorted({key[1] for key in by})
    errors, residuals = _of(by, "outputs"), _of(by, "residual")
    for c in correlations:
        for m in LANDMARKS:
            for steps in INVERSES:
                if len(errors.get((c, m, steps), {})) < 3:
                    raise MissingError(f"fewer than three draws of {m} landmarks with {INVERSES[steps]}, {_tokens(c)}")
    starts = [x for key, own in residuals.items() if key[2] == 0 for x in own.values()]
    findings = [Finding("‖I − AZ‖₂ at the start, largest of all", exact(max(starts)), most=1 + ROUNDING, published="below 1")]
    for c in correlations:
        told = f"{PAPER} iterations, {usual} landmarks, {_tokens(c)}"
        findings += [
            Finding(f"‖I − AZ‖₂, {told}", mean_of([*residuals[c, usual, PAPER].values()]), most=good[0], published="near 0"),
            Finding(f"error of the output, {told}", _geometric(errors[c, usual, PAPER]), most=good[1], published="near 0"),
        ]
    findings += [
        Finding(f"error with twice the landmarks over that before, largest from {LANDMARKS[0]} to {LANDMARKS[-1]}, {name}, {_tokens(c)}",
                _largest_step(errors, c, steps), most=1, published="below 1")  # fmt: skip
        for steps, name in INVERSES.items()
        for c in correlations
    ]
    limit = max(max(errors[c, LANDMARKS[-1], EXACT].values()) for c in correlations)
    findings.append(
        Finding(f"error with as many landmarks as tokens, {INVERSES[EXACT]}, largest of all", exact(limit), most=NEAR, published="0")
    )
    apart = [x for own in _of(by, "NumPy").values() for x in own.values()]
    findings.append(Finding("difference of outputs from equation 13 in NumPy, largest of all", exact(max(apart)), most=NEAR, published="0"))
    panels = tuple(_errors(errors, by, c) for c in correlations) + tuple(_residuals(residuals, c) for c in correlations)
    return Verdict(tuple(findings), _why(by, correlations, usual, good[0]), panels)


def _by(evidence):
    """What, correlation, landmarks, iterations -> draw -> figure."""
    figures = {"outputs": "error", "residual": "residual", "weights": "condition", "NumPy": "difference", "equal weights": "error"}
    by = {}
    for r in evidence.records("landmarks"):
        steps = r.get("iteration", r.get("iterations"))
        by.setdefault((r["of"], r["correlation"], r.get("landmarks"), steps), {})[r["seed"]] = r[figures[r["of"]]]
    return by


def _of(by, what):
    return {key[1:]: own for key, own in by.items() if key[0] == what}


def _tokens(correlation):
    return "correlated tokens" if correlation else "independent tokens"


def _geometric(own):
    return mean_of([math.log(x) for x in own.values()]).mapped(math.exp)


def _largest_step(errors, correlation, steps):
    """The largest ratio of errors at a doubling, with its 95 % interval: it holds where those of all doublings hold theirs, which are
    therefore wider."""
    found = []
    for few, many in zip(LANDMARKS, LANDMARKS[1:]):
        one, other = errors[correlation, few, steps], errors[correlation, many, steps]
        logs = [math.log(other[seed] / one[seed]) for seed in sorted(one.keys() & other.keys())]
        found.append(mean_of(logs, len(LANDMARKS) - 1).mapped(math.exp))
    return Estimate(*(max(getattr(x, end) for x in found) for end in ("value", "low", "high")))


def _why(by, correlations, usual, good):
    errors, residuals = _of(by, "outputs"), _of(by, "residual")

    def each(figure):
        return " and ".join(f"{figure(c)} ({_tokens(c)})" for c in correlations)

    told = "; ".join(
        f"{name}, {_tokens(c)}: {', '.join(f'{_geometric(errors[c, m, steps]).value:.2g}' for m in LANDMARKS)}"
        for c in correlations
        for steps, name in INVERSES.items()
    )
    after = each(lambda c: f"{mean_of([*residuals[c, usual, PAPER].values()]).value:.3f}")
    condition = each(lambda c: f"{_geometric(by['weights', c, usual, None]).value:.0e}".replace("e+0", "e"))
    enough = each(lambda c: _enough(residuals, c, usual, good))
    worse = each(lambda c: _worse(errors, c))
    over = each(lambda c: " and ".join(_over(errors, c, steps) for steps in (PAPER, EXACT)))
    equal = each(lambda c: f"{_geometric(by['equal weights', c, None, None]).value:.2g}")
    return f"""With {usual} landmarks, {PAPER} iterations leave ‖I − AZ‖₂ = {after}. By equation 14 a step makes of E = I − AZ the matrix
        ¾·E³ + ¼·E⁴: near E = 1 what is missing to 1 grows by 13/4 a step at most, from σ²/(‖A‖₁‖A‖∞) of a singular value σ, and the condition of A is
        about {condition}. Every draw is below {good:g} after {enough} iterations, of those recorded. Errors of the output, geometric means of the draws,
        for {', '.join(map(str, LANDMARKS))} landmarks: {told}. From {LANDMARKS[0]} to {LANDMARKS[-2]} landmarks the error is multiplied by
        {over}. An error above 1 is that of an answer worse than zeros; equal weights of all values have an
        error of {equal}. The pseudo-inverse errs more than {PAPER} iterations with {worse} landmarks: it divides by small singular values, whose
        directions {PAPER} iterations leave out. The authors' code computes exact attention where there are as many landmarks as tokens, so that the
        error of {PAPER} iterations there is not seen."""


def _worse(errors, correlation):
    """The numbers of landmarks with which the pseudo-inverse has the larger error."""
    found = [m for m in LANDMARKS
             if _geometric(errors[correlation, m, EXACT]).value > _geometric(errors[correlation, m, PAPER]).value]  # fmt: skip
    return ", ".join(map(str, found)) or "no number of"


def _over(errors, correlation, steps):
    """The error with half as many landmarks as tokens over that with the fewest landmarks."""
    few, many = (errors[correlation, m, steps] for m in (LANDMARKS[0], LANDMARKS[-2]))
    found = mean_of([math.log(many[seed] / few[seed]) for seed in sorted(few.keys() & many.keys())]).mapped(math.exp)
    return f"{found.value:.2g} [{found.low:.2g}, {found.high:.2g}] with {INVERSES[steps]}"


def _enough(residuals, correlation, usual, good):
    steps = sorted(key[2] for key in residuals if key[:2] == (correlation, usual))
    return str(next((s for s in steps if max(residuals[correlation, usual, s].values()) < good), f"more than {steps[-1]}"))


def _errors(errors, by, correlation):
    shown = LANDMARKS[:-1]  # that of as many landmarks as tokens is many decades below
    lines = [
        Line(name, tuple(Point(m, _geometric(errors[correlation, m, steps])) for m in shown)) for steps, name in INVERSES.items()
    ]
    equal = _geometric(by["equal weights", correlation, None, None])
    lines.append(Line("equal weights", tuple(Point(m, equal) for m in shown)))
    return Panel(f"output, {_tokens(correlation)}", "landmarks, of 512 tokens", "relative error", tuple(lines), x_scale="log", at=1)


def _residuals(residuals, correlation):
    lines = tuple(
        Line(f"{m} landmarks", tuple(
            Point(key[2], _mean(own)) for key, own in sorted(residuals.items()) if key[:2] == (correlation, m)
        ))
        for m in CURVES
    )  # fmt: skip
    return Panel(f"inverse, {_tokens(correlation)}", "iterations", "‖I − AZ‖₂", lines, x_scale="linear", y_scale="linear")


def _mean(own):
    """The mean of residuals, which lie between 0 and 1."""
    found = mean_of([*own.values()])
    return Estimate(found.value, max(found.low, 0.0), min(found.high, 1.0))
