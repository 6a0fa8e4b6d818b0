"""python -m dev.chroots: builds attnbench in fresh Debians, step by step, with seconds and megabytes. The wheel has
scripts/dev/wheel try.

  containerfile            the steps of Containerfile, then `check linformer` by its entry point
  source [--suite S]       a clone and scripts/bench, to the first picture"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import containerfile
from .root import CannotMake, Root, Step

REPOSITORY = Path(__file__).parents[3]
PICTURE = "overview.png"
CLONE = "/attnbench"


def tell(step: Step) -> bool:
    print(f"{step.seconds:8.1f} s {step.megabytes:8.0f} MB  {step.command}", flush=True)
    if step.code != 0:
        print(step.output[-3000:], file=sys.stderr)
        print(f"chroots: exit code {step.code} of: {step.command}", file=sys.stderr)
    return step.code == 0


def from_containerfile(_: argparse.Namespace) -> bool:
    recipe = containerfile.read(REPOSITORY / "Containerfile")
    with Root(recipe.suite) as root:
        if not all([tell(step) for step in containerfile.build(recipe, REPOSITORY, root)]):
            return False
        return tell(containerfile.enter(recipe, root, "check", "linformer"))


def picture_of(root: Root, folder: str) -> bool:
    found = sorted((root.folder / folder.lstrip("/")).rglob(PICTURE))
    fresh = [path for path in found if "reference" not in path.parts]
    print(f"pictures: {', '.join(f'{path.name}, {path.stat().st_size} bytes' for path in fresh) or 'none'}")
    return bool(fresh)


def from_source(options: argparse.Namespace) -> bool:
    with Root(options.suite, ("git",)) as root:
        root.put_clone(REPOSITORY, CLONE)
        return tell(root.run("scripts/bench", CLONE)) and picture_of(root, CLONE)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m dev.chroots", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    ways = parser.add_subparsers(dest="way", required=True)
    ways.add_parser("containerfile").set_defaults(do=from_containerfile)
    source = ways.add_parser("source")
    source.set_defaults(do=from_source)
    source.add_argument("--suite", default="bookworm", choices=sorted(containerfile.SUITES.values()))
    options = parser.parse_args()
    try:
        return 0 if options.do(options) else 1
    except (CannotMake, containerfile.NotUnderstood) as error:
        print(f"chroots: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
