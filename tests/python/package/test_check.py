"""check() of functions of NumPy: honest ones pass; each planted fault is caught by the check that is meant
for it. And what a class or function in a file of Python says of itself, without torch."""

from __future__ import annotations

import functools
import threading
import unittest

import numpy as np

import attnbench
from attnbench._rows import _words
from attnbench._variant_file import params_of, promises_of


def weights_of(q, k, hidden=None, scale=None):
    """Softmax weights, where `hidden` is no mask or True at pairs that are not seen."""
    scores = q @ np.swapaxes(k, -1, -2) * (scale or 1 / np.sqrt(q.shape[-1]).astype(q.dtype))
    if hidden is not None:
        scores = np.where(hidden, -np.inf, scores)
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def future(q, k, first):
    """True where key j > i + kv_len - q_len + first - 1."""
    return np.triu(np.ones((q.shape[2], k.shape[2]), bool), first + k.shape[2] - q.shape[2])


def softmax(q, k, v, causal=False):
    return weights_of(q, k, future(q, k, 1) if causal else None) @ v


def softmax_backward(q, k, v, grad, causal=False):
    weights = weights_of(q, k, future(q, k, 1) if causal else None)
    of_weights = grad @ np.swapaxes(v, -1, -2)
    of_scores = weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True)) / np.sqrt(q.shape[-1]).astype(q.dtype)
    return of_scores @ k, np.swapaxes(of_scores, -1, -2) @ q, np.swapaxes(weights, -1, -2) @ grad


def leaking(q, k, v, causal=False):
    """Query i sees key i + 1."""
    return weights_of(q, k, future(q, k, 2) if causal else None) @ v


class Remembering:
    """Adds a little of the values of the call before."""

    def __init__(self) -> None:
        self.mean = 0.0

    def __call__(self, q, k, v):
        out = softmax(q, k, v) + np.asarray(0.1 * self.mean, q.dtype)
        self.mean = v.mean()
        return out


class Honest(unittest.TestCase):
    def test_softmax_with_its_backward_passes_every_quick_check(self) -> None:
        report = attnbench.check(softmax, exact=True, causal=True, convex=True, permutable=True, backward=softmax_backward,
                                 quick=True)  # fmt: skip
        self.assertTrue(report.passed, str(report))
        passed = {r.check for r in report if r.outcome == "passed"}
        self.assertLessEqual({"causality", "gradients (double)", "exact", "exact (double)", "batch", "heads", "calls"}, passed)

    def test_numpy_passes_with_and_without_gradients(self) -> None:
        def mean(q, k, v):
            return np.broadcast_to(v.mean(2, keepdims=True), q.shape)

        def back(q, k, v, grad):
            rows = grad.sum(2, keepdims=True) / v.shape[2]
            return None, None, np.broadcast_to(rows, v.shape)

        report = attnbench.check(mean, name="mean", quick=True, convex=True)
        self.assertTrue(report.passed, str(report))
        self.assertEqual(report["gradients"].outcome, "skipped")
        report = attnbench.check(mean, backward=back, only="recording")
        self.assertTrue(report.passed, str(report))

    def test_a_function_is_called_by_the_thread_that_checks_it(self) -> None:
        """Packed sequences are answered by several threads where they may be; another one than ours has no interpreter lock."""
        threads = set()

        def watched(q, k, v):
            threads.add(threading.get_ident())
            return softmax(q, k, v)

        def back(*arrays):
            threads.add(threading.get_ident())
            return softmax_backward(*arrays)

        report = attnbench.check(watched, name="watched", only="packed", backward=back)
        self.assertEqual(report["packed"].outcome, "passed", str(report))
        self.assertEqual(threads, {threading.get_ident()})

    def test_what_is_not_read_is_said(self) -> None:
        def on_queries(q, k, v):
            return softmax(q, q, v)

        def backward(q, k, v, grad):
            of_q, of_k, of_v = softmax_backward(q, q, v, grad)
            return of_q + of_k, None, of_v

        self.assertFalse(attnbench.check(on_queries, backward=backward, only="gradients").passed)
        self.assertTrue(attnbench.check(on_queries, backward=backward, only="gradients", reads="q").passed)

    def test_nothing_that_ran_is_not_passed(self) -> None:
        report = attnbench.check(softmax, quick=True, only="batch", multiple_of=1000)
        self.assertEqual([r.outcome for r in report], ["skipped"])
        self.assertFalse(report.passed)

    def test_the_report_is_that_of_the_command_line(self) -> None:
        report = attnbench.check(softmax, exact=True, only="exact")
        lines = str(report).splitlines()
        self.assertRegex(lines[0], r"^ok   softmax {22}exact {22}relative error .*allowed 1\.0e-05$")
        self.assertRegex(lines[1], r"^ok   softmax +exact \(double\) +relative error .*allowed 1\.0e-10$")
        self.assertEqual(lines[2:], ["2 passed, 0 red, 0 skipped"])

    def test_it_is_said_where_a_wrong_formula_would_not_be_seen(self) -> None:
        def unscaled(q, k, v):
            return weights_of(q, k, scale=1) @ v

        report = attnbench.check(unscaled, quick=True, framework="numpy")
        self.assertTrue(report.passed)
        self.assertTrue(str(report).splitlines()[-1].startswith("unscaled: unreferenced: a wrong formula would not be seen"))
        self.assertNotIn("unreferenced", str(attnbench.check(softmax, exact=True, quick=True)))

    def test_of_several_red_checks_the_first_to_mend_is_named(self) -> None:
        report = attnbench.check(leaking, quick=True, framework="numpy", causal=True, exact=True)
        self.assertGreater(len(report.failed), 1)
        self.assertIn("leaking: mend causality first", str(report).splitlines()[-1])


