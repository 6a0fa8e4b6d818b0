"""The page of one variant: what it computes, its cost, parameters, checks, speed and scores, and the commands that make these numbers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from attnbench.plots.rows.read import Cell, Params
from attnbench.plots.rows.scores import score
from attnbench.plots.rows.settings import MODE_WORDS, contract, marks_of, mode_of, shape_text, shown
from attnbench.plots.rows.units import bytes_text, ratio_text, seconds_text, thousands_text
from dev.pages.by_family import entry

from .catalogue import Variant
from .markup import NONE, Raw, code, commands, escaped, link, listed, marks_key, paragraph, prose, table
from .measured import Measured, Scored, Speeds

ABOVE = "../"  # from the folder of these pages to the site's root
METHOD = f"{ABOVE}docs/method.html"


def page(variant: Variant, exact: Variant, rows: Measured) -> str:
    """Markdown: headings for the page's contents, all else as HTML. `exact` is exact attention."""
    parts = [f"# {variant.name}", _summary(variant)]
    for title, own in (
        ("What it computes", _mathematics(variant)),
        ("Cost", _cost(variant)),
        ("Decoding", _decoding(variant, exact)),
        ("Parameters and weights", _parameters(variant)),
        ("Contract checks", _checks(variant)),
        ("Speed", _speed(variant, rows)),
        ("Scores", _scores(variant, rows)),
        ("Reproduce", _reproduce(variant, rows)),
    ):
        parts += [f"## {title}", *own]
    return "\n\n".join(parts) + "\n"


def _summary(variant: Variant) -> Raw:
    info = variant.info
    family = link(f"index.html#family={info['family'].replace(' ', '+')}", info["family"])
    year = f", {info['year']}" if info["year"] else ""
    told = f'<p class="lead">{prose(info["summary"])}.</p>\n'
    traits = "".join(
        f'<li><a href="index.html#trait={trait}">{trait}</a>: {escaped(info["promises"][trait])}</li>\n' for trait in variant.traits
    )
    origin = f"{paragraph('Family:', Raw(f'{family}{year}.'), 'Paper:', Raw(prose(info['paper']) + '.'))}\n"
    return Raw(f'{told}{origin}<ul class="traits">\n{traits}</ul>')


def _mathematics(variant: Variant) -> Iterator[str]:
    yield Raw(f"<blockquote>{prose(variant.head)}</blockquote>")
    source = variant.source.as_posix()
    yield paragraph("That is the head of its source,", Raw(f"{link(ABOVE + source, source)}."), _reference(variant))
    notes = [*variant.info["notes"], *(f"The layer of the paper (block=paper): {note}" for note in variant.info["block"] or ())]
    if notes:
        yield listed(map(prose, notes))
    yield Raw(f"<details><summary>The source</summary>\n{commands([variant.code.rstrip()])}\n</details>")


def _reference(variant: Variant) -> str:
    if variant.info["referenced"]:
        return "It declares its mathematics a second time, as a reference in double precision, which the checks compare it with."
    return "It declares no reference: the checks would not see a wrong formula that keeps its promises."


def _cost(variant: Variant) -> Iterator[str]:
    info, cost = variant.info, variant.info["cost"]
    yield paragraph(info["cost_formula"] or "No formula.")
    of = "By this formula" if cost["declared"] else "As the counters measured, for none is declared"
    told = [("FLOPs", thousands_text, "flops"), ("bytes moved at least", bytes_text, "bytes"),
            ("bytes of memory above q, k and v", bytes_text, "peak_bytes")]  # fmt: skip
    figures = [f"{words}: {write(cost[name]) if cost[name] is not None else 'not known'}" for words, write, name in told]
    yield paragraph(f"{of}, of one forward pass at length {cost['length']}, {cost['heads']} heads of {cost['head_dim']}, float32:")
    yield listed(figures)


def _decoding(variant: Variant, exact: Variant) -> Iterator[str]:
    cost, of_exact = variant.info["cost"], exact.info["cost"]["state_bytes"]
    if not variant.info["traits"]["decode"]:
        yield paragraph("It cannot answer token by token from a state.")
        return
    size = "of a size that is not declared" if cost["state_bytes"] is None else f"of {bytes_text(cost['state_bytes'])}"
    yield paragraph(
        f"It answers one token after another from a state {size} at length {cost['length']}, {cost['heads']} heads of",
        f"{cost['head_dim']}, float32" + ("." if variant.name == exact.name else f"; exact attention keeps {bytes_text(of_exact)} there."),
        "The check decode compares each step with the causal forward pass.",
    )


