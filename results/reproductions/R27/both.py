"""Outputs of variants as Long Range Arena's code computes them, against those of the papers' forms."""

import numpy as np

HEADS, DIM = 4, 64
SCALE = 0.5  # of queries and keys: where logits are small, Performer's estimate has little noise
ANOTHER = 1000  # what is added to the seed for another draw of the same form
# Parameters of the code for both forms, and what the paper's form needs beside them.
VARIANTS = {
    "local": ("block=50", ""),
    "sparse": ("", ""),
    "longformer": ("window=512", ""),
    "bigbird": ("block=64", ""),
    "sinkhorn": ("block=50", ""),
    "reformer": ("rounds=1,buckets=10", "chunk=200"),
    "synthesizer": ("", ""),
    "performer": ("", "features=16384"),  # enough that two draws agree
}


def measure(product, small):
    length = 400 if small else 2000
    for seed in range(2 if small else 5):
        arrays = np.random.default_rng([seed, length]).normal(size=(3, 1, HEADS, length, DIM))
        q, k, v = (arrays * np.array([SCALE, SCALE, 1]).reshape(3, 1, 1, 1, 1)).astype(np.float32)
        for variant, (shared, of_paper) in VARIANTS.items():
            # A chunk of the paper's form is as long as one of the code: a tenth of the sequence.
            of_paper = of_paper.replace("200", str(length // 10))
            paper = f"{variant}[{_joined(shared, of_paper, 'as=paper')}]"
            code = f"{variant}[{_joined(shared, 'as=lra')}]"
            one, other, found = (
                product.apply(spec, (q, k, v), "--seed", str(s))
                for spec, s in ((paper, seed), (paper, seed + ANOTHER), (code, seed))
            )
            yield {
                "variant": variant,
                "seed": seed,
                "length": length,
                "code_from_paper": _apart(found, one),
                "paper_from_itself": _apart(other, one),
            }


def _joined(*parts):
    return ",".join(part for part in parts if part)


def _apart(found, one):
    return float(np.linalg.norm(found - one) / np.linalg.norm(one))
