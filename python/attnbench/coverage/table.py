"""What is there and what is not, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..plots.rows.units import Units, in_units
from .asked import Setting
from .held import CANNOT, SIGNS, TO_MEASURE, Held
from .sweep import spec_of
from .worth import Choice, Survey

Defaults = dict[str, dict[str, Any]]
SHOWN = 40  # choices in the text
SPANS: Units = ((" d", 86400.0), (" h", 3600.0), (" min", 60.0), (" s", 1.0))


def time_text(seconds: float) -> str:
    """Writes three digits in the largest unit that the time fills: `2.5 h`."""
    return in_units(seconds, SPANS)


def map_text(survey: Survey, defaults: Defaults) -> str:
    """A line a variant, a sign a setting."""
    settings = {measure: _in_runs(of) for measure, of in _by_measure(survey).items()}
    by_label: dict[str, dict[Setting, Held]] = {}
    for one in survey.held:
        label = spec_of(one.unit.variant, one.unit.raw_params, defaults.get(one.unit.variant, {}))
        by_label.setdefault(label, {})[one.unit.setting] = one
    width = max(map(len, ["variant", *by_label]))
    heads = [measure.ljust(len(of)) for measure, of in settings.items()]
    lines = ["  ".join(["variant".ljust(width), *heads, "to measure"])]
    for label, found in by_label.items():
        parts = []
        for measure, of in settings.items():
            signs = "".join(SIGNS[found[s].state] if s in found else " " for s in of)
            parts.append(signs.ljust(max(len(of), len(measure))))
        seconds = sum(one.unit.price for one in found.values() if one.state in TO_MEASURE)
        lines.append("  ".join([label.ljust(width), *parts, time_text(seconds) if seconds else ""]).rstrip())
    lines += ["", "  ".join(f"{sign} {state}" for state, sign in SIGNS.items()), "", "settings, from left to right"]
    for measure, of in settings.items():
        lines += [f"  {measure:<9} {words}" for words in _setting_lines(of)]
    return "\n".join(lines)


def _by_measure(survey: Survey) -> dict[str, list[Setting]]:
    found: dict[str, dict[Setting, None]] = {}
    for one in survey.held:
        found.setdefault(one.unit.setting.measure, {})[one.unit.setting] = None
    return {measure: list(of) for measure, of in found.items()}


def _labels(settings: list[Setting]) -> dict[Setting, tuple[str, str]]:
    """What tells each setting from the others, and its length: `causal=true, mode=forward`, `64`. Of a task its name."""
    seen: dict[str, set[str]] = {}
    for setting in settings:
        for name, value in setting.axes:
            seen.setdefault(name, set()).add(value)
    out = {}
    for setting in settings:
        axes = dict(setting.axes)
        told = [f"{n}={v}" for n, v in axes.items() if n != "length" and len(seen[n]) > 1]
        out[setting] = (setting.task, "") if setting.task else (", ".join(told), axes.get("length", ""))
    return out


def _in_runs(settings: list[Setting]) -> list[Setting]:
    """Settings that differ in their length alone side by side, the shortest first."""
    labels = _labels(settings)
    first = {label: i for i, (label, _) in reversed(list(enumerate(labels.values())))}
    return sorted(settings, key=lambda s: (first[labels[s][0]], int(labels[s][1] or 0)))


def _setting_lines(settings: list[Setting]) -> list[str]:
    """Names the runs: `1-8: mode=forward, length 64 to 8192`."""
    runs: list[tuple[str, list[str]]] = []
    for setting, (label, length) in _labels(settings).items():
        if runs and runs[-1][0] == label and not setting.task:
            runs[-1][1].append(length)
        else:
            runs.append((label, [length]))
    lines, at = [], 1
    for label, lengths in runs:
        end = at + len(lengths) - 1
        span = f"length {lengths[0]}" + (f" to {lengths[-1]}" if len(lengths) > 1 else "") if lengths[0] else ""
        lines.append(f"{at if at == end else f'{at}-{end}'}: {', '.join(filter(None, (label, span)))}")
        at = end + 1
    return lines


def totals(survey: Survey) -> dict[str, dict[str, float]]:
    """Of each state how many units there are, and the seconds that measuring them takes where that would help."""
    counts = Counter(one.state for one in survey.held)
    return {
        state: {
            "cells": counts[state],
            "seconds": sum(o.unit.price for o in survey.held if o.state == state and state in TO_MEASURE),
        }
        for state in SIGNS
        if counts[state]
    }


def totals_text(survey: Survey) -> str:
    parts = []
    by_state = totals(survey)
    for state, of in by_state.items():
        hours = f" ({time_text(of['seconds'])})" if of["seconds"] else ""
        parts.append(f"{of['cells']:,.0f} {state}{hours}")
    asked = len(survey.held) - sum(one.state == CANNOT for one in survey.held)
    seconds = sum(of["seconds"] for of in by_state.values())
    pairs = survey.pairs()
    open_pairs = len(survey.undecided())
    return (
        f"{asked:,} settings of variants: {', '.join(parts)}; {time_text(seconds)} in all to measure what is lacking\n"
        f"{open_pairs:,} of {len(pairs):,} pairs with exact attention are undecided{_unlearned_text(survey)}"
    )


def _unlearned_text(survey: Survey) -> str:
    lost = [one for one in survey.held if not one.is_learned and one.state != CANNOT]
    tasks = dict.fromkeys(str(one.unit.setting.task) for one in lost)
    told = f"\n{len(lost):,} are trainings of {', '.join(tasks)}, which exact attention has not learned there: none is chosen"
    return told if lost else ""


def chosen_text(survey: Survey, chosen: Sequence[Choice], defaults: Defaults, budget: float | None) -> str:
    labels = {setting: label for of in _by_measure(survey).values() for setting, label in _labels(of).items()}
    lines = ["worth    time     in all   what"]
    total = 0.0
    for number, choice in enumerate(chosen):
        unit = choice.candidate.unit
        total += choice.candidate.seconds
        if number >= SHOWN:
            continue
        spec = spec_of(unit.variant, unit.raw_params, defaults.get(unit.variant, {}))
        lines.append(
            f"{choice.worth:<8.3g} {time_text(choice.candidate.seconds):<8} {time_text(total):<8} "
            f"{spec} {_place(choice, labels)}; {choice.why}"
        )
    if len(chosen) > SHOWN:
        lines.append(f"and {len(chosen) - SHOWN:,} more, which --json names")
    of = f" of {time_text(budget)}" if budget is not None else ""
    reasons = Counter("the first of its family at its setting" if "family" in c.why else c.why for c in chosen)
    lines += ["", f"{len(chosen):,} chosen, {time_text(total)}{of}"]
    lines += [f"  {count:,} {why}" for why, count in reasons.most_common()]
    return "\n".join(lines)


def _place(choice: Choice, labels: dict[Setting, tuple[str, str]]) -> str:
    candidate = choice.candidate
    label, length = labels[candidate.unit.setting]
    words = [candidate.unit.setting.measure, label, f"length {length}" if length else ""]
    if candidate.repetitions:
        words.append(f"repetitions={candidate.repetitions}")
    elif not candidate.is_first:
        words.append(f"seeds {candidate.seeds[0]} to {candidate.seeds[-1]}")
    return ", ".join(filter(None, words))


def as_json(survey: Survey, chosen: Sequence[Choice] | None, defaults: Defaults) -> dict[str, Any]:
    """Everything: of each unit its state and price, of each choice its worth; seconds throughout."""
    undecided = {one.unit.key for one in survey.undecided()}
    cells = []
    for one in survey.held:
        interval = one.interval
        cells.append({
            **_named(one, defaults),
            "state": one.state,
            "seconds": one.unit.price,
            "seeds": list(one.unit.seeds),
            "seeds_held": list(one.seeds),
            "half_width": interval.half if interval else None,
            "undecided": one.unit.key in undecided,
        })  # fmt: skip
    out: dict[str, Any] = {"cells": cells, "totals": totals(survey)}
    if chosen is not None:
        out["chosen"] = [
            {
                "variant": spec_of(c.candidate.unit.variant, c.candidate.unit.raw_params, {}),
                "measure": c.candidate.unit.setting.measure,
                "task": c.candidate.unit.raw_task,
                "axes": c.candidate.unit.axes,
                "seeds": list(c.candidate.seeds),
                "repetitions": c.candidate.repetitions,
                "seconds": c.candidate.seconds,
                "worth": c.worth,
                "why": c.why,
            }
            for c in chosen
        ]
        out["chosen_seconds"] = sum(c.candidate.seconds for c in chosen)
    return out


def _named(one: Held, defaults: Defaults) -> dict[str, Any]:
    unit = one.unit
    return {
        "variant": spec_of(unit.variant, unit.raw_params, defaults.get(unit.variant, {})),
        "family": unit.family,
        "measure": unit.setting.measure,
        "task": unit.raw_task,
        "axes": {k: v for k, v in unit.axes.items() if k != "seed"},
    }
