"""No circle of imports in the Python, those within functions included; and what draws needs no compiled extension."""

from __future__ import annotations

import ast
import subprocess
import sys
import unittest
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from ..faults import ROOT

PACKAGES = {"attnbench": ROOT / "python" / "attnbench", "dev": ROOT / "scripts" / "dev"}


def modules() -> dict[str, Path]:
    found = {}
    for name, folder in PACKAGES.items():
        for path in folder.rglob("*.py"):
            parts = [name, *path.relative_to(folder).with_suffix("").parts]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, known: set[str]) -> set[str]:
    """The modules of `known` that one names anywhere in its text."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {f"{base}.{alias.name}" for alias in node.names} | {base}
    return (found & known) - {name}


class Imports(unittest.TestCase):
    def test_no_circle(self) -> None:
        paths = modules()
        # attnbench/__init__.py passes names of its modules on when they are first used.
        graph = {name: imported(name, path, set(paths)) - {"attnbench"} for name, path in paths.items() if name != "attnbench"}
        self.assertGreater(sum(map(len, graph.values())), 300)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            self.fail(" → ".join(error.args[1]))

    def test_rooms_of_pictures_have_arrows_one_way(self) -> None:
        paths = modules()
        rooms = [f"attnbench.plots.{room}." for room in ("rows", "layout", "kinds")]
        later = {name: rooms[i + 1 :] for i, room in enumerate(rooms) for name in paths if name.startswith(room)}
        self.assertGreater(len(later), 20)
        for name, forbidden in later.items():
            outside = {m for m in imported(name, paths[name], set(paths)) if m.startswith(tuple(forbidden))} if forbidden else set()
            self.assertFalse(outside, name)

    def test_drawing_needs_no_extension(self) -> None:
        paths = modules()
        for name in ("plots", "reports", "reproduce", "peers", "regress", "slurm"):
            for module, path in paths.items():
                if module.startswith(f"attnbench.{name}"):
                    needs = imported(module, path, {*paths, "attnbench._core"})
                    self.assertFalse(needs & {"attnbench._core", "attnbench._program"}, module)
        program = "import sys, attnbench.plots.rows.read; sys.exit('attnbench._core' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT / "python")}).returncode, 0)
