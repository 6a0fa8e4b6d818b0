"""What to run where the rows do not decide: a command, and what the program forecasts for it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import Any

from attnbench._place import COMMAND, program
from attnbench.plots.rows.read import OF_RUN
from attnbench.plots.rows.settings import spec_text

from .choosing import Open
from .evidence import EXACT, Evidence, Key, key_of
from .kinds import SOLVERS, tasks_of
from .standing import Standing, Table

MOST = 8  # variants of one command
SEEDS = 5  # trainings, more than the least that may decide
PATIENCE = 10  # seconds for a forecast
AXES = ("batch", "heads", "head_dim", "kv_heads", "threads", "dtype", "kv_dtype")  # options of the same name


def remedy(found: Open, table: Table, evidence: Evidence) -> str:
    """Returns a command whose rows, read beside those that were asked, tell what is open."""
    question, words = table.question, [COMMAND, "run"]
    wants_score = found.what == "score" or (found.what == "question" and not table.timing.fault)
    held = [s.key for s in found.standings] or _any(table)
    names = [evidence.label(key) for key in list(dict.fromkeys([evidence.exact, *held]))[: MOST + 1]]
    trained = _training(found, table) if wants_score else []
    tasks = {word.partition("[")[0] for word in trained}
    names += [solver for task, solver in SOLVERS.items() if task in tasks]
    words += [word for name in dict.fromkeys(names) for word in ("-v", name)]
    if wants_score:
        words += trained
        name = f"advise-{question.task}"
    else:
        memory = ",memory" if question.memory is not None else ""
        words += ["--measure", f"speed{memory}" if found.what != "memory" else "memory"]
        words += ["--length", str(question.length), "--mode", question.mode]
        words += ["--causal", "true"] if question.causal and question.mode != "decode" else []
        shape = table.timing.times.axes if table.timing.times else _usual(table)
        words += [w for name in AXES if name in shape for w in ("--" + name.replace("_", "-"), str(shape[name]))]
        words += ["--precision", "1%"] if found.what == "time" and not found.reason.startswith("no time") else []
        name = f"advise-{question.mode}-{question.length}"
    return shlex.join([*words, "-o", f"{name}.jsonl"])


def _any(table: Table) -> list[Key]:
    """Returns the variants that the rows have in this mode, at any length, where no reason names any; else those whose times do not
    count; else those that they have at all."""
    watch = table.timing.clock
    timed = [key for spots in watch.cells.values() for by_key in spots.values() for key in by_key]
    timed = timed or [key_of(cell) for cell in (*watch.disturbed, *watch.single)]
    return [key for key in timed or [s.key for s in table.standings] if key[0] != EXACT]


def _usual(table: Table) -> dict[str, Any]:
    """Returns the axes of the shape that most variants have in this mode, though not at this length."""
    by_shape = {shape: len({k for keys in spots.values() for k in keys}) for shape, spots in table.timing.clock.cells.items()}
    return json.loads(max(sorted(by_shape), key=lambda s: by_shape[s])) if by_shape else {}


def _training(found: Open, table: Table) -> list[str]:
    """Returns the tasks with the parameters that the rows have, or those of the kind by name, and enough seeds."""
    known = {(str(c.task), c.task_params) for s in table.standings for own in s.scores for c in own.cells if c.task in table.scored.tasks}
    specs = [spec_text(task, params) for task, params in sorted(known)]
    specs = specs or list(tasks_of(table.question.task)[:1])
    words = [w for spec in specs for w in ("-t", spec)]
    cut = [c for s in found.standings for own in s.scores if own.fault.startswith("training cut") for c in own.cells]
    steps = max((int(c.training.get("steps") or 0) for c in cut), default=0)
    return [*words, "--seed", ",".join(map(str, range(SEEDS))), *(["--train", f"steps={4 * steps}"] if steps else [])]


def forecast(command: str) -> str:
    """Returns what the program expects a command to take, `about 3 min`, or "" where it does not tell soon."""
    path = program()
    if not path.exists():
        return ""
    words = [str(path), *shlex.split(command)[1:], "--dry-run"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    told = re.search(r"; (about .*?) in all", done.stderr)
    return told[1] if told and done.returncode == 0 else ""


def reproduce(evidence: Evidence, standing: Standing) -> list[str]:
    """Returns the commands that show each cell behind a standing."""
    cells = [*standing.cells, *(standing.held.cells if standing.held else ()), *(c for s in standing.scores for c in s.cells)]
    lines = [shlex.join([COMMAND, "repro", evidence.path_of(c), c.id.partition(OF_RUN)[0]]) for c in cells]
    return list(dict.fromkeys(lines))
