"""What a task stands for: the kinds that a question may name instead of a task. Tasks carry no such word of their own
(`attnbench list tasks --json`), so a table says it, with the reason for each kind."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Kind:
    tasks: tuple[str, ...]
    reason: str  # why these belong together


# A task may be of several kinds. A task of a plug-in is of none, and is named itself.
KINDS = {
    "recall": Kind(
        ("mqar", "induction", "needle", "fuzzy_recall", "noisy_recall", "compose", "phonebook"),
        "the answer is a value that stands earlier in the sequence, found by its key",
    ),
    "copying": Kind(
        ("copy", "selective_copy", "reverse", "compression"),
        "the answer is what was read, all of it, in the same or the reverse order",
    ),
    "tracking": Kind(
        ("states", "parity", "dyck", "counter"),
        "the answer is a state that every symbol so far has changed",
    ),
    "language": Kind(
        ("lm", "regular_language", "text", "tagging", "translate"),
        "the answer follows from the grammar of a text, or from what its words say",
    ),
    "hierarchy": Kind(("listops", "dyck"), "the answer follows from brackets within brackets"),
    "aggregation": Kind(
        ("majority", "parity", "adding", "counter", "graph"),
        "the answer is a sum, a count or a vote over many positions",
    ),
    "pictures": Kind(("image", "pathfinder", "pathx"), "the sequence is a picture, pixel by pixel"),
    "documents": Kind(("text", "retrieval"), "the answer is of a whole document, or of two"),
    "sequences": Kind(
        ("reverse", "sort", "translate"),
        "the answer is a sequence of its own, written by a decoder",
    ),
    "signals": Kind(("frames", "image"), "the input is numbers, not words"),
    "memorization": Kind(("memorization",), "the answer stands in the weights, not in the sequence"),
}

# Tasks that exact attention cannot learn, with the variant that must: a setting without a row of it says nothing.
SOLVERS = {"states": "recurrent", "parity": "recurrent"}


def tasks_of(word: str) -> tuple[str, ...]:
    """Returns the tasks that a word of `--task` means: those of a kind, or the task itself."""
    kind = KINDS.get(word)
    return kind.tasks if kind else (word,)


def known_words(in_rows: set[str]) -> list[str]:
    """Returns what `--task` takes: the kinds, the tasks of the table, and the tasks that rows have."""
    listed = {task for kind in KINDS.values() for task in kind.tasks}
    return [*KINDS, *sorted((listed | in_rows) - set(KINDS))]


def nearest(word: str, known: list[str]) -> str:
    found = get_close_matches(word, known, n=1, cutoff=0.5)
    return found[0] if found else ""
