"""python -m attnbench.plots plot [ROWS...] [-o DIR]; exit 0 drawn, 2 wrong usage or rows, 4 nothing to draw,
6 a file that cannot be read or written."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from .command import Parser
from .rows.read import NothingDrawn, Rows, RowsError


def checked_folder(folder: Path, parser: Parser) -> Path:
    """The output folder, made and proved writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        parser.stop(6, f"{folder}: cannot be written: {error.strerror}")
    return folder


def main(arguments: list[str]) -> int:
    parser = Parser(
        "plot",
        "Draws rows as PNG and SVG, with the plotted data as CSV. "
        "Prints the paths of the files written.",
    )
    parser.add_argument(
        "rows",
        nargs="*",
        type=Path,
        metavar="ROWS",
        help="rows files, drawn together; default: the newest in results/ here or of the "
        "repository about this folder. Of a cell that several files hold, measured by the same "
        "program on the same machine, the later file's counts; "
        "if anything but the time differs, each file's are drawn, labelled (file name)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="folder of the pictures; default: beside the first rows file, named <stem>-plots",
    )
    parser.add_argument(
        "--kind",
        metavar="NAME",
        help="one kind of picture alone, for example speed, crossing, learning or tradeoff; with --style also heat-scores (variant by task) "
        "and heat-speedup (variant by length)",
    )
    parser.add_argument(
        "--style",
        metavar="NAME",
        help="paper (PDF and SVG, 3.3in wide), slide (PDF and SVG, 10in) or web (SVG and PNG, 7in): "
        "a picture for each panel, with a key and without title and caption",
    )
    parser.add_argument("--width", metavar="SIZE", help="of a picture of --style: 3.3in, 84mm, 240pt (TeX's)")
    parser.add_argument("--font", metavar="NAME", help="of a picture of --style; default: DejaVu Sans")
    parser.add_argument(
        "--x", metavar="NAME", help="with --y: any axis, parameter or metric of the rows: length, rank, state_bytes; variant: a list, best first"
    )
    parser.add_argument("--y", metavar="NAME", help="with --x: time_s, peak_bytes, test, relative_error; --style is web")
    parser.add_argument("--by", metavar="NAME", help="with --x: a line for each value; default: variant")
    parser.add_argument(
        "--facet", metavar="NAME", help="with --x: a picture for each value, and for what else differs"
    )
    given = parser.parse_args(arguments)
    if fault := _fault(given):
        parser.stop(2, fault)
    files = given.rows or parser.newest_rows("draws")
    rows = parser.rows_of(files, "draw")
    wanted = given.output or files[0].with_name(f"{files[0].stem}-plots")
    is_new = not wanted.exists()
    folder = checked_folder(wanted, parser)

    try:
        written = _drawn(given, rows, folder)
        if not written:
            raise NothingDrawn(f"{', '.join(map(str, files))}: no picture shows these rows ({_held(rows)})")
    except RowsError as error:
        if is_new:
            folder.rmdir()
        if not isinstance(error, NothingDrawn):
            parser.stop(2, str(error))
        why = "; scores are left out, for the control has not learned the setting: see above" if rows.left_out else ""
        parser.stop(4, f"{error}{why}")
    except OSError as error:
        parser.stop(6, f"{folder}: cannot be written: {error.strerror}")
    parser.tell("\n".join(map(str, written)))
    return 0


def _held(rows: Rows) -> str:
    """Returns the measures of the rows: `speed, memory`."""
    kinds = dict.fromkeys(c.measure for c in (*rows.cells, *rows.trainings()) if c.ok)
    return ", ".join(kinds) or "no cell is ok"


def _fault(given: argparse.Namespace) -> str:
    """Returns what is wrong between the options, "" for nothing."""
    of_xy = next((f"--{name}" for name in ("by", "facet") if getattr(given, name)), "")
    of_style = next((f"--{name}" for name in ("width", "font") if getattr(given, name)), "")
    if bool(given.x) != bool(given.y):
        return f"--{'x' if given.x else 'y'} needs --{'y' if given.x else 'x'} too"
    if of_xy and not given.x:
        return f"{of_xy} goes with --x and --y"
    if given.kind and given.x:
        return "--kind and --x exclude each other: --x and --y say what is drawn"
    if of_style and not (given.style or given.x):
        return f"{of_style} goes with --style paper, slide or web"
    return ""


def _drawn(given: argparse.Namespace, rows: Rows, folder: Path) -> list[Path]:
    # matplotlib takes most of a second to load: only once it is needed
    if not (given.style or given.x or str(given.kind).startswith("heat-")):
        from .gallery import draw_all
        from .layout.page import save

        return save(draw_all(rows, given.kind), folder)
    from .kinds.by_any import by_any
    from .kinds.panel_data import panel_style
    from .kinds.panel_draw import draw_panels
    from .kinds.panel_kinds import panels_of
    from .rows.style import Styles

    styles = Styles(rows)
    style = panel_style(given.style or "web", given.width, given.font)
    if given.x:
        panels = by_any(rows, styles, given.x, given.y, given.by or "variant", given.facet or "")
    else:
        panels = panels_of(given.kind, rows, styles)
    return draw_panels(panels, styles, style, folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
