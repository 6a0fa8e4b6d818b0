"""Numbers in words: the unit fits the number as it is rounded."""

from __future__ import annotations

import unittest

from attnbench.plots.rows.units import bytes_text, length_text, ratio_text, seconds_text, thousands_text


class Units(unittest.TestCase):
    def test_the_largest_unit_that_the_rounded_number_fills(self) -> None:
        for text, told in (
            (seconds_text, {2.0: "2 s", 0.9996: "1 s", 0.999: "999 ms", 2e-6: "2 \u00b5s"}),
            (bytes_text, {2**30: "1 GiB", 1536: "1.5 KiB", 1023.9: "1 KiB", 12: "12 B"}),
            (thousands_text, {1.5e9: "1.5G", 999_600: "1M", 1200: "1.2k", 7: "7"}),
            (ratio_text, {0.5: "\u00d70.5", 1234.0: "\u00d71,234"}),
            (length_text, {1024: "1k", 1000: "1000", 16384.0: "16k"}),
        ):
            self.assertEqual({value: text(value) for value in told}, told)

    def test_what_fills_no_unit_has_the_smallest(self) -> None:
        self.assertEqual((seconds_text(2e-10), bytes_text(0)), ("0.2 ns", "0 B"))


if __name__ == "__main__":
    unittest.main()
