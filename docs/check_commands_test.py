"""Tests of check_commands.py: python3 -m unittest discover --start-directory docs --pattern '*_test.py'"""

import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check_commands

FENCE = "`" * 3
# A command that knows `run`, `serve` and the group `video` with `play`, and prints its words.
COMMAND = """#!/bin/sh
case "$*" in
"run --help") echo "  --seeds N  --quiet" ;;
"video --help") echo "Usage: anabranch video [-h] COMMAND ..." ;;
"video play --help") echo "  --listen ADDRESS" ;;
*"--help") [ "$1" = serve ] ;;
"serve") echo listening; exec sleep 60 ;;
"fail") exit 3 ;;
*) echo "words: $*" ;;
esac
"""


def block(language, text, mark=""):
    return f"{mark}\n{FENCE}{language}\n{text}\n{FENCE}\n"


class Checked(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        patch = mock.patch.object(check_commands, "ROOT", self.root)
        patch.start()
        self.addCleanup(patch.stop)
        self.command = self.root / "anabranch"
        self.command.write_text(COMMAND)
        self.command.chmod(0o755)
        self.bins = self.root / "bins"
        self.bins.mkdir()
        self.options = check_commands.Options(check_commands.install(self.command, self.bins))

    def page(self, text):
        page = self.root / "page.md"
        page.write_text(text)
        return page

    def run_page(self, text):
        found, complaints = check_commands.blocks(self.page(text))
        self.assertEqual(complaints, [])
        self.counts = {"run": 0, "skipped": 0, "not run": 0}
        return list(check_commands.run_page(found, self.options, self.bins, self.counts, []))


class Running(Checked):
    def test_a_block_that_fails_is_reported_with_its_place(self):
        (problem,) = self.run_page(block("sh", "anabranch fail"))
        self.assertIn("page.md:2: ended with 3 instead of 0", problem)

    def test_a_block_may_have_to_end_with_a_status(self):
        self.assertEqual(self.run_page(block("sh", "anabranch fail", "<!-- run: status 3 -->")), [])

    def test_blocks_of_a_page_share_a_folder(self):
        self.assertEqual(self.run_page(block("sh", "echo x > made") + block("sh", "grep x made")), [])

    def test_runs_have_two_seeds_in_sh_and_those_of_the_page_in_console(self):
        few = block("sh", "[ \"$(anabranch run a.toml --seeds 20)\" = 'words: run a.toml --seeds 2' ]")
        exact = block("console", "$ anabranch run a.toml --seeds 20\nwords: run a.toml --seeds 20")
        self.assertEqual(self.run_page(few + exact), [])

    def test_output_that_differs_from_the_page_is_reported(self):
        (problem,) = self.run_page(block("console", "$ anabranch run a.toml\nother words"))
        self.assertIn("prints something else than the page shows", problem)
        self.assertEqual(self.run_page(block("console", "$ echo a; echo b; echo c\na\n...")), [])
        self.assertEqual(self.run_page(block("console", "$ date\nnever", "<!-- run: output varies -->")), [])

    def test_a_server_runs_until_the_page_ends(self):
        text = block("sh", "anabranch serve", "<!-- run: background -->") + block("sh", "true")
        self.assertEqual(self.run_page(text), [])
        self.assertEqual(self.counts["run"], 2)

    def test_a_server_that_ends_is_reported(self):
        (problem,) = self.run_page(block("sh", "anabranch fail", "<!-- run: background -->"))
        self.assertIn("ended with 3 instead of running on", problem)

    def test_python_only_commands_are_skipped_and_counted(self):
        self.assertEqual(self.run_page(block("sh", "anabranch sweep plan.toml --out x")), [])
        self.assertEqual(self.counts["skipped"], 1)


class Reading(Checked):
    def test_a_block_that_is_not_run_needs_a_reason(self):
        text = block("sh", "false", "<!-- not run: needs a second machine -->")
        self.assertEqual(self.run_page(text), [])
        self.assertEqual(self.counts["not run"], 1)
        (problem,) = self.run_page(block("sh", "false", "<!-- not run: -->"))
        self.assertIn("ended with 1", problem)

    def test_mark_without_a_block_is_reported(self):
        _, complaints = check_commands.blocks(self.page("<!-- run: background -->\n\nText.\n"))
        self.assertIn("page.md:3: a mark that is not above a block", complaints)

    def test_unknown_marks_targets_options_and_commands_are_reported(self):
        text = block(
            "sh", "make nothing\nanabranch run a.toml --sedes 3 --seeds 2\nanabranch rnu", "<!-- run: later -->"
        )
        ((found,), _) = check_commands.blocks(self.page(text))
        problems = [*check_commands.check_marks(found, {"book"}), *self.options.unknown(found)]
        self.assertEqual(len(problems), 4, problems)
        for words in ("unknown mark", "`make nothing`", "has no --sedes", "no `anabranch rnu`"):
            self.assertTrue(any(words in problem for problem in problems), words)

    def test_options_of_a_command_of_a_group_are_its_own(self):
        text = block("sh", "anabranch video play --listen ::1 --quiet", "<!-- not run: takes minutes -->")
        ((found,), _) = check_commands.blocks(self.page(text))
        self.assertEqual([*self.options.unknown(found)], [f"{found.place}: `anabranch video play` has no --quiet"])

    def test_placeholders_are_found(self):
        (problem,) = check_commands.placeholders(self.page("It costs\n\nTO" + "DO\n"))
        self.assertIn("page.md:3: placeholder", problem)


if __name__ == "__main__":
    unittest.main()
