"""Golden pictures: a changed picture is noticed, a softer edge is not."""

from __future__ import annotations

import unittest

from PIL import Image, ImageChops, ImageFilter

from . import golden


class Golden(unittest.TestCase):
    def setUp(self) -> None:
        self.speed = Image.open(golden.FOLDER / "speed-light.png").convert("L")

    def test_each_look_has_its_pictures(self) -> None:
        names = {f"{part}-{look}" for part in golden.MOST for look in ("light", "dark", "phone")}
        self.assertEqual({f.stem for f in golden.FOLDER.glob("*.png")}, names)
        for file in golden.FOLDER.glob("*.png"):
            self.assertLess(file.stat().st_size, 30_000, file.name)
            self.assertEqual(Image.open(file).width, golden.WIDTH, file.name)

    def test_they_are_of_one_version_of_chromium(self) -> None:
        version = golden.BROWSER.read_text(encoding="utf-8").strip()
        self.assertTrue(golden.drawn_by(f"{version}.0.1.2"))
        self.assertFalse(golden.drawn_by(f"{version}1.0.1.2"))

    def test_a_missing_line_differs(self) -> None:
        without = self.speed.copy()
        wide, high = without.size  # the line of exact attention, where it is alone
        without.paste(255, (round(0.55 * wide), round(0.05 * high), round(0.97 * wide), round(0.35 * high)))
        self.assertGreater(golden.compared(self.speed, without), golden.MOST["speed"])

    def test_dark_is_not_light(self) -> None:
        dark = Image.open(golden.FOLDER / "speed-dark.png")
        self.assertGreater(golden.compared(self.speed, dark), 0.5)
        self.assertEqual(golden.compared(self.speed, self.speed.resize((120, 90))), 1.0)

    def test_a_picture_moved_by_one_pixel_is_the_same_and_by_three_is_not(self) -> None:
        for pixels, same in ((1, True), (3, False)):
            moved = ImageChops.offset(self.speed, 0, pixels)
            self.assertEqual(golden.compared(self.speed, moved) < golden.MOST["speed"], same, pixels)

    def test_a_softer_edge_is_the_same(self) -> None:
        soft = Image.blend(self.speed, self.speed.filter(ImageFilter.GaussianBlur(1)), 0.1)
        self.assertLess(golden.compared(self.speed, soft), golden.MOST["speed"])


if __name__ == "__main__":
    unittest.main()
