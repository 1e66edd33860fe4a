"""Tests of check_cycles.py with small crates."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_cycles import import_cycles
from rust_source import without_test_files


class Rust(unittest.TestCase):
    def cycles(self, **files):
        """Returns files of a crate by their names, with `__` for `/`.

        Files that only declare modules may be omitted.
        """
        sources = {f"crates/c/src/{name.replace('__', '/')}.rs": text for name, text in files.items()}
        return list(import_cycles(without_test_files({"crates/c/src/lib.rs": "", **sources})))

    def test_siblings_that_use_each_other(self):
        files = {"a": "use crate::b::B;\npub struct A;\n", "b": "pub struct B;\n\nuse super::a::A;\n"}
        found = "a imports b in crates/c/src/a.rs:1; b imports a in crates/c/src/b.rs:3"
        self.assertEqual(self.cycles(**files), [f"c: an import cycle of a, b: {found}"])

    def test_one_way_is_no_cycle(self):
        self.assertEqual(self.cycles(a="use crate::b::B;\n", b="pub struct B;\n"), [])

    def test_paths_inside_the_code_count(self):
        found = self.cycles(a="fn a() {\n    crate::b::b();\n}\n", b="pub fn b() -> super::a::A { todo!() }\n")
        self.assertEqual(len(found), 1)
        self.assertIn("crates/c/src/a.rs:2", found[0])

    def test_descendants_count_with_their_ancestor(self):
        found = self.cycles(a__mod="mod x;\n", a__x="use crate::b::B;\n", b__mod="", b__y="use crate::a::x::X;\n")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("c: an import cycle of a, b: a imports b in crates/c/src/a/x.rs:1"))

    def test_children_may_use_what_their_parent_defines(self):
        parent = "mod x;\nuse x::X;\npub struct Parent;\n"
        self.assertEqual(self.cycles(a__mod=parent, a__x="use crate::a::Parent;\npub struct X;\n"), [])

    def test_a_reexport_leads_to_the_module_that_defines_it(self):
        parent = "mod x;\nmod y;\npub use x::{X, inner::*};\npub use y::Y as Why;\n"
        x = "use super::Why;\npub struct X;\n"
        found = self.cycles(a__mod=parent, a__x=x, a__y="use crate::a::X;\npub struct Y;\n")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("c::a: an import cycle of x, y"))
        inner = {"a__x": "pub mod inner;\nuse super::Why;\n", "a__x__inner": "pub struct Deep;\n"}
        self.assertEqual(len(self.cycles(a__mod=parent, **inner, a__y="use crate::a::Deep;\npub struct Y;\n")), 1)

    def test_nested_uses_and_aliases_of_modules_count(self):
        a = "use crate::{\n    b::{self, B as Other},\n    other,\n};\n"
        found = self.cycles(a=a, b="use crate::top;\nfn b() { top::a() }\n", top="pub use crate::a::a;\n", other="")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("c: an import cycle of a, b"), found)

    def test_comments_strings_visibilities_and_tests_are_ignored(self):
        b = """\
//! See [`crate::a::A`].
pub(in crate::a) struct B;
const TEXT: &str = "crate::a::A";
#[cfg(test)]
mod tests {
    use crate::a::A;
}
"""
        self.assertEqual(self.cycles(a="use crate::b::B;\n", b=b), [])

    def test_files_of_tests_are_ignored(self):
        b = "#[cfg(test)]\n#[allow(dead_code)]\npub(crate) mod rig;\n#[cfg(not(test))]\nmod other;\n"
        files = {"a": "use crate::b::B;\n", "b__mod": b, "b__other": ""}
        self.assertEqual(self.cycles(**files, b__rig="use crate::a::A;\n", b__rig__deep="use crate::a::A;\n"), [])
        self.assertEqual(len(self.cycles(**{**files, "b__other": "use crate::a::A;\n"})), 1)

    def test_other_crates_are_no_siblings(self):
        self.assertEqual(self.cycles(a="use crate::b::B;\n", b="use anabranch::a::A;\nuse std::a::A;\n"), [])

    def test_of_a_larger_component_the_shortest_cycle_is_shown(self):
        found = self.cycles(a="use crate::b::B;\n", b="use crate::c::C;\nuse crate::a::A;\n", c="use crate::a::A;\n")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("c: an import cycle of a, b, c: a imports b in "))
        self.assertEqual(found[0].count("imports"), 2)


if __name__ == "__main__":
    unittest.main()
