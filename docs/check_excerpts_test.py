"""Tests of check_excerpts.py: python3 -m unittest discover --start-directory docs --pattern '*_test.py'"""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check_excerpts

FENCE = "`" * 3
SOURCE = """use x;
// ANCHOR: policy
impl Quiet {
    // ANCHOR: inner
    fn pick(&self) {}
    // ANCHOR_END: inner
}
// ANCHOR_END: policy
"""
DOCUMENTED = """//! ```
//! # fn main() {
//! # // ANCHOR: host
//! let host = bind();
//! # let hidden = 1;
//!
//! host.accept();
//! # // ANCHOR_END: host
//! # }
//! ```
"""


class Excerpts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        patch = mock.patch.object(check_excerpts, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        (self.root / "lib.rs").write_text(SOURCE)
        (self.root / "documented.rs").write_text(DOCUMENTED)
        self.page = self.root / "README.md"

    def check(self, code, mark="<!-- from lib.rs:policy -->", *, write=False):
        self.page.write_text(f"Text.\n\n{mark}\n{FENCE}rust,ignore\n{code}\n{FENCE}\n\nMore.\n")
        return check_excerpts.check(self.page, write)

    def test_block_that_equals_its_file_passes(self):
        self.assertEqual(self.check("impl Quiet {\n    fn pick(&self) {}\n}"), [])

    def test_block_that_differs_is_reported_with_its_place(self):
        (complaint,) = self.check("impl Quiet {\n    fn choose(&self) {}\n}")
        self.assertIn("README.md:3: the block differs from lib.rs:policy", complaint)

    def test_write_copies_the_code(self):
        self.assertEqual(self.check("old", write=True), [])
        self.assertIn("fn pick(&self) {}", self.page.read_text())
        self.assertTrue(self.page.read_text().endswith("\n\nMore.\n"))
        self.assertEqual(check_excerpts.check(self.page, False), [])

    def test_inner_anchor_is_dedented(self):
        self.assertEqual(self.check("fn pick(&self) {}", "<!-- from lib.rs:inner -->"), [])

    def test_doc_example_is_shown_without_hidden_lines(self):
        code = "let host = bind();\n\nhost.accept();"
        self.assertEqual(self.check(code, "<!-- from documented.rs:host -->"), [])

    def test_directive_of_mdbook_is_refused(self):
        (complaint,) = self.check("{{#include ../lib.rs:policy}}", "")
        self.assertIn("README.md:5: a directive of mdBook", complaint)

    def test_missing_file_and_anchor_are_reported(self):
        self.assertIn("none.rs", self.check("x", "<!-- from none.rs:policy -->")[0])
        self.assertIn("do not enclose", self.check("x", "<!-- from lib.rs:none -->", write=True)[0])

    def test_mark_without_block_is_reported(self):
        self.page.write_text("<!-- from lib.rs:policy -->\n\nText.\n")
        self.assertIn("not above a block", check_excerpts.check(self.page, False)[0])


if __name__ == "__main__":
    unittest.main()
