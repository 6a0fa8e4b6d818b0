"""Which of a bundle's variants and tasks are attnbench's own, and which it brings as sources: C++ files for one plug-in, and files of Python.
The build is described by us and not by the bundle: a bundle holds no CMake file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .._place import IS_CLONE, ROOT, program
from ..plots.rows.checksum import hash_of_bytes
from .archive import Line
from .container import BundleError, plain
from .sandbox import Sandbox

BUILD_LIMIT = 900  # seconds: two compilers of a small machine, busy with other work
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(bundle CXX)
find_package(attnbench REQUIRED)
attnbench_add_plugin(bundle {lists})
"""


@dataclass(frozen=True)
class InPython:
    """A variant in Python: its name in rows, the file that holds it, and the class or function there."""

    variant: str
    file: str
    attribute: str

    @property
    def spec(self) -> str:
        return f"python:{self.file}:{self.attribute}"


@dataclass(frozen=True)
class Brought:
    """What the rows need beside attnbench: stems of C++ files of variants and tasks, other C++ files, variants in Python."""

    variants: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    pythons: tuple[InPython, ...] = ()

    @property
    def has_cxx(self) -> bool:
        return bool(self.variants or self.tasks)

    @property
    def names(self) -> tuple[str, ...]:
        """Names in rows of the variants that are brought."""
        return (*self.variants, *(one.variant for one in self.pythons))


def parts_of(variant: str) -> list[str]:
    """The names of the variants of a stack, "full+2*linear" or "full+2·linear[...]"; of another variant its own."""
    return re.findall(r"[a-z][a-z0-9_]*", re.sub(r"\[[^]]*\]", "", variant))


def brought_by(sources: dict[str, bytes], cells: list[Line], runs: dict[str, Line], own: set[str], own_tasks: set[str]) -> Brought:
    """What `sources`, by file name, bring of what the rows name. `own` and `own_tasks` are the names of this program's variants and tasks.
    Raises BundleError for rows of a variant or task that nobody has, and for a source that is not the one that was measured."""
    stems = {Path(name).stem for name in sources if name.endswith(".cc")}
    pythons: dict[str, InPython] = {}
    hashes: dict[tuple[str, str], str] = {}  # of a file and an attribute: many cells name the same
    variants, tasks = set(), set()
    for cell in cells:
        _refuse_paths(cell)
        names = parts_of(cell["variant"]["name"])
        task = cell["task"]["name"] if cell.get("task") else None
        if cell.get("provided_by") == "python":
            name = cell["variant"]["name"]
            pythons[name] = _python_of(name, cell, runs[cell["run"]], sources, hashes)
            if task and task not in own_tasks:
                raise BundleError(f"cell {cell['cell']}: its task '{plain(task)}' is none of this program, and variants in Python bring none")
            continue
        missing = [n for n in names if n not in stems and n not in own]
        missing += [task] if task and task not in stems and task not in own_tasks else []
        if missing:
            raise BundleError(f"cell {cell['cell']} is of '{plain(missing[0])}', which is none of attnbench {_in_words(sources)}; "
                              f"--plugin {plain(missing[0])}.cc names its source at submit")  # fmt: skip
        is_plugin = cell.get("provided_by") == "plugin"
        named = {n for n in names if n in stems and (is_plugin or n not in own)}
        named_tasks = {task} & stems if task and (is_plugin or task not in own_tasks) else set()
        variants |= named
        tasks |= named_tasks
        if is_plugin and not named and not named_tasks:
            raise BundleError(f"cell {cell['cell']} was measured with a plug-in of '{plain(cell['variant']['name'])}', whose source is not there")
    used = {*(f"{stem}.cc" for stem in variants | tasks), *(one.file for one in pythons.values())}
    shared = sorted(name for name in sources if name.endswith(".cc") and name not in used)
    if shared and not (variants or tasks):
        raise BundleError(f"'{plain(shared[0])}' is of no variant that the rows name")
    return Brought(tuple(sorted(variants)), tuple(sorted(tasks)), tuple(shared), tuple(pythons[name] for name in sorted(pythons)))


def _refuse_paths(cell: Line) -> None:
    """Names go onto command lines, where python:FILE.py:NAME would import a file of this machine."""
    for name in (cell["variant"]["name"], (cell.get("task") or cell["variant"])["name"]):
        if not re.fullmatch(r"[a-z][a-z0-9_]*|[a-z0-9_+*·,.=\[\] ]+", name):
            raise BundleError(f"cell {cell['cell']}: '{plain(name[:60])}' is no name of a variant or a task")


