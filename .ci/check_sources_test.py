"""Tests of check_sources.py."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_sources import LONGEST_NAME, long_names


class LongNames(unittest.TestCase):
    def test_name_above_the_limit_is_reported_in_rust_and_python(self):
        long, short = "a" * (LONGEST_NAME + 1), "b" * LONGEST_NAME
        for file, keyword in [("a.rs", "fn"), ("a.py", "def")]:
            text = f"{keyword} {short}():\n{keyword} {long}():\n"
            found = list(long_names({file: text}))
            self.assertEqual(len(found), 1)
            self.assertIn(f"{file}: {long}: {LONGEST_NAME + 1} characters", found[0])


if __name__ == "__main__":
    unittest.main()