def _parameters(variant: Variant) -> Iterator[str]:
    info = variant.info
    if not info["params"]:
        yield paragraph("It has no parameters.")
    else:
        lines = [[code(p["name"]), code(_written(p["default"])), p["range"], _help(p)] for p in info["params"]]
        yield table(["parameter", "default", "values", "what it is"], lines)
    if info["gates"]:
        yield paragraph("Gates, which a layer projects from its input:")
        yield table(["gate", "width", "what it is"], ([code(g["name"]), str(g["width"]), prose(g["help"])] for g in info["gates"]))
    if info["weights"]:
        cost = info["cost"]
        yield paragraph(f"Weights, of {cost['heads']} heads of {cost['head_dim']} and a longest sequence of {cost['length']}:")
        lines = [[code(w["name"]), " × ".join(map(str, w["shape"])), "learned" if w["learned"] else "drawn, by seed"] for w in info["weights"]]
        yield table(["weight", "shape", ""], lines)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _help(param: dict[str, Any]) -> Raw:
    only = f" (only with {param['only_with']})" if "only_with" in param else ""
    return prose(param["help"] + only)


def _checks(variant: Variant) -> Iterator[str]:
    checks = variant.info["checks"]
    twice = [c["name"] for c in checks if c["in_double"]]
    yield paragraph(
        f"{len(checks)} checks apply to it, which", code(f"scripts/bench check {variant.name}"),
        Raw(f"runs. The {len(twice)} with a \u00b2 run in double precision, alone or a second time. {link(METHOD, 'How the numbers are made')} tells"),
        "what they compare.",
    )  # fmt: skip
    yield Raw('<ul class="checks">\n' + "".join(f"<li>{escaped(c['name'])}{'²' if c['in_double'] else ''}</li>\n" for c in checks) + "</ul>")


def _speed(variant: Variant, rows: Measured) -> Iterator[str]:
    told = False
    for speeds in rows.speeds:
        own = speeds.of(variant.name)
        ok = [c for c in own if c.ok]
        why = dict.fromkeys(str(c.reason) for c in own if not c.ok)
        if why:
            yield paragraph("Without a time in", Raw(f"{_rows(speeds.file)}: {escaped('; '.join(why))}."))
        groups: dict[tuple[str, str, Params], list[Cell]] = {}
        for cell in ok:
            groups.setdefault((contract(cell), shape_text(cell), cell.params), []).append(cell)
        for (masked, shape, params), cells in groups.items():
            told = True
            environment = speeds.environment
            yield paragraph(
                f"Median times of attention alone, {masked}, {shape}, with their multiple of exact attention's time (95 % interval; below ×1 is",
                f"faster), measured on {environment['cpu_model']}, kernels for {environment['kernel_instruction_set']}, commit",
                Raw(f"{escaped(environment['commit'][:12])}: {_rows(speeds.file)}{_differing(variant, params)}."),
            )
            yield _times(speeds, cells)
            yield marks_key(cells)
    if not told:
        files = " or ".join(_rows(speeds.file) for speeds in rows.speeds)
        yield paragraph("No row of", Raw(files), "holds a time of it.")


def _times(speeds: Speeds, cells: list[Cell]) -> Raw:
    """A line a pass and length."""
    modes = list(dict.fromkeys(mode_of(c) for c in cells))
    ordered = sorted(cells, key=lambda c: (modes.index(mode_of(c)), c.length or 0))
    lines = [[MODE_WORDS[mode_of(c)], f"{c.length:,}", _time(c), _ratio(speeds, c), code(c.id)] for c in ordered]
    return table(["pass", "length", "time", "of exact attention's", "row"], lines, [1, 2, 3])


def _time(cell: Cell) -> str:
    return seconds_text(cell.metric("time_s.median") or 0.0) + marks_of([cell])


def _ratio(speeds: Speeds, cell: Cell) -> str:
    found = speeds.ratios.get(cell.id)
    if found is None:
        return NONE
    point, low, high = found
    return ratio_text(point) if low == high else f"{ratio_text(point)} ({ratio_text(low)} to {ratio_text(high)})"