class Planted(unittest.TestCase):
    def caught(self, fn, by: str, **promises) -> attnbench.Result:
        """The result of the check that catches `fn`; the function passes the others."""
        report = attnbench.check(fn, quick=True, framework="numpy", **promises)
        self.assertEqual({r.check.removesuffix(" (double)") for r in report.failed}, {by.removesuffix(" (double)")}, str(report))
        return report[by]

    def test_a_leaking_mask_is_caught_by_causality(self) -> None:
        self.assertIn("when keys after", self.caught(leaking, "causality", causal=True).detail)

    def test_a_missing_scale_is_caught_by_exact(self) -> None:
        def unscaled(q, k, v):
            return weights_of(q, k, scale=1) @ v

        self.assertIn("relative error", self.caught(unscaled, "exact", exact=True).detail)
        self.assertTrue(attnbench.check(unscaled, quick=True).passed)  # which nobody promised here

    def test_a_wrong_gradient_is_caught_by_gradients(self) -> None:
        def wrong(q, k, v, grad):
            of_q, of_k, of_v = softmax_backward(q, k, v, grad)
            return of_q, 0.9 * of_k, of_v

        found = self.caught(softmax, "gradients (double)", backward=wrong)
        self.assertIn("where differences give", found.detail)

    def test_a_state_between_calls_is_caught_by_calls(self) -> None:
        report = attnbench.check(Remembering(), name="remembering", quick=True, framework="numpy")
        self.assertIn("after calls with other inputs", report["calls"].detail)
        self.assertEqual(report["calls"].outcome, "failed")

    def test_an_input_that_is_changed_is_caught_by_recording(self) -> None:
        def scaling(q, k, v):
            q *= 2
            return q

        report = attnbench.check(scaling, only="recording", framework="numpy")
        self.assertEqual(report["recording"].outcome, "failed")

    def test_an_exception_is_a_red_check_in_one_line(self) -> None:
        def throwing(q, k, v):
            raise RuntimeError("two\nlines")

        report = attnbench.check(throwing, only="batch", framework="numpy")
        self.assertEqual(report["batch"].detail, r"threw: RuntimeError: two\nlines")

    def test_a_wrong_shape_is_named(self) -> None:
        report = attnbench.check(lambda q, k, v: q[:, :, :-1].copy(), only="batch", name="short",
                                 framework="numpy")  # fmt: skip
        self.assertRegex(report["batch"].detail, r"the function returned \[2, 2, 0, 8\], expected")

    def test_ctrl_c_ends_the_checks(self) -> None:
        def stopping(q, k, v):
            if q.dtype == np.float32:  # not in the call that tries float64, which no check makes
                raise KeyboardInterrupt
            return q.copy()

        with self.assertRaises(KeyboardInterrupt):
            attnbench.check(stopping, framework="numpy")


