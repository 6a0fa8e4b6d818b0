"""R10: differences of the forms and of the library from the recurrent one, and where products of gates overflow."""

from attnbench.reproduce.chart import Line, Panel, Point
from attnbench.reproduce.entries import MissingError
from attnbench.reproduce.estimates import exact
from attnbench.reproduce.judging import Finding, Verdict

ROUNDING = {"float32": 1e-4, "float64": 1e-12}  # relative, over 512 positions
NEAR = 0.05  # of a logarithm: numbers of queries and keys are not 1
LIBRARY = "library"
LEAST = 1e-17  # a difference of nothing, on a logarithmic axis


def verdict(evidence):
    worst, compared = {}, evidence.records("forms", of="forms")
    for r in compared:
        key = r["variant"], r["type"], r["form"]
        worst[key] = max(worst.get(key, 0.0), r["difference"])
    checks = evidence.records("forms", of="decoding")
    begins = {(r["type"], r["chunk"]): r["logarithm"] for r in evidence.records("forms", of="overflow")}
    if not worst or not checks or not begins:
        raise MissingError("forms.jsonl lacks the forms, the decoding or the overflow")
    variants, kinds = (list(dict.fromkeys(key[i] for key in worst)) for i in (0, 1))
    findings = []
    for kind in kinds:
        for variant in variants:
            own = {form: d for (v, k, form), d in worst.items() if (v, k) == (variant, kind)}
            written = max(d for form, d in own.items() if form != LIBRARY)
            for what, found in (("forms written out", written), (LIBRARY, own[LIBRARY])):
                findings.append(
                    Finding(f"{variant}, {what}, {kind}: largest difference from the recurrent form", exact(found),
                            most=ROUNDING[kind], published="0")  # fmt: skip
                )
    red = sum(not r["kept"] for r in checks)
    findings.append(
        Finding(f"checks `decode` that the library fails, of {len(checks)}", exact(red), most=0, published="0")
    )
    told = evidence.published("overflow")
    for (kind, chunk), found in sorted(begins.items()):
        findings.append(
            Finding(f"products over chunks of {chunk} leave {kind} at minus the logarithm", exact(found),
                    (1 - NEAR) * told[kind], (1 + NEAR) * told[kind], f"{told[kind]:g}")  # fmt: skip
        )
    rate = max(r["rate"] for r in compared)
    return Verdict(tuple(findings), _why(worst, begins, rate), _panels(worst, variants, compared[0]["length"]))


def _why(worst, begins, rate):
    form = max((key for key in worst if key[1] == "float32"), key=worst.get)
    own = max(d for (_, kind, name), d in worst.items() if (kind, name) == ("float32", LIBRARY))
    first = min(found for (kind, _), found in begins.items() if kind == "float32")
    share = {chunk: first / chunk for kind, chunk in begins if kind == "float32"}
    limits = ", ".join(f"{per:.2g} a position in chunks of {chunk}" for chunk, per in sorted(share.items()))
    return f"""The forms are one function up to rounding: in float32 the largest difference is {worst[form]:.1e} ({form[0]}, {form[2]}), of the
        library {own:.1e}, also with gates under which a position forgets all but e^-{rate:g} of the state. The form with keys divided by products of gates
        leaves float32 where a chunk forgets more than e^-{first:.0f}: log-decays of {limits}. The library divides inside a tile of 16 while this is safe, and
        otherwise exponentiates differences of logarithms."""


def _panels(worst, variants, length):
    """Of the forms by how many positions they compute at once; of the library by variant."""
    at_once = {"recurrent": 1, "parallel": length} | {
        form: int(form.split()[-1]) for _, _, form in worst if form.startswith("chunks of ")
    }
    lines = []
    for variant in variants:
        own = {at_once[form]: d for (v, kind, form), d in worst.items() if (v, kind) == (variant, "float32") and form != LIBRARY}
        lines.append(Line(variant, tuple(Point(n, exact(own[n])) for n in sorted(own))))
    library = [
        Line(f"library, {kind}", tuple(Point(i, exact(max(worst[v, kind, LIBRARY], LEAST))) for i, v in enumerate(variants)))
        for kind in ROUNDING
    ]
    return (
        Panel("forms written out, float32", "positions computed at once", "largest difference", tuple(lines)),
        Panel("library", "", "largest difference from the recurrent form in float64", tuple(library), names=tuple(variants)),
    )
