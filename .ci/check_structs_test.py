"""What check_structs.py finds, in small sources."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_structs import large_structs, structs


class Structs(unittest.TestCase):
    def test_counts_named_fields(self):
        text = """\
/// Holds `a: u8`.
pub struct One<T: Copy>
where
    T: Default,
{
    /// The first: a map.
    pub a: HashMap<u8, Vec<(u8, T)>>,
    #[serde(rename = "b: c")]
    pub(crate) r#type: fn(u8, u8) -> Result<u8, T>,
    last: [u8; 3]
}
struct Unit;
struct Tuple(u8, u8);
struct Short { a: std::time::Duration, b: u8 }
"""
        self.assertEqual(list(structs(text)), [("One", 2, 3), ("Short", 14, 2)])

    def test_structs_of_tests_are_left_out(self):
        self.assertEqual(list(structs("#[cfg(test)]\nmod tests {\n    struct One { a: u8 }\n}\n")), [])

    def test_more_than_20_fields_are_reported_except_where_a_reason_is_given(self):
        fields = "".join(f"    field_{at}: u8,\n" for at in range(21))
        sources = {"a.rs": "".join(f"struct {name} {{\n{fields}}}\n" for name in ("Statistics", "State"))}
        self.assertEqual(list(large_structs(sources)), ["a.rs:24: State has 21 fields, more than 20: divide it"])
        self.assertEqual(list(large_structs({"a.rs": f"struct State {{\n{fields[:-17]}}}\n"})), [])


if __name__ == "__main__":
    unittest.main()
