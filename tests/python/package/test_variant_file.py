"""What a class or function in a file of Python says of itself: parameters and promises; no torch is needed to read them."""

from __future__ import annotations

import unittest

import numpy as np

import attnbench
from attnbench._rows import _words
from attnbench._variant_file import params_of, promises_of


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


if __name__ == "__main__":
    unittest.main()
