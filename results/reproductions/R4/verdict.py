"""R4: movement of earlier outputs by a later key."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

LEAK = 0.01  # relative: what no rounding explains
ROUNDING = 1e-12  # of float64, over 64 keys
LEAST = 1e-17  # a movement of nothing, on a logarithmic axis


def verdict(evidence):
    by = {}
    for r in evidence.records("leak"):
        by.setdefault((r["stabiliser"], r["constant"], r["factor"]), []).append(r["moved_earlier"])
    kinds = sorted({key[:2] for key in by}, reverse=True)
    factors = sorted({key[2] for key in by})
    findings = []
    for stabiliser, constant in kinds:
        own = stabiliser == "over the keys so far"
        for factor in factors if own else factors[1:]:
            found = by[stabiliser, constant, factor]
            told = f"earlier outputs moved, last key × {factor:g}, maximum {_label(stabiliser, constant)}"
            if own:
                findings.append(Finding(told, exact(max(found)), most=ROUNDING, published="0"))
            else:
                findings.append(Finding(told, mean_of(found), least=LEAK, published="above 0"))
    return Verdict(tuple(findings), _why(by, factors), (_panel(by, kinds, factors),))


def _label(stabiliser, constant):
    return f"{stabiliser}, {constant:g} added" if constant else stabiliser


def _why(by, factors):
    small, large = factors[0], factors[-1]
    told = ", ".join(
        f"{mean_of(by['over all keys', c, small]).value:.2g} where the key grows by {small:g} and "
        f"{mean_of(by['over all keys', c, large]).value:.2g} where it grows by {large:g} with {c:g}"
        for c in sorted({key[1] for key in by if key[1]}, reverse=True)
    )
    return f"""A later key with a larger exponent divides all earlier features by more, and the constant then weighs more beside them. The mean
        over draws of the largest relative movement of an earlier output is {told} added. A test of causality that exchanges a key by one
        of the same size can miss it: the maximum then stays where it was or nearly so."""


def _panel(by, kinds, factors):
    lines = [
        Line(_label(*kind), tuple(
            Point(f, mean_of([max(x, LEAST) for x in by[*kind, f]])) for f in factors
        ))
        for kind in kinds
    ]  # fmt: skip
    return Panel("largest relative movement of an earlier output", "factor of the last key", "movement", tuple(lines), x_scale="log", at=LEAK)
