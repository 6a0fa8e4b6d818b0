"""R3: errors of Performer's estimate with orthogonal and with independent directions."""

import math

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import mean_of
from attnbench.reproduce.judging import Finding, State, Verdict

USUAL = 1.0  # the scale of the paper: queries and keys of unit variance


def verdict(evidence):
    cells = [c for c in evidence.cells("fidelity", "performer") if c.ok]
    scales = sorted({c.axes["input_scale"] for c in cells})
    sizes = sorted({int(dict(c.params)["features"]) for c in cells})
    by = {}
    for cell in cells:
        params = dict(cell.params)
        key = cell.axes["input_scale"], int(params["features"]), params["orthogonal"] == "true"
        by.setdefault(key, {})[cell.axes["seed"]] = cell
    findings = []
    for scale in scales:
        for size in sizes:
            one, other = (by[scale, size, orthogonal] for orthogonal in (True, False))
            logs = [math.log(_error(one[seed]) / _error(other[seed])) for seed in sorted(one)]
            findings.append(
                Finding(f"error, orthogonal over independent, {size} features, scale {scale:g}",
                        mean_of(logs, len(scales) * len(sizes)).mapped(math.exp), most=1, published="below 1")  # fmt: skip
            )
    return Verdict(tuple(findings), _why(findings, by, sizes, scales), _panels(by, sizes, scales))


def _error(cell):
    return cell.metric("relative_error")


def _geometric(cells):
    return mean_of([math.log(_error(c)) for c in cells.values()]).mapped(math.exp)


def _why(findings, by, sizes, scales):
    states = {s: sum(f.state is s for f in findings) for s in State}
    most = sizes[-1]
    told = ", ".join(
        f"{_geometric(by[scale, most, True]).value:.2g} at scale {scale:g}" for scale in scales
    )
    above = [f"{scale:g}" for scale in scales if _geometric(by[scale, most, True]).low > 1]
    useless = f"; at scale {' and '.join(above)} it is above 1, where zeros would be the better answer" if above else ""
    return f"""Orthogonal directions have the smaller error in {states[State.holds]} of {len(findings)} settings, the larger one in
        {states[State.fails]}; in {states[State.unclear]} the draws do not tell. With {most} orthogonal features the relative error is {told}{useless}."""


def _panels(by, sizes, scales):
    def line(scale, orthogonal, label):
        points = tuple(
            Point(m, _geometric(by[scale, m, orthogonal]), tuple(by[scale, m, orthogonal].values()))
            for m in sizes
        )
        return Line(label, points)

    return tuple(
        Panel(f"scale {scale:g}", "features", "relative error",
              (line(scale, True, "orthogonal"), line(scale, False, "independent")), x_scale="log", at=1)
        for scale in scales
    )  # fmt: skip
