"""Linear attention with decay and the delta rule in three forms, against the library's outputs."""

from attnbench.reproduce.forms import GATED, VARIANTS, chunked, difference, drawn, of_library, overflow, recurrent

LENGTH, DIM = 512, 32
CHUNKS = (16, 64, 256)
TYPES = ("float32", "float64")
RATES = (0.02, 10.0)  # of forgetting: the second leaves e^-160 of a state after a tile of 16 positions


def measure(product, small):
    length = 128 if small else LENGTH
    for variant in VARIANTS:
        rates = RATES[1:] if small else RATES
        for rate in rates if variant in GATED else (0.0,):
            for seed in range(1 if small else 5):
                yield from _compared(product, drawn(variant, length, DIM, rate or 1.0, seed), rate, seed)
    for variant in VARIANTS[:1] if small else VARIANTS:
        for name, kept in product.passes(variant, "decode", *(["--quick"] if small else [])).items():
            yield {"of": "decoding", "variant": variant, "check": name, "kept": kept}
    for kind in TYPES:
        for chunk in CHUNKS:
            yield {"of": "overflow", "type": kind, "chunk": chunk, "logarithm": overflow(kind, chunk, DIM)}


def _compared(product, given, rate, seed):
    """Of each form, in both types: how far it is from the recurrent one in float64."""
    truth, length = recurrent(given), len(given.q)
    told = {"of": "forms", "variant": given.variant, "rate": rate, "seed": seed, "length": length}
    for kind in TYPES:
        rounded = given.rounded(kind)
        found = {"recurrent": recurrent(rounded), "parallel": chunked(rounded, length)}
        found |= {f"chunks of {n}": chunked(rounded, n) for n in CHUNKS if n < length}
        found["library"] = of_library(product, given, kind)
        for form, out in found.items():
            yield told | {"type": kind, "form": form, "difference": difference(out, truth)}
