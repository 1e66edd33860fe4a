"""Tests of figures/bars.py: python3 -m unittest discover --start-directory docs --pattern '*_test.py'"""

import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "figures"))

import bars

ROOT = Path(__file__).resolve().parent.parent

VERDICTS = """
| rank | reproduced | differs | all |
| --- | ---: | ---: | ---: |
| H (headline) | 3 | 1 | 4 |
| all | 3 | 1 | 4 |

| paper | reproduced | differs | all |
| --- | ---: | ---: | ---: |
| [one](reproduction/one.md) | 3 | 1 | 4 |
<!-- end -->
"""
TIMES = """
| | both links up |
| --- | --- |
| TCP | 8.0 s (7.5 to 9.0) |
| `send` | 4.0 s (4.0 to 4.0) |
"""


def rects(drawn, kind):
    """Returns the rectangles of a class, as position and width."""
    found = re.findall(rf'<rect class="{kind}" x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="(?:18|20)"', drawn)
    return [(float(x), float(width)) for x, width in found]


class Pictures(unittest.TestCase):
    def test_stored_pictures_are_optimised(self):
        """matplotlib writes 1,500 lines and more: `scour` writes the same picture in a few."""
        pictures = sorted((ROOT / "docs" / "src").rglob("*.svg"))
        self.assertGreater(len(pictures), 10)
        large = [str(file) for file in pictures if file.read_text(encoding="utf-8").count("\n") > 250]
        self.assertEqual(large, [], "run scour as CONTRIBUTING.md shows")


class Bars(unittest.TestCase):
    def test_a_table_ends_where_its_lines_end(self):
        self.assertEqual([row["all"] for row in bars.rows_below(VERDICTS, "| rank |")], ["4", "4"])
        self.assertEqual(len(bars.rows_below(VERDICTS, "| paper |")), 1)

    def test_verdicts_have_the_colours_of_the_table_of_grades(self):
        drawn = "\n".join(map(str, bars.reproduction(VERDICTS)))
        for verdict in ("reproduced", "differs"):
            grade = bars.verdicts()[verdict].grade
            self.assertIn(f".{verdict} {{ fill: {grade.light}; }}", drawn)
            self.assertIn(f".{verdict} {{ fill: {grade.dark}; }}", drawn)
        self.assertNotIn("cannot tell", drawn)

    def test_parts_of_a_bar_are_as_wide_as_their_numbers_are_large(self):
        drawn = "\n".join(map(str, bars.reproduction(VERDICTS)))
        held, against = rects(drawn, "reproduced"), rects(drawn, "differs")
        self.assertEqual((len(held), len(against)), (3, 3))
        for (x, width), (after, other) in zip(held, against, strict=True):
            self.assertAlmostEqual(width + 1, 3 * (other + 1), delta=0.3)
            self.assertAlmostEqual(x + width + 1, after, delta=0.3)
        self.assertIn("<title>differs: 1 of 4</title>", drawn)
        self.assertIn(">one: 4</text>", drawn)

    def test_bars_begin_at_zero_and_have_a_range_where_there_is_one(self):
        drawn = "\n".join(map(str, bars.beside(TIMES)))
        (left, longer), (other_left, shorter) = rects(drawn, "fibre")
        self.assertEqual(left, other_left)
        self.assertAlmostEqual(longer, 2 * shorter, delta=0.3)
        self.assertEqual(drawn.count('class="both"'), 1)
        self.assertIn(">4.0 s</text>", drawn)

    def test_ratios_lie_on_a_logarithmic_axis_with_the_better_link_at_one(self):
        row = {
            "stack": "`braid`",
            "median": "1.41 (1.2 to 1.6)",
            "10 %": "1.00",
            "90 %": "2.00",
            "at least 0.97": "9 of 10",
        }
        drawn = "\n".join(map(str, bars._over_better_link([row], "stack", (0.5, 1, 2, 4), "TCP")))
        least, most = map(float, re.search(r'stroke-width="2" d="M([\d.]+),[\d.]+H([\d.]+)"', drawn).groups())
        (median,) = map(float, re.findall(r'<circle class="dot" cx="([\d.]+)" cy="[\d.]+" r="5">', drawn))
        self.assertAlmostEqual(median, (least + most) / 2, delta=2)
        self.assertIn(f'<path class="both" d="M{least:.1f},', drawn)
        self.assertIn("<title>braid: 1.41 (1.2 to 1.6)</title>", drawn)

    def test_missing_messages_are_named_in_place_of_their_delay(self):
        rows = [
            {"stack": "`mptcp`", "median, ms": "20", "99 %, ms": "40", "99 % in the worst tenth, ms": "80"},
            {"stack": "`cmt`", "median, ms": "25", "99 %, ms": "90", "99 % in the worst tenth, ms": "inf"},
        ]
        drawn = "\n".join(map(str, bars.message_delays(rows)))
        self.assertEqual(len(re.findall(r'r="5"', drawn)), 5)
        self.assertEqual(drawn.count("some missing"), 1)


if __name__ == "__main__":
    unittest.main()
