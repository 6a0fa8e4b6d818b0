"""Runs blocks: starts the sides, checks that they agree, times them in turns, in random order, so
that a drift of the machine hits all alike, and records all."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import loading
from .inputs import write_inputs, write_pattern
from .plan import TITLES, Block
from .record import LEAST, Record, comparison, ratio_of
from .sides import Side, SideError, start_ours, start_peer

PAUSE_S = (
    0.05  # before a turn: the threads of the side before stop spinning, onnxruntime's after 30 ms
)
TURN_S = 0.1  # short calls are repeated within a turn until it is this long
SHORT_S = 0.25  # calls below it are preceded by an untimed one in every turn
ROUNDS = (LEAST, 15)
SLOW_S, SLOW_ROUNDS = 8.0, 3  # a side this slow takes part in so many rounds
Progress = Callable[[str], None]


@dataclass
class Taker:
    """One side in its turns; a sample is the median call of a turn."""

    side: Side
    mode: str
    repeat: int = 1
    warm: int = 0
    rounds: int = 0

    def probe(self) -> float:
        """Seconds of a second call: the first may compile for a minute, allocates and warms."""
        return self.side.ask(self.mode, warm=1, repeat=1)["seconds"][0]

    def plan(self, call_s: float, budget_s: float) -> None:
        self.repeat = max(1, min(50, round(TURN_S / call_s)))
        self.warm = int(call_s < SHORT_S)
        turn_s = call_s * (self.repeat + self.warm) + PAUSE_S
        least = SLOW_ROUNDS if call_s > SLOW_S else ROUNDS[0]
        self.rounds = max(least, min(ROUNDS[1], int(budget_s / turn_s)))

    def turn(self) -> float:
        time.sleep(PAUSE_S)
        return statistics.median(
            self.side.ask(self.mode, warm=self.warm, repeat=self.repeat)["seconds"]
        )


def take_turns(
    sides: list[Side], mode: str, budget_s: float, seed: int
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """Samples of each side by name, round by round, and why a side dropped out, which the others
    survive. The first side takes part in every round; its SideError is raised."""
    takers = [Taker(side, mode) for side in sides]
    first = takers[0]
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    faults: dict[str, str] = {}

    def tried(taker: Taker, call: Callable[[], None]) -> None:
        try:
            call()
        except SideError as error:
            if taker is first:
                raise
            faults[taker.side.name] = str(error)
            takers.remove(taker)
            del samples[taker.side.name]

    for taker in tuple(takers):
        tried(taker, lambda: taker.plan(taker.probe(), budget_s / len(sides)))
    order = random.Random(seed)
    done = 0
    while takers[1:] and done < max(taker.rounds for taker in takers):
        playing = [taker for taker in takers if taker is first or done < taker.rounds]
        order.shuffle(playing)
        for taker in playing:
            tried(taker, lambda: samples[taker.side.name].append(taker.turn()))
        done += 1
    return samples, faults


# The only mode of these peers; others do all.
FORWARD_ONLY = {
    "onnxruntime": "onnxruntime has no backward pass",
    "ggml": "ggml's attention has no backward pass",
    "flex": "flex_attention has no backward pass on CPUs",
}
# What goes wrong on our side or while inputs are made. The other blocks go on.
OURS = (SideError, loading.Disagreement, RuntimeError, MemoryError, OSError)
MATERIALIZED, MOST_BYTES = ("jax",), 2**30  # who holds the n x n weights, and how large they may be


def refusal(peer: str, block: Block, mode: str) -> str | None:
    """Why this peer cannot take part, or None."""
    if mode in ("train", "step") and peer in FORWARD_ONLY:
        return FORWARD_ONLY[peer]
    if reason := block.without.get(peer):
        return reason
    if block.longest and block.length > block.longest:
        return (
            block.beyond or f"a call at lengths above {block.longest} takes {TITLES[peer]} minutes"
        )
    weights = 4 * block.batch * block.heads * block.length**2
    if peer in MATERIALIZED and weights > MOST_BYTES:
        return (
            f"{TITLES[peer]} would hold n x n weights of {weights / 2**30:.1f} GiB, several times"
        )
    return None


class Session:
    """`versions` is of the libraries found; blocks of one thread count share their processes."""

    def __init__(
        self, program: Path, python: Path, record: Record, say: Callable[[str], None], seed: int
    ) -> None:
        self.program, self.python, self.record, self.say = program, python, record, say
        self.seed = seed
        self.sides: dict[str, Side] = {}
        self.threads = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for side in self.sides.values():
            side.close()
        self.sides.clear()

    def side(self, name: str, threads: int) -> Side:
        """The living process of that side on so many threads, started when there is none."""
        if threads != self.threads:
            self.close()
            self.threads = threads
        found = self.sides.get(name)
        if found is not None and not found.alive:
            found.close()
            found = None
        if found is None:
            if name in TITLES:
                found = start_peer(name, self.python, threads)
            else:
                found = start_ours(self.program, threads)
            self.sides[name] = found
        return found

    def run(self, block: Block, place: str) -> None:
        self.say(f"{place} {block.title()}, {block.threads} thread{'s' * (block.threads > 1)}")
        with tempfile.TemporaryDirectory(prefix="attnpeers-") as folder:
            try:
                self._run(block, Path(folder))
            except OURS as error:  # there is nothing to compare with
                for mode in block.modes:
                    for peer in block.peers:
                        self._add(block, peer, mode, status="failed", reason=str(error))

    def _run(self, block: Block, folder: Path) -> None:
        refused = {
            (mode, peer): refusal(peer, block, mode) for mode in block.modes for peer in block.peers
        }
        if all(refused.values()):  # nothing to compare with: our side need not compute
            for (mode, peer), reason in refused.items():
                self._add(block, peer, mode, status="skipped", reason=reason)
            return
        ours = self.side("attnbench", block.threads)
        inputs = write_inputs(block, folder, self.seed) | write_pattern(block, ours, folder)
        flops = loading.load(ours, block, inputs).get("flops", {})
        mine = loading.answers(ours, block, inputs, folder)
        sides: dict[str, Side] = {}
        agreed: dict[str, dict[str, float]] = {}
        faults: dict[str, str] = {}  # why a peer is out for the rest of the block
        for peer in block.peers:
            modes = [mode for mode in block.modes if not refused[mode, peer]]
            if not modes:
                continue
            try:
                sides[peer] = self.side(peer, block.threads)
                loading.load(sides[peer], block, inputs)
                theirs = loading.answers(sides[peer], block, inputs, folder)
                forward_only = modes == ["forward"]
                agreed[peer] = loading.agreement(
                    mine, theirs, forward_only=forward_only, cache=block.peer_cache(peer)
                )
            except (SideError, loading.Disagreement) as error:
                faults[peer] = str(error)
        del mine
        for mode in block.modes:
            playing = [p for p in block.peers if p not in faults and not refused[mode, p]]
            samples: dict[str, list[float]] = {}
            if playing:
                taking = [ours, *(sides[peer] for peer in playing)]
                try:
                    samples, dropped = take_turns(taking, mode, block.budget_s, self.seed)
                    faults |= dropped
                except SideError as error:  # of ours, without which there is no comparison
                    faults |= dict.fromkeys(block.peers, str(error))
            for peer in block.peers:
                if reason := refused[mode, peer]:
                    self._add(block, peer, mode, status="skipped", reason=reason)
                elif peer in faults:
                    self._add(block, peer, mode, status="failed", reason=faults[peer])
                else:
                    self._compare(block, peer, mode, agreed[peer], samples, flops.get(mode))

    def _compare(
        self,
        block: Block,
        peer: str,
        mode: str,
        agreed: dict[str, float],
        samples: dict[str, list[float]],
        flops: float | None,
    ) -> None:
        theirs = samples[peer]
        ours = samples["attnbench"][: len(theirs)]  # of the rounds that both took part in
        self._add(
            block, peer, mode, agreement=agreed, ours=ours, theirs=theirs,
            ratio=ratio_of(ours, theirs), flops=flops,
        )  # fmt: skip

    def _add(self, block: Block, peer: str, mode: str, **fields: Any) -> None:
        row = self.record.add("comparison", **comparison(block, peer, mode, **fields))
        told = row["reason"] or f"{row['metrics']['ratio']['median']:.2f} times our time"
        self.say(f"    {mode}, {TITLES[peer]}: {told}")
