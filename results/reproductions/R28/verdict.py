"""R28: scores beyond the training length, by the kind of positions."""

from attnbench.plots.rows.settings import unfinished
from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import mean_of
from attnbench.reproduce.judging import Finding, Verdict

TASKS = ("copy", "induction")
RIVALS = ("sinusoidal", "rotary")
KINDS = ("none", *RIVALS)  # learned positions have no answer there
TIMES = (1, 2, 4, 8)


def verdict(evidence):
    cells = [c for c in evidence.cells("lengths", "full") if c.ok]
    by = {}  # task, positions, multiple -> seed -> score and cell
    for cell in cells:
        for times, score in _scores(cell).items():
            by.setdefault((cell.task, cell.training["positions"], times), {})[cell.axes["seed"]] = score, cell
    for task in TASKS:
        for kind in KINDS:
            for times in TIMES:
                if len(by.get((task, kind, times), {})) < 3:
                    raise MissingError(f"fewer than three seeds of {task} with positions {kind} at {times} times the length")
    findings = [
        Finding(f"accuracy on {task} at twice the training length, no positions minus {rival}", _gap(by, task, rival, 2),
                least=0, published="above 0")  # fmt: skip
        for task in TASKS
        for rival in RIVALS
    ]
    return Verdict(tuple(findings), _why(by, cells), tuple(_panel(by, task) for task in TASKS))


def _scores(cell):
    """By multiples of the training length; without those that the weights have no answer for."""
    own = int(dict(cell.task_params)["length"])
    found = {1: cell.metric("test")}
    for on in cell.metrics.get("by_task", []):
        if on["test"] is not None:
            found[int(on["params"]["length"]) // own] = on["test"]
    return found


def _gap(by, task, rival, times):
    none, other = (by[task, kind, times] for kind in ("none", rival))
    return mean_of([none[seed][0] - other[seed][0] for seed in sorted(none.keys() & other.keys())])


def _mean(found):
    return mean_of([score for score, _ in found.values()])


def _why(by, cells):
    told = "; ".join(
        f"{task} with {'no positions' if kind == 'none' else f'{kind} positions'}: "
        + ", ".join(f"{_mean(by[task, kind, t]).value:.3f} at ×{t}" for t in TIMES)
        for task in TASKS
        for kind in KINDS
    )
    reasons = {on["reason"] for c in cells for on in c.metrics.get("by_task", []) if on["reason"]}
    learned = f" Beyond it learned positions have no score: {'; '.join(sorted(reasons))}." if reasons else ""
    here = ", ".join(f"{_mean(by[task, 'none', 1]).value:.3f} on {task}" for task in TASKS)
    cut = [f"{task} with positions {kind}" for task in TASKS for kind in KINDS if unfinished(c for _, c in by[task, kind, 1].values())]
    short = f" Cut off by their steps, so that more training may give other scores: {', '.join(cut)}." if cut else ""
    return f"""Accuracy on the test split at multiples of the training length, means of three seeds, with the weights that were best
        on validation at the training length: {told}.{learned} The paper's order is that of a mean reciprocal rank over several tasks,
        of a model of 107 million weights. Without positions the model here reaches {here} at the training length itself.{short}"""


def _panel(by, task):
    lines = tuple(
        Line(kind, tuple(Point(t, _mean(by[task, kind, t]), tuple(c for _, c in by[task, kind, t].values())) for t in TIMES))
        for kind in KINDS
    )
    return Panel(task, "multiple of the training length", "accuracy", lines, x_scale="log", y_scale="linear")
