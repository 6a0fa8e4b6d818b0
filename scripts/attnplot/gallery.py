"""All pictures that a set of rows has the data for."""

from __future__ import annotations

from .accuracy import accuracy
from .crossing_page import crossings
from .distance import distance
from .fidelity import fidelity
from .length import length
from .memory import memory
from .overview import overview
from .page import Picture
from .relative import relative
from .rows import Rows
from .speed import speed
from .state import state
from .style import Styles
from .tradeoff import tradeoff


def draw_all(rows: Rows) -> list[Picture]:
    styles = Styles(rows)
    times = (speed, relative, crossings)
    scores = (accuracy, distance, length, state)
    return [
        picture
        for draw in (overview, *times, memory, *scores, tradeoff, fidelity)
        for picture in draw(rows, styles)
    ]
