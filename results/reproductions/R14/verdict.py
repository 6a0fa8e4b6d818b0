"""R14: rank correlation of measured and published speed-ups and memory."""

import numpy as np
from scipy.stats import spearmanr

from attnbench.plots.rows.crossing import central, draws
from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import SEED, Estimate, exact, ratio_of_times
from attnbench.reproduce.judging import Finding, Verdict

# Critical value of Spearman's correlation of 8 pairs, one-sided: reached by chance in 4.8 %. Less what 27/42 may be rounded by.
LEAST = 27 / 42 - 1e-9
APART = 1.25  # speed-ups closer than this share are no rank of their own: 5.3 and 5.7 times


def verdict(evidence):
    told = evidence.published("speed_up")
    longest = max((c.length for c in evidence.cells("steps", measure="speed")), default=0)
    findings, ups, cells = [], {}, {}
    for scope in ("attention", "model"):
        for form, kernel in (("textbook", "materialized"), ("tiled", "tiled")):
            where = {"measure": "speed", "scope": scope, "length": longest}
            full = evidence.cell("steps", "full", kernel=kernel, **where)
            own = {name: evidence.cell("steps", name, **where) for name in told}
            ups[scope, form] = {name: ratio_of_times(full, cell) for name, cell in own.items()}
            cells[scope, form] = {name: (full, cell) for name, cell in own.items()}
        found = _correlation(cells[scope, "textbook"], told)
        findings.append(
            Finding(f"rank correlation of speed-ups, {scope}, at {longest}", found, least=LEAST,
                    published="1", of_machine=True)  # fmt: skip
        )
    gigabytes = evidence.published("memory")
    where = {"measure": "memory", "length": longest}
    peaks = {name: evidence.cell("steps", name, **where).metric("peak_bytes") for name in told}
    value = spearmanr([peaks[n] for n in told], [gigabytes[n] for n in told]).statistic
    findings.append(
        Finding(f"rank correlation of memory at {longest}", exact(value), least=LEAST, published="1")
    )
    return Verdict(tuple(findings), _why(ups, told), _panels(ups, cells, told))


def _correlation(cells, told):
    """Of medians, with the interval of draws from the visits of every cell."""
    names = list(told)
    if any(len(c.visited()) < 2 for name in names for c in cells[name]):
        raise MissingError("times of a single visit, which tell no interval")
    rng = np.random.default_rng(SEED)
    drawn = np.stack([draws(cells[name][1].visited(), rng) for name in names])
    ranks = [spearmanr(-column, [told[n] for n in names]).statistic for column in drawn.T]
    low, high = central(np.array(ranks))
    medians = [-cells[name][1].metric("time_s.median") for name in names]
    value = float(spearmanr(medians, [told[n] for n in names]).statistic)
    return Estimate(value, float(min(low, value)), float(max(high, value)))


def _why(ups, told):
    own = ups["attention", "textbook"]
    flips = [
        f"{a} and {b}"
        for a in told
        for b in told
        if told[a] > APART * told[b] and own[a].high < own[b].low
    ]
    where = f"of the pairs whose published speed-ups differ by more than {APART - 1:.0%}"
    said = (
        f"By attention alone, {where}, these change places: {', '.join(flips)}."
        if flips
        else f"By attention alone, {where}, none changes places."
    )
    best = max(own, key=lambda name: own[name].value)
    models = ups["model", "textbook"]
    far = max(told, key=lambda name: abs(np.log(models[name].value / told[name])))
    tiled, whole = ups["attention", "tiled"][best], ups["model", "textbook"][best]
    return f"""{said} The greatest speed-up of attention is that of {best}: {own[best].value:.1f} against the textbook form,
        {tiled.value:.1f} against the tiled form, and {whole.value:.1f} in the whole model, where the published table has
        {told[best]:g}. Ranks hide sizes: {far} has {own[far].value:.1f} by attention alone and {models[far].value:.1f} in the whole model, where the
        published table has {told[far]:g}."""


def _panels(ups, cells, told):
    names = sorted(told, key=lambda name: told[name])
    lines = [
        Line(label, tuple(Point(names.index(n), e, cells[key][n]) for n, e in ups[key].items()))
        for label, key in (
            ("attention, textbook form", ("attention", "textbook")),
            ("attention, tiled form", ("attention", "tiled")),
            ("model, textbook form", ("model", "textbook")),
        )
    ]
    shown = tuple(Point(names.index(n), exact(s)) for n, s in told.items())
    lines.append(Line("model, textbook form", shown, published=True))
    return (
        Panel("times faster than exact attention, forward and backward", "", "times faster", tuple(lines), names=tuple(names), at=1),
    )
