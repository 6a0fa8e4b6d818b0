"""R24: scores of trained weights with other rounds of hashing than those of the training."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact, mean_of
from attnbench.reproduce.judging import Finding, Verdict

TRAINED = (4, 2, 1)
TESTED = ("full", "8", "4", "2", "1")  # in the order of the published columns
LEARNED = 0.95  # a model that copies
USELESS = 0.5  # of the labels: what a model that cannot copy stays below; a guess has 0.1


def verdict(evidence):
    cells = [c for c in evidence.cells("rounds", "reformer") if c.ok]
    by = {}
    for cell in cells:
        for with_ in cell.metrics.get("by_params", []):
            if with_["test"] is None:
                raise MissingError(f"a score of {cell.variant}: {with_['reason']}")
            key = _name(dict(cell.params)), _name(with_["params"])
            by.setdefault(key, {})[cell.axes["seed"]] = with_["test"], cell
    needed = [(str(t), e) for t in TRAINED for e in TESTED]
    lacking = [key for key in needed if len(by.get(key, {})) < 3]
    if lacking:
        raise MissingError(f"fewer than three seeds trained with {lacking[0][0]} rounds, tested with {lacking[0][1]}")
    told = {str(t): dict(zip(TESTED, evidence.published("accuracy")[str(t)])) for t in TRAINED}
    findings = []
    for t in map(str, TRAINED):
        gains = [_scores(by[t, "8"])[s] - _scores(by[t, "1"])[s] for s in by[t, "8"]]
        findings.append(
            Finding(f"accuracy, trained with {t}: 8 rounds minus 1", mean_of(gains), least=0,
                    published=f"{(told[t]['8'] - told[t]['1']) / 100:.3f}")  # fmt: skip
        )
    for t in map(str, TRAINED):
        findings.append(
            Finding(f"accuracy, trained with {t}, under full attention", _mean(by[t, "full"]),
                    most=USELESS, published=f"{told[t]['full'] / 100:.3f}")  # fmt: skip
        )
    return Verdict(tuple(findings), _why(by), (_panel(by, told),))


def _name(params):
    """Rounds, or full, of the parameters of a row as text or as numbers."""
    return "full" if str(params["buckets"]) == "1" else str(params["rounds"])


def _scores(found):
    return {seed: score for seed, (score, _) in found.items()}


def _mean(found):
    return mean_of(list(_scores(found).values()))


def _why(by):
    told = "; ".join(
        f"trained with {t}: " + ", ".join(f"{_mean(by[t, e]).value:.3f} with {e}" for e in TESTED)
        for t in (*map(str, TRAINED), "full")
        if all(len(by.get((t, e), {})) > 2 for e in TESTED)
    )
    short = [f"{t} ({_mean(by[t, t]).value:.3f})" for t in map(str, TRAINED) if _mean(by[t, t]).value < LEARNED]
    cut = f" Cut off by its steps before it had learned to copy with its own rounds: trained with {', '.join(short)}." if short else ""
    return f"""Accuracy on the test split, means of three seeds, for each training with full attention and with 8, 4, 2 and 1 rounds: {told}.
        Full attention here has the same shared queries and keys as hashing, so that it is the limit of many rounds; what the paper's full
        attention shares with its hashing, the table does not say.{cut}"""


def _panel(by, told):
    lines = []
    for t in (*map(str, TRAINED), "full"):
        label = "trained with full attention" if t == "full" else f"trained with {t} rounds"
        points = [
            Point(x, _mean(by[t, e]), tuple(c for _, c in by[t, e].values()))
            for x, e in enumerate(TESTED)
            if len(by.get((t, e), {})) > 2
        ]
        if points:
            lines.append(Line(label, tuple(points)))
        if t in told:
            marks = tuple(Point(x, exact(told[t][e] / 100)) for x, e in enumerate(TESTED))
            lines.append(Line(label, marks, published=True))
    names = tuple("full attention" if e == "full" else f"{e} rounds" for e in TESTED)
    return Panel("tested with", "", "accuracy", tuple(lines), y_scale="linear", names=names)
