"""Sides measured in turns, in random order, so that a drift of the machine hits all alike."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from .ratios import LEAST
from .sides import Side, SideError

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
