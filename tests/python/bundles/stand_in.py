"""Answers as the program attnbench does, by the laws of planted.py: `python -m tests.python.bundles.stand_in BEHAVIOUR WORDS...`. BEHAVIOUR is JSON:
`log` (a file that gets every command), `price` (seconds of each cell), `cpu` (the processor), `commit`, `red` (variants whose checks are red),
`factor` (of every figure that it measures, as of rows that lied), `source` (another hash for a variant). A file of Python that --plugin names is
imported, as the real program does, and asked: error(seed) for its errors, time(length) for its times, wrong(seed) whether its timed answer is wrong,
checks() for its contract."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from attnbench.plots.rows.checksum import hash_of_bytes

from .planted import ENVIRONMENT, PROTOCOL, TASKS, VARIANTS, cell, run_line, sealed, text_of

Line = dict[str, Any]


def options(words: list[str]) -> tuple[list[str], dict[str, list[str]]]:
    """Words and options of a command line of `run`, `repro` and `check`."""
    plain, found = [], {}
    flags = ("--print", "--dry-run", "--yes", "--quiet", "--json", "--quick")
    rest = iter(words)
    for word in rest:
        if word in flags:
            found.setdefault(word, []).append("")
        elif word.startswith("-"):
            name, eq, value = word.partition("=")
            found.setdefault(name, []).append(value if eq else next(rest))
        else:
            plain.append(word)
    return plain, found


def plugins(found: dict[str, list[str]]) -> dict[str, tuple[ModuleType, str]]:
    """Variants in Python by name in rows: the module, and the hash that rows have."""
    loaded = {}
    for spec in found.get("--plugin", []):
        file, attribute = spec.removeprefix("python:").rsplit(":", 1)
        module = ModuleType("plugin")
        content = Path(file).read_bytes()
        exec(compile(content, file, "exec"), module.__dict__)
        loaded[f"python_{attribute.lower()}"] = (module, hash_of_bytes(content + attribute.encode()))
    return loaded


def measured(name: str, found: dict[str, list[str]], behaviour: Line, loaded: dict[str, tuple[ModuleType, str]]) -> Line:
    measure, length, seed = found["--measure"][0], int(found["--length"][0]), int(found.get("--seed", ["0"])[0])
    name = name.partition("[")[0]
    name = f"python_{name.rsplit(':', 1)[1].lower()}" if name.startswith("python:") else name
    factor = behaviour.get("factor", 1.0) if name != "full" else 1.0
    changes: Line = {"source": {"variant": behaviour["source"][name]}} if name in behaviour.get("source", {}) else {}
    if name in loaded:
        module, digest = loaded[name]
        changes = {"provided_by": "python", "plugin": digest, "source": {"variant": digest}}
        factor *= module.error(seed) / 0.5 if measure == "fidelity" else module.time(length) / (4e-7 * length) if measure == "speed" else 1
        if measure == "speed" and module.wrong(seed):
            changes |= {"status": "failed", "reason": "the answer is wrong: row 3 of head 0", "metrics": None, "samples": None, "gate": "red"}
    line = cell(measure, name, length, seed=seed, noise=2, factor=factor, **changes)
    if changes.get("status"):
        line.pop("verified"), line.pop("visits")
        line = sealed(line)
    return line


def main(behaviour: Line, words: list[str]) -> int:
    if log := behaviour.get("log"):
        with Path(log).open("a") as file:
            file.write(shlex.join(words) + "\n")
    verb, (plain, found) = words[0], options(words[1:])
    environment = {**ENVIRONMENT, "cpu_model": behaviour.get("cpu", ENVIRONMENT["cpu_model"]), "commit": behaviour.get("commit", ENVIRONMENT["commit"])}
    if verb == "protocol":
        print(json.dumps(PROTOCOL))
    elif verb == "list":
        print(json.dumps({"variants": [{"name": n} for n in VARIANTS], "tasks": [{"name": n} for n in TASKS]}))
    elif verb == "check":
        loaded = plugins(found)
        red = plain[0] in behaviour.get("red", ()) or (plain[0] in loaded and not loaded[plain[0]][0].checks())
        print(f"{'RED ' if red else 'ok  '} {plain[0]}  reference  row 0")
        return 5 if red else 0
    elif verb == "repro":
        row = next(line for line in map(json.loads, Path(plain[0]).read_text().splitlines()) if line.get("cell") == plain[1])
        name = row["variant"]["name"]
        spec = next((s for s in found.get("--plugin", []) if name == f"python_{s.rsplit(':', 1)[1].lower()}"), name)
        told = ["attnbench", "run", "-v", spec, "--measure", row["measure"], "--length", str(row["axes"]["length"]), "--seed", str(row["axes"]["seed"])]
        print(shlex.join([*told, *(w for s in found.get("--plugin", []) for w in ("--plugin", s))]))
    elif verb == "run" and "--dry-run" in found:
        print(json.dumps([{"forecast_s": behaviour.get("price", 1.0), "skipped": None}]))
    elif verb == "run":
        loaded = plugins(found)
        rows = [measured(name, found, behaviour, loaded) for name in found["-v"]]
        Path(found["-o"][0]).write_text(text_of([run_line(environment=environment), *rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
