"""R8: keys found by several rounds of hashing against the formula for independent rounds."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

NEAR = 0.03  # of a probability: closer than this counts as equal
MOST_SEEN = 2 * 64 / 1024  # of the keys: a chunk and the one before it, each of 64


def verdict(evidence):
    records = evidence.records("hashing")
    rounds = sorted({r["rounds"] for r in records})
    by = {n: sorted((r for r in records if r["rounds"] == n), key=lambda r: r["seed"]) for n in rounds}
    single = [r["found"] for r in by[1]]
    findings = []
    for n in rounds[1:]:
        gaps = [r["found"] - (1 - (1 - p) ** n) for r, p in zip(by[n], single)]
        findings.append(
            Finding(f"found by {n} rounds minus the formula", mean_of(gaps), -NEAR, NEAR, "0")
        )
    seen = mean_of([r["seen"] for r in by[1]])  # where all keys are seen, the rest holds without hashing
    findings.append(Finding("share of keys that one round looks at", seen, most=MOST_SEEN, published="a chunk and its neighbour"))
    for few, many in zip(rounds, rounds[1:]):
        more = [b["mass"] - a["mass"] for a, b in zip(by[few], by[many])]
        findings.append(
            Finding(f"softmax mass kept, {many} rounds minus {few}", mean_of(more), least=0, published="grows")
        )
    found = {n: {key: mean_of([r[key] for r in by[n]]) for key in ("found", "mass", "seen")} for n in rounds}
    return Verdict(tuple(findings), _why(found), (_panel(found, rounds),))


def _why(found):
    most = max(found)
    one, all_rounds = found[1], found[most]
    return f"""One round finds the near-duplicate of {one['found'].value:.2f} of the queries and keeps {one['mass'].value:.2f} of the
        softmax mass while it looks at {one['seen'].value:.3f} of the keys; {most} rounds find {all_rounds['found'].value:.2f} and keep
        {all_rounds['mass'].value:.2f} with {all_rounds['seen'].value:.3f} of the keys."""


def _panel(found, rounds):
    names = {"found": "near-duplicate found", "mass": "softmax mass kept", "seen": "share of keys seen"}
    lines = [Line(label, tuple(Point(n, found[n][key]) for n in rounds)) for key, label in names.items()]
    p = found[1]["found"].value
    told = tuple(Point(n, exact(1 - (1 - p) ** n)) for n in rounds)
    lines.append(Line(names["found"], told, published=True))
    return Panel("Reformer by rounds of hashing", "rounds", "share", tuple(lines), x_scale="log", y_scale="linear")
