"""check() of functions and classes of torch: honest ones pass; each planted fault is caught by the check that is meant for it."""

from __future__ import annotations

import math
import unittest

import attnbench

try:
    import torch
except ImportError:
    raise unittest.SkipTest("torch is not installed") from None


def softmax(q, k, v, causal=False, kv_lengths=None):
    keys = torch.arange(k.shape[2])
    seen = torch.ones(q.shape[0], 1, q.shape[2], k.shape[2], dtype=torch.bool)
    if causal:
        seen &= keys <= torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2]
    if kv_lengths is not None:
        valid = (keys < kv_lengths[:, None])[:, None, :, None]
        k, v = torch.where(valid, k, 0), torch.where(valid, v, 0)  # padding may hold NaN
        seen &= valid[..., 0][:, :, None]
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~seen, lowest).softmax(-1)
    return torch.where(seen.any(-1, keepdim=True), weights @ v, 0)


PROMISES = {"exact": True, "causal": True, "cross": True, "padding": True, "convex": True}


def leaking(q, k, v, causal=False):
    """Query i sees key i + 1."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(2)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v


def unscaled(q, k, v):
    return (q @ k.transpose(-1, -2)).softmax(-1) @ v


class Remembering:
    """Adds a little of the keys of the call before."""

    def __init__(self) -> None:
        self.mean: torch.Tensor | float = 0.0

    def __call__(self, q, k, v):
        out = softmax(q, k, v) + 0.1 * self.mean
        self.mean = v.detach().mean()
        return out


class WrongGradient(torch.autograd.Function):
    """exp, whose gradient forgets the factor."""

    @staticmethod
    def forward(ctx, x):
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        return grad


def wrong_gradient(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    weights = WrongGradient.apply(scores - scores.amax(-1, keepdim=True).detach())
    return weights @ v / weights.sum(-1, keepdim=True)


class Projected(torch.nn.Module):
    """A low-rank variant, made for a longest length: keys and values projected to 4 rows."""

    def __init__(self, *, heads, head_dim, max_len, causal, rank=4):
        super().__init__()
        self.rows = torch.nn.Parameter(torch.randn(rank, max_len) / math.sqrt(max_len))

    def forward(self, q, k, v, mask):
        rows = self.rows[:, : k.shape[2]]
        return softmax(q, rows @ k, rows @ v)


class Honest(unittest.TestCase):
    def test_softmax_in_torch_passes_every_check(self) -> None:
        report = attnbench.check(softmax, **PROMISES, quick=True)
        self.assertTrue(report.passed, str(report))
        passed = {r.check for r in report if r.outcome == "passed"}
        self.assertLessEqual(
            {"causality", "padding", "gradients (double)", "exact", "batch", "heads", "calls"}, passed
        )

    def test_functional_attention_of_torch_passes(self) -> None:
        def sdpa(q, k, v, causal):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        report = attnbench.check(sdpa, exact=True, causal=True, quick=True)
        self.assertTrue(report.passed, str(report))

    def test_a_class_of_modules_passes_and_its_weights_are_checked(self) -> None:
        report = attnbench.check(Projected, fixed_length=True, quick=True)
        self.assertTrue(report.passed, str(report))


    def test_a_class_is_called_in_evaluation_mode(self) -> None:
        class Dropping(torch.nn.Module):
            def __init__(self, heads, head_dim, max_len, causal) -> None:
                super().__init__()
                self.drop = torch.nn.Dropout(0.5)

            def forward(self, q, k, v, mask):
                return self.drop((q @ k.mT).softmax(-1)) @ v

        self.assertTrue(attnbench.check(Dropping, only="linearity").passed)


class Planted(unittest.TestCase):
    def caught(self, fn, by: str, alone: bool = True, **promises) -> attnbench.Result:
        """The result of the check that catches `fn`; `alone`: the function passes all others."""
        report = attnbench.check(fn, quick=True, **promises)
        self.assertIn(by, [r.check for r in report.failed], str(report))
        if alone:
            red = {r.check.removesuffix(" (double)") for r in report.failed}
            self.assertEqual(red, {by.removesuffix(" (double)")}, str(report))
        return report[by]

    def test_a_leaking_mask_is_caught_by_causality(self) -> None:
        found = self.caught(leaking, "causality", causal=True)
        self.assertIn("when keys after", found.detail)

    def test_a_missing_scale_is_caught_by_exact(self) -> None:
        self.caught(unscaled, "exact", exact=True)
        self.assertTrue(attnbench.check(unscaled, quick=True).passed)  # which nobody promised here

    def test_a_state_between_calls_is_caught_by_calls(self) -> None:
        found = self.caught(Remembering(), "calls", alone=False, name="remembering")
        self.assertIn("after calls with other inputs", found.detail)

    def test_a_wrong_gradient_is_caught_by_gradients(self) -> None:
        found = self.caught(wrong_gradient, "gradients (double)")
        self.assertIn("where differences give", found.detail)

    def test_a_wrong_gradient_of_a_weight_is_caught(self) -> None:
        class Half(Projected):
            def forward(self, q, k, v, mask):
                rows = self.rows.detach() + 0.5 * (self.rows - self.rows.detach())
                rows = rows[:, : k.shape[2]]
                return softmax(q, rows @ k, rows @ v)

        found = self.caught(Half, "gradients (double)", fixed_length=True)
        self.assertIn("rows", found.detail)

    def test_a_wrong_gradient_in_float_alone_is_caught(self) -> None:
        def single(q, k, v):
            return wrong_gradient(q.float(), k.float(), v.float())

        report = attnbench.check(single, quick=True)
        self.assertIn("gradients", [r.check for r in report.failed], str(report))
        self.assertIn("does not compute in float64", report["gradients (double)"].detail)


class Bare(torch.nn.Module):
    def forward(self, q, k, v):
        return q


class Unmasked(Projected):
    def forward(self, q, k, v):
        return q


class Refusals(unittest.TestCase):
    def test_each_fault_is_one_line(self) -> None:
        for words, fn, options in (
            ("cannot be called", 3, {}),
            ("framework 'jax' is not valid", softmax, {"framework": "jax"}),
            ("check 'speed' is not one of", softmax, {"only": "speed"}),
            ("is no torch.nn.Module", Remembering, {}),
            ("multiple_of is 0", softmax, {"multiple_of": 0}),
            ("reads is 'v'", softmax, {"reads": "v"}),
            (r"as scaled_dot_product_attention\(q, k, v, causal=\); this one threw TypeError: .*'causal'",
             torch.nn.functional.scaled_dot_product_attention, {"causal": True}),
            (r"a class is made as Linear\(heads=, head_dim=, max_len=, causal=\); this one takes \(in_features, ",
             torch.nn.Linear, {}),
            ("causal=\\); this one has no __init__ of its own", Bare, {}),
            (r"modules of Unmasked are called as forward\(self, q, k, v, mask\); this one takes \(self, q, k, v\)", Unmasked, {}),
            ("promises causal is called as Bare", Bare(), {"causal": True}),
        ):
            with self.subTest(words), self.assertRaisesRegex(attnbench.Error, words):
                attnbench.check(fn, **options)
