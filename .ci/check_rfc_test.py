"""Tests of check_rfc.py with a small document."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import check_rfc

SPECIFICATION = """\
1.  Words

   The word "MUST" is defined elsewhere.

2.  Packets

   A sender MUST put the tag (see
   Section 1.) first.  It SHOULD NOT pad; a receiver MAY look.  Nothing
   else is said.

   *  A list item MUST
      count alone
"""
CODE = """\
//= spec.txt#section-2
//# A sender MUST put the tag (see Section 1.)
//# first.
fn send() {}

    //= spec.txt#section-2
    //= type=test
    //# *  A list item MUST count alone
    fn list() {}
"""
EXCEPTION = """\
[[exception]]
target = "spec.txt#section-2"
quote = "It SHOULD NOT pad; a receiver MAY look."
reason = "It pads."
"""


class Citations(unittest.TestCase):
    def survey(self, code=CODE, exception=EXCEPTION, specification=SPECIFICATION):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            (root / ".duvet/exceptions").mkdir(parents=True)
            config = '[[source]]\npattern = "src/*.rs"\n[[specification]]\nsource = "spec.txt"\n'
            (root / ".duvet/config.toml").write_text(config)
            (root / ".duvet/exceptions/deviations.toml").write_text(exception)
            (root / "spec.txt").write_text(specification)
            (root / "src").mkdir()
            (root / "src/lib.rs").write_text(code)
            before, check_rfc.ROOT = check_rfc.ROOT, root
            try:
                return check_rfc.survey()
            finally:
                check_rfc.ROOT = before

    def test_sentences_with_key_words_are_requirements(self):
        sections, problems = self.survey()
        self.assertEqual(problems, [])
        self.assertEqual(sections["section-1"].requirements, [])
        found = [(r.level, check_rfc.state(r)) for r in sections["section-2"].requirements]
        self.assertEqual(found, [("MUST", "cited"), ("SHOULD", "exception"), ("MUST", "tested")])

    def test_a_changed_quote_is_a_problem_at_its_line(self):
        _, problems = self.survey(code=CODE.replace("list item", "list thing"))
        self.assertTrue(problems[0].startswith("src/lib.rs:6: section-2 does not say"), problems)
        self.assertEqual(len(problems), 2)

    def test_a_requirement_without_a_quote_is_a_problem(self):
        _, problems = self.survey(exception="exception = []")
        self.assertEqual(len(problems), 1)
        self.assertIn("It SHOULD NOT pad", problems[0])

    def test_a_quote_of_a_part_leaves_the_rest_open(self):
        _, problems = self.survey(code=CODE.replace("//# first.\n", ""))
        self.assertEqual(len(problems), 1)

    def test_a_change_of_the_specification_is_noticed(self):
        _, problems = self.survey(specification=SPECIFICATION.replace("count alone", "stand alone"))
        self.assertEqual(len(problems), 2)

    def test_a_target_that_does_not_exist_is_a_problem(self):
        for target in ("spec.txt#section-9", "other.txt#section-2"):
            _, problems = self.survey(code=CODE.replace("spec.txt#section-2\n//#", f"{target}\n//#"))
            self.assertTrue(problems[0].startswith("src/lib.rs:1: "), problems)

    def test_disagreement_with_duvet_is_reported(self):
        sections, _ = self.survey()
        quote = "It SHOULD NOT pad; a receiver MAY look."
        spec = {"target_section": "section-2", "comment": quote, "level": "SHOULD"}
        agreeing = {"annotations": [spec], "statuses": {"0": {"exception": 39}}}
        others = list(check_rfc.compare(sections, agreeing))
        self.assertFalse(any("pad" in other for other in others))
        contrary = {"annotations": [spec], "statuses": {"0": {"citation": 39}}}
        self.assertTrue(any("pad" in other for other in check_rfc.compare(sections, contrary)))


if __name__ == "__main__":
    unittest.main()