def _scores(variant: Variant, rows: Measured) -> Iterator[str]:
    own = rows.scores.get(variant.name, [])
    if not own:
        yield paragraph("No row of", Raw(", ".join(map(_rows, rows.left_out))), "that may be published holds a score of it alone.")
    else:
        yield paragraph(
            "Mean test scores over seeds with half of a 95 % interval; of one seed, the interval is over test examples. Only settings that the task's",
            Raw(f"control has learned are shown ({link(METHOD + '#accuracy', 'why')})."),
        )
        heads = ["task", "with", "score", "best shortcut", "seeds", "rows", "first row"]
        yield table(heads, ([*_score(variant, s)] for s in own), [2, 3, 4])
        yield marks_key(c for s in own for c in s.cells)
    gone = [f"{_rows(file)}: {escaped('; '.join(words))}." for file, words in rows.left_out.items() if words]
    if gone:
        yield Raw("<details><summary>Settings that are left out, for no variant: their control has not learned them</summary>\n")
        yield listed(map(Raw, gone))
        yield Raw("</details>")


def _score(variant: Variant, own: Scored) -> Iterator[str]:
    found = score(own.cells)
    yield own.task
    yield Raw(_params(variant, own.params) or "defaults")
    yield entry(list(own.cells))
    yield NONE if own.shortcut is None else f"{own.shortcut:.2f}"
    yield str(len(found.seeds) if found else 0)
    yield _rows(own.file)
    yield code(own.cells[0].id)


def _others(variant: Variant, params: Params) -> Params:
    """What the rows set otherwise than the defaults of today, or by a parameter that is no more."""
    defaults = {p["name"]: _written(p["default"]) for p in variant.info["params"]}
    return tuple((name, value) for name, value in params if not _same(value, defaults.get(name)))


def _params(variant: Variant, params: Params) -> str:
    words = ", ".join(f"{shown(name)}={value}" for name, value in _others(variant, params))
    return f"<code>{escaped(words)}</code>" if words else ""


def _same(value: str, default: str | None) -> bool:
    if default is None:
        return False
    try:
        return float(value) == float(default)
    except ValueError:
        return value == default


def _differing(variant: Variant, params: Params) -> str:
    found = _params(variant, params)
    return f", with {found}, which is not the default of today" if found else ""


def _rows(file: Any) -> Raw:
    return link(ABOVE + file.as_posix(), file.name)


def _reproduce(variant: Variant, rows: Measured) -> Iterator[str]:
    yield commands(lines(variant, rows))


def lines(variant: Variant, rows: Measured) -> list[str]:
    """Commands that check the variant, measure its times anew, and measure and train one row of each again."""
    told = [f"scripts/bench check {variant.name}"]
    for speeds in rows.speeds:
        cells = [c for c in speeds.of(variant.name) if c.ok]
        if cells:
            same = [c for c in cells if (c.params, contract(c)) == (cells[0].params, contract(cells[0]))]
            told += [_run(variant, same), f"scripts/bench repro {speeds.file.as_posix()} {cells[0].id}"]
            break
    if own := rows.scores.get(variant.name):
        told.append(f"scripts/bench repro {own[0].file.as_posix()} {own[0].cells[0].id}")
    return told


def _run(variant: Variant, cells: list[Cell]) -> str:
    """The sweep of these cells, which differ in length and mode, beside exact attention."""
    words = ",".join(f"{name}={value}" for name, value in _others(variant, cells[0].params))
    spec = f"{variant.name}[{words}]" if words else variant.name
    chosen = ["full", spec] if variant.name != "full" else [spec]
    axes = cells[0].axes
    lengths = ",".join(map(str, sorted({c.length for c in cells if c.length})))
    modes = ",".join(dict.fromkeys(map(mode_of, cells)))
    flags = " ".join(f"--{name.replace('_', '-')} {axes[name]}" for name in ("heads", "head_dim", "threads"))
    causal = "--causal true " if axes.get("causal") else ""
    which = " ".join(f"-v {shlex.quote(word)}" for word in chosen)
    return f"scripts/bench run {which} --measure speed --length {lengths} --mode {modes} {causal}{flags} -o speed.jsonl"
