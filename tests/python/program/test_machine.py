"""attnbench list machine, for people and as JSON."""

from __future__ import annotations

import json
import os
import unittest

from ..faults import BUILT, FaultCase


@BUILT
class ListMachine(FaultCase):
    def test_tells_the_machine_and_how_it_computes(self) -> None:
        done = self.run_program("list", "machine", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        machine = json.loads(done.stdout)["machine"]
        self.assertEqual(machine["allowed_cpus"], sorted(os.sched_getaffinity(0)))
        self.assertEqual(machine["page_bytes"], os.sysconf("SC_PAGE_SIZE"))
        self.assertIn(machine["kernel_instruction_set"], machine["instruction_sets"])
        self.assertEqual(list(machine["cache_bytes"]), ["L1d", "L2", "L3"])
        for part in ("product", "softmax_forward"):
            self.assertTrue(all(number > 0 for number in machine[part].values()), machine[part])
        told = self.run_program("list", "machine")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        product = machine["product"]
        tile = f"{product['tile_rows']} rows × {product['tile_vectors']} vectors × {product['lanes']} lanes"
        self.assertIn(tile, told.stdout)

    def test_is_listed_by_name_alone(self) -> None:
        catalogue = json.loads(self.run_program("list", "--json").stdout)
        self.assertEqual(set(catalogue), {"variants", "tasks", "profiles"})
        wrong = self.run_program("list", "machines")
        self.assertEqual((wrong.returncode, wrong.stderr.count("\n")), (2, 1))
        self.assertIn("'machines'", wrong.stderr)
        shown = self.run_program("list", "machine", "--show", "quick")
        self.assertEqual((shown.returncode, shown.stderr.count("\n")), (2, 1))


if __name__ == "__main__":
    unittest.main()