class Signatures(unittest.TestCase):
    def test_a_function_that_takes_other_arguments_is_told_once(self) -> None:
        def plain(q, k, v):
            return softmax(q, k, v)

        def handing_on(*inputs, **options):
            return plain(*inputs, **options)

        def masked(q, k, v, *, mask=None):
            return softmax(q, k, v)

        form = r"a function that promises causal is called as {}\(q, k, v, causal=\); this one "
        for fn, options, said in (
            (plain, {"causal": True}, form.format("plain") + r"takes \(q, k, v\)"),
            (masked, {"causal": True}, form.format("masked") + r"takes \(q, k, v, \*, mask=\)"),
            (handing_on, {"causal": True}, form.format("handing_on") + "threw TypeError: .*'causal'"),
            (functools.partial(masked, mask=1), {"causal": True}, form.format("partial")),
            (plain, {"causal": True, "padding": True}, r"promises causal and padding .*\(q, k, v, causal=, kv_lengths=\);"),
            (plain, {"params": {"scale": 2}}, r"a function is called as plain\(q, k, v, scale=\);"),
            (lambda q, k: q, {}, r"called as f\(q, k, v\); this one takes \(q, k\)"),
            (softmax, {"backward": lambda q, k, v: (q, k, v)}, r"backward is called as f\(q, k, v, grad_output\); .*\(q, k, v\)"),
        ):
            for tried in (attnbench.check, attnbench.measure):
                with self.subTest(said, tried=tried.__name__), self.assertRaisesRegex(attnbench.Error, said) as caught:
                    tried(fn, framework="numpy", **options)
                self.assertNotIn("\n", str(caught.exception))

    def test_what_can_be_called_is_checked(self) -> None:
        def handing_on(*inputs, **options):
            return softmax(*inputs, **options)

        wrapped = functools.wraps(weights_of)(handing_on)  # which says the signature of weights_of
        for fn, causal in ((wrapped, True), (functools.partial(softmax, causal=False), False)):
            report = attnbench.check(fn, only="exact", exact=True, causal=causal, framework="numpy")
            self.assertTrue(report.passed, str(report))

    def test_a_type_error_inside_is_a_red_check(self) -> None:
        report = attnbench.check(lambda q, k, v: q + None, only="batch", framework="numpy")
        self.assertRegex(report["batch"].detail, "threw: TypeError")


def scaled(q, k, v, causal, scale: float = 1, name="x", **more):
    return scale * v


class Said(unittest.TestCase):
    def test_further_arguments_are_parameters(self) -> None:
        found = {p["name"]: p["default"] for p in params_of(scaled)}
        self.assertEqual(found, {"scale": 1.0, "name": "x"})
        self.assertIs(type(found["scale"]), float)  # as its annotation says

    def test_promises_are_those_of_the_arguments_and_of_the_attribute(self) -> None:
        def masked(q, k, v, causal, kv_lengths=None):
            return v

        own = promises_of(masked)
        self.assertEqual((own["causal"], own["padding"], own["exact"], own["multiple_of"]), (True, True, False, 1))
        masked.promises = {"exact": True, "padding": False, "multiple_of": 16}
        more = promises_of(masked)
        self.assertEqual((more["causal"], more["padding"], more["exact"], more["multiple_of"]), (True, False, True, 16))

    def test_what_is_wrong_is_one_line(self) -> None:
        for given, said in (({"exakt": True}, "'exakt' is unknown; nearest is 'exact'"), ({"exact": 1}, "'exact' is 1; expected True or False"),
                            ({"multiple_of": 0}, "'multiple_of' is 0"), ("exact", "expected a dict")):  # fmt: skip
            def one(q, k, v):
                return v

            one.promises = given
            with self.assertRaisesRegex(attnbench.Error, said) as caught:
                promises_of(one)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(attnbench.Error, "'scale' has no default"):
            params_of(lambda q, k, v, scale: v)

    def test_a_function_is_called_with_its_parameters(self) -> None:
        def doubling(q, k, v, scale=0.0):
            if scale != 2:
                raise ValueError(f"scale is {scale}")
            return np.repeat(v.mean(2, keepdims=True), q.shape[2], 2) * scale

        for params, passed in (({"scale": 2}, True), ({}, False)):
            report = attnbench.check(doubling, only="linearity", framework="numpy", params=params)
            self.assertEqual(report.passed, passed, report)

    def test_an_option_that_is_true_has_no_value(self) -> None:
        self.assertEqual(_words({"crossings": True, "format": "md"}), ["--crossings", "--format=md"])
