"""What pictures of test scores share: a page with a panel a task, and lines with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from .accuracy import head
from .metric import label_scores
from .page import Page
from .style import Look
from .tasks import TaskGroup


class TaskPage:
    """`panels()` gives each task its axes, headed; scores are named where the left one's differ."""

    def __init__(
        self,
        title: str,
        subtitle: str,
        words: str,
        entries: Iterable[tuple[Line2D, str]],
        groups: Sequence[TaskGroup],
        most_columns: int,
        height: float,  # inches of a panel
        row_gap: float,
        below: float,
    ) -> None:
        self.groups = groups
        self.columns = min(most_columns, len(groups))
        rows = math.ceil(len(groups) / self.columns)
        self.page = Page(
            title,
            subtitle,
            words,
            list(entries),
            [height] * rows,
            self.columns,
            gaps=[0.46] + [row_gap] * (rows - 1),
            between=0.42 if len({g.metric for g in groups}) == 1 else 0.66,
            right=0.2,
            below=below,
        )

    def panels(self) -> Iterator[tuple[Axes, TaskGroup]]:
        for index, group in enumerate(self.groups):
            row, column = divmod(index, self.columns)
            axes = self.page.panel(row, column)
            head(axes, group)
            label_scores(axes, group.metric, self.groups[index - 1].metric if column else None)
            yield axes, group


def bar_line(
    axes: Axes, look: Look, x: Sequence[float], y: Sequence[float], half: Sequence[float]
) -> None:
    axes.plot(x, y, **look.line(), clip_on=False, zorder=3)
    axes.errorbar(x, y, yerr=half, color=look.color, elinewidth=1, capsize=2.4, fmt="none")
