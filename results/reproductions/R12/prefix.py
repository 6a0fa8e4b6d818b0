"""Outputs of the first positions of a causal sequence, alone and with more behind them, of cosFormer,
whose weights fade as cos(π·(i − j)/(2·M)), Qin et al. 2022, arXiv:2202.08791, equation 10; and of others."""

import numpy as np

from attnbench.reproduce.forms import projections

DIM = 64
PREFIX = 128
LENGTHS = (129, 192, 256, 512, 1024, 2048)
DOUBLED = (64, 128, 256, 512, 1024)
CORRELATIONS = (0.0, 0.98)  # of a token with the one before
FIXED = "cosformer[span=2048]"
BY_LENGTH = "cosformer"  # whose M is, in `apply`, the number of the given keys
VARIANTS = (BY_LENGTH, FIXED, "linear", "full")
POSITIONS = (1, 2, 4, 8, 16, 32, 64, 128)


def measure(product, small):
    draws = 2 if small else 10
    lengths, halves = (LENGTHS[:3], DOUBLED[:2]) if small else (LENGTHS, DOUBLED)
    for correlation in CORRELATIONS:
        drawn = [projections(np.random.default_rng(seed), 3, lengths[-1], DIM, correlation) for seed in range(draws)]
        arrays = np.stack(drawn, axis=1)[:, None]  # [3, 1, draws, length, DIM]: a draw is a head
        for variant in VARIANTS:
            alone = _outputs(product, variant, arrays, PREFIX)
            for length in lengths:
                told = {"correlation": correlation, "variant": variant, "prefix": PREFIX, "length": length}
                longer = _outputs(product, variant, arrays, length)[:, :PREFIX]
                yield from _records(told | {"of": "prefix"}, _changes(longer, alone))
                if variant == BY_LENGTH:
                    other = _outputs(product, f"{variant}[span={length}]", arrays, PREFIX)
                    yield from _records(told | {"of": "prefix of the same M"}, _changes(longer, other))
                if (variant, length) == (BY_LENGTH, 2 * PREFIX):
                    for position in POSITIONS:
                        one = slice(position - 1, position)
                        at = _changes(longer[:, one], alone[:, one])
                        yield from _records(told | {"of": "position", "position": position}, at)
        for half in halves:
            told = {"of": "doubling", "correlation": correlation, "variant": BY_LENGTH, "prefix": half, "length": 2 * half}
            alone, longer = (_outputs(product, BY_LENGTH, arrays, n)[:, :half] for n in (half, 2 * half))
            yield from _records(told, _changes(longer, alone))


def _outputs(product, variant, arrays, length):
    return product.apply(variant, tuple(arrays[:, :, :, :length]), "--causal")[0]


def _changes(after, before):
    """Of each draw, the norm of the difference over the norm of the outputs of the sequence alone."""
    return np.linalg.norm(after - before, axis=(1, 2)) / np.linalg.norm(before, axis=(1, 2))


def _records(told, changes):
    for seed, change in enumerate(changes):
        yield told | {"seed": seed, "change": float(change)}
