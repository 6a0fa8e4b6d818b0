"""Which places are tried: some of every file and kind of change, the same for the same seed."""

from __future__ import annotations

import math
import random
from collections import defaultdict

from .place import Place

KINDS = {  # of an operator's first word
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), "bound"),
    **dict.fromkeys(("&&", "||", "!x", "c", "true,"), "condition"),
    **dict.fromkeys(("n", "x"), "constant"),
    **dict.fromkeys(("+", "-", "*", "/", "%", "+=", "-=", "*=", "/=", "-x"), "arithmetic"),
    "statement": "statement",
}


def kind(place: Place) -> str:
    return KINDS.get(place.operator.split()[0], "function")


def sampled(places: list[Place], count: int, seed: int) -> list[Place]:
    """A file's share grows with the square root of its places; in it kinds are equally likely."""
    files: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        files[place.file].append(place)
    count = min(count, len(places))
    draw = random.Random(seed)
    drawn = {
        file: _shuffled(files[file], random.Random(f"{seed} {file}")) for file in sorted(files)
    }
    taken = {file: 0 for file in drawn}
    chosen: list[Place] = []
    while len(chosen) < count:  # the file that is furthest behind its share; of equals, one by lot
        file = max(
            (f for f in drawn if taken[f] < len(drawn[f])),
            key=lambda f: (math.sqrt(len(drawn[f])) / (taken[f] + 1), draw.random()),
        )
        chosen.append(drawn[file][taken[file]])
        taken[file] += 1
    return sorted(chosen, key=lambda p: p.id)


def _shuffled(places: list[Place], draw: random.Random) -> list[Place]:
    kinds: dict[str, list[Place]] = defaultdict(list)
    for place in sorted(places, key=lambda p: p.id):
        kinds[kind(place)].append(place)
    for group in kinds.values():
        draw.shuffle(group)
    result = []
    while kinds:
        name = draw.choice(sorted(kinds))
        result.append(kinds[name].pop())
        if not kinds[name]:
            del kinds[name]
    return result
