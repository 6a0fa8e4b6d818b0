"""The page of all variants: a table that look/variants.js sorts and filters. Without JavaScript it is a plain table."""

from __future__ import annotations

from collections.abc import Sequence

from attnbench.plots.rows.settings import marks_of
from attnbench.plots.rows.units import ratio_text

from .catalogue import Variant
from .markup import NONE, Raw, escaped, link, marks_key, prose
from .measured import Measured

LENGTH = 4096  # of the time that the table shows
SHOWN = {"causal": "causal", "cross": "cross", "decode": "decodes"}  # traits that the table names


def page(variants: Sequence[Variant], rows: Measured) -> str:
    first = rows.speeds[0]
    told = (
        f"{len(variants)} variants, each with a page. Times are those of a forward pass of attention alone at {LENGTH:,} tokens, not causal, one head"
        f" of 64, one thread, as a multiple of exact attention's: below ×1 is faster. The processor: {first.environment['cpu_model']}, kernels for"
        f" {first.environment['kernel_instruction_set']}. The rows are in"
    )
    return "\n\n".join(
        [
            "# Variants",
            Raw(f"<p>{escaped(told)} {link('../' + first.file.as_posix(), first.file.name)}; the variants' pages have intervals and other lengths.</p>"),
            _form(variants),
            Raw('<p id="count" role="status"></p>'),
            _table(variants, rows),
            marks_key(rows.at(v.name, LENGTH) for v in variants),
        ]
    )


def _form(variants: Sequence[Variant]) -> Raw:
    families = dict.fromkeys(str(v.info["family"]) for v in variants)
    years = sorted({int(v.info["year"]) for v in variants if v.info["year"]})
    traits = {trait: meaning for v in variants for trait, meaning in v.info["promises"].items()}
    order = list(variants[0].info["traits"])
    boxes = "".join(
        f'<label title="{escaped(traits[t])}"><input type="checkbox" name="trait" value="{t}"> {t.replace("_", " ")}</label>\n'
        for t in order
        if t in traits
    )
    return Raw(
        '<form id="filter" hidden>\n'
        '<label>With the words <input type="search" name="words" autocomplete="off"></label>\n'
        f"<label>Family <select name=\"family\">{_options(families, 'all')}</select></label>\n"
        f"<label>Years from <select name=\"from\">{_options(map(str, years), 'any')}</select></label>\n"
        f"<label>to <select name=\"to\">{_options(map(str, years), 'any')}</select></label>\n"
        '<button type="button" name="every">Show all</button>\n'
        f'<details open><summary>With all of these traits</summary>\n<fieldset aria-label="Traits">\n{boxes}</fieldset></details>\n</form>'
    )


def _options(values: Sequence[str] | dict[str, None] | map[str], every: str) -> str:
    return f'<option value="">{every}</option>' + "".join(f"<option>{escaped(v)}</option>" for v in values)


HEADS = (("name", "variant", ""), ("family", "family", ""), ("year", "year", "number"), ("summary", "what it computes", ""),
         ("can", "can", ""), ("time", "time, exact = ×1", "number"), ("paper", "paper", ""))  # fmt: skip


def _table(variants: Sequence[Variant], rows: Measured) -> Raw:
    heads = "".join(f'<th scope="col" data-sort="{key}" class="{look}">{title}</th>' for key, title, look in HEADS)
    lines = "".join(_line(v, rows) for v in variants)
    return Raw(f'<table id="catalogue">\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{lines}</tbody>\n</table>')


def _line(variant: Variant, rows: Measured) -> str:
    info, cell = variant.info, rows.at(variant.name, LENGTH)
    ratio = rows.speeds[0].ratios.get(cell.id) if cell else None
    can = ", ".join(word for trait, word in SHOWN.items() if trait in variant.traits)
    year = str(info["year"] or "")
    time = ratio_text(ratio[0]) + marks_of([cell]) if ratio else NONE
    value = f"{ratio[0]:.6g}" if ratio else ""
    return (
        f'<tr data-family="{escaped(info["family"])}" data-year="{year}" data-traits="{" ".join(variant.traits)}">'
        f'<th scope="row">{link(f"{variant.name}.html", variant.name)}</th><td>{escaped(info["family"])}</td>'
        f'<td class="number">{year or NONE}</td><td>{prose(info["summary"])}</td><td>{can or NONE}</td>'
        f'<td class="number" data-value="{value}">{time}</td><td>{prose(info["paper"])}</td></tr>\n'
    )
