"""Puts labels beside points so that they cover neither each other nor the points."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox


def place_labels(
    axes: Axes, labels: list[tuple[float, float, float, str, object]], *, size: float = 8
) -> None:
    """Each label (x, y, radius in points, text, colour) takes the place that overlaps least."""
    figure = axes.figure
    renderer = figure.canvas.get_renderer()
    pixel = figure.dpi / 72
    centres = [axes.transData.transform((x, y)) for x, y, *_ in labels]
    discs = [
        Bbox.from_extents(cx - r * pixel, cy - r * pixel, cx + r * pixel, cy + r * pixel)
        for (cx, cy), (_, _, r, _, _) in zip(centres, labels)
    ]
    taken: list[Bbox] = []
    frame = axes.get_window_extent(renderer)
    for (x, y, radius, text, color), disc in zip(labels, discs):
        best: tuple[float, tuple[float, float, str, str], Bbox] | None = None
        gap = radius + 2.5
        diagonal = 0.72 * radius + 2.5
        for rank, (dx, dy, ha, va) in enumerate(
            (
                (gap, 0, "left", "center"),
                (-gap, 0, "right", "center"),
                (0, gap, "center", "bottom"),
                (0, -gap, "center", "top"),
                (diagonal, diagonal, "left", "bottom"),
                (diagonal, -diagonal, "left", "top"),
                (-diagonal, diagonal, "right", "bottom"),
                (-diagonal, -diagonal, "right", "top"),
            )
        ):
            note = axes.annotate(
                text,
                (x, y),
                xytext=(dx, dy),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=size,
            )
            box = note.get_window_extent(renderer)
            note.remove()
            outside = box.width * box.height - _overlap(box, frame)
            cost = rank * 0.02 + outside + sum(_overlap(box, t) * 2 for t in taken)
            cost += sum(_overlap(box, d) for d in discs if d is not disc)
            if best is None or cost < best[0]:
                best = cost, (dx, dy, ha, va), box
        assert best is not None
        (dx, dy, ha, va), box = best[1:]
        taken.append(box)
        axes.annotate(
            text,
            (x, y),
            xytext=(dx, dy),
            textcoords="offset points",
            ha=ha,
            va=va,
            fontsize=size,
            color=color,
            zorder=8,
        )


def _overlap(a: Bbox, b: Bbox) -> float:
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    high = min(a.y1, b.y1) - max(a.y0, b.y0)
    return wide * high if wide > 0 and high > 0 else 0.0
