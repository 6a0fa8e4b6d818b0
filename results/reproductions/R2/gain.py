"""Errors of Performer's estimate of exp(x·y) with orthogonal and with independent directions."""

from attnbench.reproduce.forms import squared_errors

DIM = 8
SETTINGS = [(length, angle) for length in (0.5, 0.75) for angle in (0.5, 1.5, 2.8)]


def measure(product, small):
    for length, angle in SETTINGS[:2] if small else SETTINGS:
        for orthogonal in (True, False):
            variant = f"performer[features={DIM},orthogonal={str(orthogonal).lower()}]"
            for found in squared_errors(product, variant, DIM, length, angle, small):
                yield {"orthogonal": orthogonal, "dim": DIM} | found
