"""`python -m dev.packages` prints results/packages.md: what attention packages of PyPI pass and fail of attnbench.check().

Exit code 1 where a red check has no reason in reasons.py, or a reason belongs to a check that passes. A minute or two.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version

import attnbench
import torch

from .adapters import PACKAGES
from .reasons import REASONS

HEAD = """# Attention packages of PyPI under the checks

What some popular packages pass and fail of [`attnbench.check`](../docs/python.md#check-a-function-of-your-own), with their versions and the reason of
each red line, found by reading their code. A red line is no verdict on a package: it says which promise of this project's contract the code
does not keep, and some of these promises its authors never gave. The page is made by

```
scripts/setup --venv packages
PYTHONPATH=build/native/package:scripts .venv-packages/bin/python -m dev.packages > results/packages.md
```

with the quick checks. [scripts/dev/packages/adapters.py](../scripts/dev/packages/adapters.py) has the class of each package: it feeds q, k and v to
the package's own attention, at small sizes (windows, buckets, blocks and landmarks of 2 to 8), and adds no mathematics. Of `entmax`, which has the
function alone, it is softmax attention with that function in softmax's place. Layers that project one input get q, k and v side by side, and projections that select them. NaN in padding becomes 0, and so do outputs at padded positions, which packages leave open."""


TAIL = """Every class promises, besides, what `check` asks of all: outputs linear in the values and of a sensible range, batch entries and heads that do not
depend on each other, gradients that agree with differences, and calls that leave no trace. A check counts once, in float32 and float64. PyTorch was {torch}."""


def base(check: str) -> str:
    return check.removesuffix(" (double)")


def red_of(report: attnbench.Report) -> dict[str, str]:
    """What the first failed result of each check says, in float32 or, where that passes, in float64."""
    found: dict[str, str] = {}
    for result in report.failed:
        found.setdefault(base(result.check), result.detail)
    return found


def checked() -> Iterator[tuple[str, int, dict[str, str]]]:
    """(package, how many checks pass, what the red ones say)"""
    for package, (made, promises) in PACKAGES.items():
        print(f"checking {package} {version(package)}", file=sys.stderr, flush=True)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of their use of torch
            report = attnbench.check(made, name=package, quick=True, **promises)
        red = red_of(report)
        passed = {base(r.check) for r in report if r.outcome == "passed"} - set(red)
        yield package, len(passed), red


def page(results: list[tuple[str, int, dict[str, str]]]) -> str:
    lines = [HEAD, "", "| package | what it promises | passed | red |", "|---|---|---|---|"]
    for package, passed, red in results:
        promises = ", ".join(p for p, value in PACKAGES[package][1].items() if value is True) or "nothing more"
        lines.append(f"| {package} {version(package)} | {promises} | {passed} | {', '.join(f'`{c}`' for c in red) or 'none'} |")
    lines += ["", TAIL.format(torch=version("torch").split("+")[0]), "", "## The red lines", ""]
    for package, _, red in results:
        for check, detail in red.items():
            lines.append(f"- **{package}, `{check}`**: {REASONS.get((package, check), 'not understood yet')} The check says: {detail}.")
    return "\n".join(lines) + "\n"


def main() -> int:
    torch.set_num_threads(1)  # the tensors are small
    results = list(checked())
    sys.stdout.write(page(results))
    found = {(package, check) for package, _, red in results for check in red}
    for package, check in sorted(found ^ set(REASONS)):
        state = "is red without a reason" if (package, check) in found else "has a reason and passes"
        print(f"attnpackages: {package}: {check} {state}", file=sys.stderr)
    return int(found != set(REASONS))


if __name__ == "__main__":
    sys.exit(main())
