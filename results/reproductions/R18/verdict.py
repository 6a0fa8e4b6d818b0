"""R18: the time of all tokens of an image, with a state, with a cache and without either."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.estimates import Estimate, quotient, time_of
from attnbench.reproduce.judging import Finding, Verdict

IMAGES = {784: "MNIST", 3072: "CIFAR-10"}
KINDS = ("no cache", "cache", "state")
MOST = 2.0  # times: a cache alone takes away more than half of the factor


def verdict(evidence):
    cells = {
        "state": evidence.cells("tokens", "linear", mode="decode"),
        "cache": evidence.cells("tokens", "full", mode="decode"),
        "no cache": evidence.cells("tokens", "full", mode="forward"),
    }
    for n in IMAGES:  # MissingError where a length is not there
        evidence.cell("tokens", "linear", mode="decode", length=n)
    findings, totals = [], {}
    for n, image in IMAGES.items():
        for kind in KINDS:
            totals[n, kind] = _summed(cells[kind], n)
        anew = quotient(totals[n, "no cache"], totals[n, "state"])
        cached = quotient(totals[n, "cache"], totals[n, "state"])
        told = evidence.published("seconds_on_cpu")
        place = told["tokens"].index(n)
        softmax, cache, state = (told[key][place] for key in ("softmax", "cached", "linear"))
        gpu = evidence.published("images_per_s")
        gpu_anew = gpu["linear"][place] / gpu["softmax"][place]
        findings += [
            Finding(f"{image}, no cache over state", anew, least=softmax / state, of_machine=True,
                    published=f"{softmax / state:.0f} on a CPU, {gpu_anew:.0f} on a GPU"),
            Finding(f"{image}, cache over state", cached, least=1,
                    published=f"{cache / state:.2f} on a CPU, {gpu['linear'][place] / gpu['cached'][place]:.0f} on a GPU"),
            Finding(f"{image}, no cache over cache", quotient(totals[n, "no cache"], totals[n, "cache"]), least=MOST,
                    published=f"{softmax / cache:.1f} on a CPU, {gpu['cached'][place] / gpu['softmax'][place]:.0f} on a GPU"),
        ]  # fmt: skip
    return Verdict(tuple(findings), _why(evidence, totals), (_bars(totals), _curves(cells)))


def _summed(cells, n):
    """Over contexts 1 to n: straight lines between the measured lengths. The ends of the intervals
    are summed as if all erred to one side, so the interval is too wide rather than too narrow."""
    known = sorted((c for c in cells if c.ok and c.length <= n), key=lambda c: c.length)
    ends = [[], [], []]
    for cell in known:
        one = time_of(cell)
        for values, end in zip(ends, (one.value, one.low, one.high)):
            values.append(end)
    lengths = [c.length for c in known]
    return Estimate(*(_trapezoids(lengths, values) for values in ends))


def _trapezoids(xs, ys):
    between = zip(xs, xs[1:], ys, ys[1:])
    return ys[0] + sum((b - a) * (u + v) / 2 + (v - u) / 2 for a, b, u, v in between)


def _why(evidence, totals):
    told = "; ".join(
        f"{image}: {totals[n, 'no cache'].value / totals[n, 'state'].value:.0f} without a cache, "
        f"{totals[n, 'cache'].value / totals[n, 'state'].value:.2f} with one"
        for n, image in IMAGES.items()
    )
    lines = [x for x in evidence.crossings("crossing") if x["rival"] == "full[kernel=tiled]"]
    if lines and lines[0]["crossing"]:
        x = lines[0]
        from_there = f"from a context of {x['crossing']:.0f} tokens on ({x['low']:.0f} to {x['high']:.0f})"
    else:
        from_there = f"as follows: {lines[0]['outcome']}" if lines else "at no length that was measured"
    return f"""All tokens of an image take this many times as long as from a state: {told}. The published headline is a factor against
        decoding without a cache, which no decoder needs to do. One
        token from the state is faster than one from the cache {from_there}: the state has head_dim² numbers a head, the cache 2·head_dim
        a token."""


def _bars(totals):
    names = tuple(f"{IMAGES[n]}, {n} tokens: {kind}" for n in IMAGES for kind in KINDS)
    points = tuple(Point(i, totals[n, kind]) for i, (n, kind) in enumerate((n, k) for n in IMAGES for k in KINDS))
    return Panel("attention of one image", "", "time of all tokens", (Line("attnbench", points),), names=names, y_scale="seconds")


def _curves(cells):
    lines = tuple(
        Line(kind, tuple(Point(c.length, time_of(c), (c,)) for c in sorted(cells[kind], key=lambda c: c.length) if c.ok))
        for kind in KINDS
    )
    return Panel("one token", "context (tokens)", "time", lines, y_scale="seconds")
