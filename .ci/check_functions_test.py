"""What check_functions.py finds, in small sources."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_functions import long_functions, python_functions, rust_functions


class Rust(unittest.TestCase):
    def lengths(self, text):
        return list(rust_functions(text))

    def test_counts_from_the_name_to_the_closing_brace(self):
        self.assertEqual(self.lengths("// Before.\nfn one(\n    a: u8,\n) -> [u8; 2] {\n    [a; 2]\n}\n"), [("one", 2, 5)])
        self.assertEqual(self.lengths("fn one() {}\n"), [("one", 1, 1)])

    def test_comments_and_citations_do_not_count(self):
        text = "fn one() {\n    //= spec.txt#section-2\n    //# MUST\n    /* More\n    of it. */\n    two(); // Two.\n\n}\n"
        self.assertEqual(self.lengths(text), [("one", 1, 4)])

    def test_braces_in_literals_and_comments_close_nothing(self):
        text = "fn one<'a>() {\n    let a = \"}\";\n    let b = '}';\n    let c = r#\"\"}\"#; // }\n}\n"
        self.assertEqual(self.lengths(text), [("one", 1, 5)])

    def test_declarations_and_tests_have_no_length(self):
        text = "trait T {\n    fn one(&self) -> [u8; 2];\n}\n#[cfg(test)]\nmod tests {\n    fn two() {}\n}\nfn three() {}\n"
        self.assertEqual(self.lengths(text), [("three", 8, 1)])


class Python(unittest.TestCase):
    def test_comments_and_docstrings_do_not_count(self):
        text = 'def one():\n    """Says.\n\n    More.\n    """\n    # A comment.\n    return 1\n'
        self.assertEqual(list(python_functions(text)), [("one", 1, 2)])

    def test_methods_and_inner_functions_have_lengths_of_their_own(self):
        text = "class C:\n    async def one(self):\n        def two():\n            return 1\n        return two\n"
        self.assertEqual(list(python_functions(text)), [("one", 2, 4), ("two", 3, 2)])


class Report(unittest.TestCase):
    def test_more_than_80_lines_are_reported(self):
        fits = "def one():\n" + "    pass\n" * 79
        long = "fn two() {\n" + "    three();\n" * 79 + "}\n"
        self.assertEqual(
            list(long_functions({"a.py": fits, "b.rs": long})),
            ["b.rs:1: two has 81 lines without comments, more than 80: divide it"],
        )


if __name__ == "__main__":
    unittest.main()