def _in_words(sources: dict[str, bytes]) -> str:
    return f"nor of {', '.join(sorted(sources))}" if sources else "and has no source here"


def _python_of(name: str, cell: Line, run: Line, sources: dict[str, bytes], hashes: dict[tuple[str, str], str]) -> InPython:
    """The source of a variant in Python: the file whose bytes are those that were measured."""
    listed = run["config"].get("python")
    said = next((one for one in listed if isinstance(one, dict) and one.get("variant") == name), None) if isinstance(listed, list) else None
    attribute = said.get("name") if said else None
    if not isinstance(attribute, str) or not attribute.isidentifier():
        raise BundleError(f"cell {cell['cell']} is of '{plain(name)}', in Python, and its run does not say of which class or function")
    files = [file for file in sources if file.endswith(".py")]
    for file in files:
        if (file, attribute) not in hashes:
            hashes[file, attribute] = hash_of_bytes(sources[file] + attribute.encode())
        if hashes[file, attribute] == cell.get("plugin"):
            return InPython(name, file, attribute)
    if not files:
        raise BundleError(f"cell {cell['cell']} is of '{plain(name)}', in Python, whose source is not there; --plugin FILE.py names it at submit")
    raise BundleError(f"cell {cell['cell']} was measured with other bytes of '{plain(name)}' than those of {', '.join(sorted(files))}: "
                      f"their hash is not {plain(str(cell.get('plugin')))}")  # fmt: skip


def write_sources(sandbox: Sandbox, sources: dict[str, bytes]) -> None:
    """Puts the sources, by file name, into the sandbox."""
    for name, content in sources.items():
        (sandbox.folder / name).write_bytes(content)


def plugin_words(sandbox: Sandbox, sources: dict[str, bytes], brought: Brought) -> list[str]:
    """Puts the sources into the sandbox, builds those in C++, and returns the words that load all of them. Raises BundleError as `built`."""
    write_sources(sandbox, sources)
    specs = [str(built(sandbox, brought))] if brought.has_cxx else []
    specs += [one.spec for one in brought.pythons]
    return [word for spec in specs for word in ("--plugin", spec)]


def built(sandbox: Sandbox, brought: Brought) -> Path:
    """Builds the C++ sources, which lie in the sandbox, as one plug-in; where it lies. Raises BundleError with the compiler's first error."""
    lists = "".join(f" {kind} {' '.join(files)}" for kind, files in (
        ("VARIANTS", [f"{stem}.cc" for stem in brought.variants]), ("TASKS", [f"{stem}.cc" for stem in brought.tasks]), ("SOURCES", brought.shared),
    ) if files)  # fmt: skip
    (sandbox.folder / "CMakeLists.txt").write_text(CMAKE.format(lists=lists.strip()))
    configure: list[str | Path] = ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={_installed(sandbox)}"]
    compile_: list[str | Path] = ["cmake", "--build", "build", "-j2"]
    for words in (configure, compile_):
        done = sandbox.run(words, BUILD_LIMIT)
        if done.code:
            lines = [line for line in (done.err + done.out).splitlines() if "error" in line.lower()]
            raise BundleError(f"its sources do not build: {plain((lines or [done.last_line])[0].strip())[:200]}")
    return sandbox.folder / "build" / "libbundle.so"


def _installed(sandbox: Sandbox) -> Path:
    """The folder of the installation that find_package looks in; of a clone, one that is made beside the build."""
    prefix = program().resolve().parent.parent
    if any(prefix.glob("lib*/**/cmake/attnbench/attnbenchConfig.cmake")):
        return prefix
    if not IS_CLONE and not (program().parent / "cmake_install.cmake").is_file():
        raise BundleError("C++ sources need what `cmake --install` brings, and this program was installed without it")
    made = sandbox.folder / "installed"
    build = program().resolve().parent if (program().resolve().parent / "cmake_install.cmake").is_file() else ROOT / "build" / "native"
    done = Sandbox(sandbox.folder, is_fenced=False).run(["cmake", "--install", build, "--prefix", made], BUILD_LIMIT)
    if done.code:
        raise BundleError(f"{build} cannot be installed for the build of its sources: {plain(done.last_line)[:200]}")
    return made
