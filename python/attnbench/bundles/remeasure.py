"""The part of `attnbench verify` that runs code: builds what a bundle brings, runs its contract checks, and measures the drawn cells anew. Everything
happens in the sandbox, after somebody said yes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from .archive import Bundle, Line
from .brought import Brought, parts_of, plugin_words
from .consistency import VERIFIED, faults_of_rows
from .container import plain
from .judging import (
    AGREE,
    DISAGREE,
    NEITHER,
    OTHER_TIME,
    TIME,
    Verdict,
    judged_answer,
    judged_bytes,
    judged_error,
    judged_outcome,
    judged_score,
    judged_time,
    label_of,
)
from .measuring import NotMeasured, Workshop, difference, is_same_build, with_exact, with_seed
from .program import checked, reds
from .sampling import drawn, exact_beside, seed_of
from .sandbox import Sandbox

SEEDS = range(1000, 1 << 31)  # fresh ones: no profile has them
OWN = ("variant", "task", "exact")


@dataclass(frozen=True)
class Judged:
    """A cell that was drawn, and what measuring it again says."""

    cell: Line
    verdict: Verdict

    @property
    def label(self) -> str:
        return label_of(self.cell)


@dataclass
class Remeasured:
    """What measuring anew found. `fault` is what disagrees beside the cells: a contract check."""

    nonce: str
    eligible: int = 0
    cells: list[Judged] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    contract: dict[str, str] = field(default_factory=dict)
    fault: str = ""

    @property
    def state(self) -> str:
        """The verdict: one cell that disagrees is enough; at least half must agree, since a row may say what makes it not comparable."""
        states = Counter(one.verdict.state for one in self.cells)
        if self.fault or states[DISAGREE]:
            return DISAGREE
        return AGREE if states[AGREE] and states[AGREE] >= states[NEITHER] else NEITHER


def remeasured(bundle: Bundle, brought: Brought, sources: dict[str, bytes], sandbox: Sandbox, *, nonce: str, count: int, longest_s: float,
               across: bool, tell: Callable[[str], None]) -> Remeasured:  # fmt: skip
    """Measures `count` cells anew, `longest_s` seconds each at most, and tells of each. `across`: times of other processors too."""
    found = Remeasured(nonce)
    if brought.has_cxx:
        tell("builds the sources that the archive brings")
    plugins = plugin_words(sandbox, sources, brought)
    for name in brought.names:
        found.contract[name] = _contract(sandbox, name, plugins)
        tell(f"contract of {name}: {found.contract[name]}")
        if found.contract[name].startswith("red"):
            found.fault = f"{name} breaks its contract"
            return found
    round_of = _Round(bundle, brought, Workshop(sandbox, tuple(plugins)), seed_of(bundle, nonce), across)
    sample = drawn(bundle, brought, round_of.seed, count, longest_s, times=round_of.times, price=round_of.price)
    found.eligible, found.left_out = sample.eligible, sample.left_out
    for number, cell in enumerate(sample.cells):
        found.cells.append(Judged(cell, round_of.judged(cell, number, len(sample.cells), longest_s)))
        tell(f"{found.cells[-1].verdict.state}: {cell['cell']} {found.cells[-1].label}: {found.cells[-1].verdict.words}")
    return found


def _contract(sandbox: Sandbox, name: str, plugins: list[str]) -> str:
    lines = checked(sandbox, name, plugins, "full")["lines"]
    red = reds(lines)
    return f"red: {red[0]}" if red else f"{len(lines)} checks, none red"


class _Round:
    """One verification: the machine here, the commands of cells, their prices and verdicts."""

    def __init__(self, bundle: Bundle, brought: Brought, workshop: Workshop, seed: int, across: bool) -> None:
        self.bundle, self.brought, self.workshop, self.seed = bundle, brought, workshop, seed
        self.here = workshop.machine()["environment"]
        environments = bundle.environment.values()
        self.differs = next((words for there in environments if (words := difference(there, self.here))), "")
        self.times = "" if across else self.differs
        self.words: dict[str, list[str]] = {}  # of cells by id

    def fresh(self, number: int) -> int:
        """A seed that nobody knew when the bundle was made."""
        return SEEDS[(self.seed + number) % len(SEEDS)]

    def price(self, cell: Line) -> float:
        return self.workshop.price(self.command(cell, 0))

    def command(self, cell: Line, number: int) -> list[str]:
        """The words that measure the cell: of times and memory at inputs that nobody knew, of times beside exact attention."""
        if cell["cell"] not in self.words:
            self.words[cell["cell"]] = self.workshop.command(cell, self.bundle.runs[cell["run"]])
        words = self.words[cell["cell"]]
        if cell["measure"] in ("speed", "memory"):
            words = with_seed(words, self.fresh(number))
        exact = self._exact_beside(cell)
        return with_exact(words, exact) if exact else words

    def _exact_beside(self, cell: Line) -> Line | None:
        """The time in the bundle to which that of the cell is compared."""
        return exact_beside(self.bundle, cell) if cell["measure"] == "speed" else None

    def judged(self, cell: Line, number: int, sampled: int, longest_s: float) -> Verdict:
        try:
            now = self._measured(cell, self.command(cell, number), longest_s)
            verdict = judged_outcome(now[0]) or self._other_source(cell, now[0]) or self._compared(cell, now, sampled)
            if verdict.state != AGREE or cell["measure"] != "fidelity" or not set(parts_of(cell["variant"]["name"])) & set(self.brought.names):
                return verdict
            fresh = self._measured(cell, with_seed(self.command(cell, number), self.fresh(number)), longest_s)[0]
            return judged_outcome(fresh) or judged_error(cell, fresh, is_fresh=True)
        except NotMeasured as error:
            return Verdict(NEITHER, str(error))

    def _measured(self, cell: Line, words: list[str], longest_s: float) -> tuple[Line, Line | None]:
        """The cell anew, and exact attention beside it."""
        whole = self.workshop.measured(words, "anew.jsonl", longest_s)
        faults = faults_of_rows("the new row", whole, self.bundle.protocol)  # a plug-in's process may have written it
        if fault := next((f for f in faults if f.kind in ("form", "edited", "unverified")), None):
            raise NotMeasured(f"what was measured here does not fit together: {fault.words}")
        lines = whole[1:]
        exact = self._exact_beside(cell)
        own = [line for line in lines if line["variant"] == cell["variant"] and line["measure"] == cell["measure"]]
        beside = [line for line in lines if exact and line["variant"] == exact["variant"]]
        if not own or (exact and not beside):
            raise NotMeasured("the program gave no row of it")
        return own[0], beside[0] if beside else None

    def _other_source(self, cell: Line, now: Line) -> Verdict | None:
        """Sources of attnbench's own variants that are not this program's: another version, which may compute something else."""
        there, here = cell.get("source", {}), now.get("source", {})
        of = [name for name in OWN if there.get(name) != here.get(name) and not (cell.get("provided_by") == "plugin" and name in ("variant", "task"))]
        if not of:
            return None
        run = self.bundle.runs[cell["run"]]["environment"]
        words = f"the sources of its {of[0]} have hash {plain(str(there.get(of[0])))} there and {plain(str(here.get(of[0])))} here"
        is_same = run.get("commit") and run.get("commit") == self.here.get("commit") and not run.get("dirty") and not self.here.get("dirty")
        return Verdict(DISAGREE, f"{words}, at one commit") if is_same else Verdict(NEITHER, f"{words}: another version of attnbench")

    def _compared(self, cell: Line, now: tuple[Line, Line | None], sampled: int) -> Verdict:
        measure = cell["measure"]
        if measure in VERIFIED and (wrong := judged_answer(cell, now[0])):
            return wrong
        if measure == "speed":
            exact = self._exact_beside(cell)
            assert exact is not None and now[1] is not None
            if failed := judged_outcome(now[1]):
                return Verdict(NEITHER, f"exact attention beside it: {failed.words}")
            return judged_time(((cell, exact), (now[0], now[1])), sampled, OTHER_TIME if self.differs else TIME)
        if measure == "memory":
            return judged_bytes(cell, now[0], is_same_machine=not self.differs)
        if measure == "fidelity":
            return judged_error(cell, now[0], is_fresh=False)
        is_same = is_same_build(self.bundle.runs[cell["run"]]["environment"], self.here)
        return judged_score(cell, now[0], self._other_seeds(cell), sampled, is_same_build=is_same)

    def _other_seeds(self, cell: Line) -> list[float]:
        """The scores of the same training with other seeds."""
        def setting(of: Line) -> tuple[object, ...]:
            return (of["measure"], of["variant"], of["task"], of.get("training"), {k: v for k, v in of["axes"].items() if k != "seed"})

        return [float(c["metrics"]["test"]) for c in self.bundle.cells if c["status"] == "ok" and c["cell"] != cell["cell"] and setting(c) == setting(cell)]
