"""Tests of tools/vale.sh and of the style in .vale."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "tools" / "vale.sh"
LONG = f"Sends {'a packet and ' * 12}a SACK."
QUOTED = LONG.replace(" and a packet and a packet and", " and\n//# a packet and a packet and", 2)
STYLE = ROOT / ".vale" / "Anabranch" / "Terms.yml"
TERMS = re.findall(r"^  - ([a-z ]+)$", STYLE.read_text(), re.MULTILINE)
# One text for each rule, with the ending of its file.
REJECTED = {
    "Opening": ("rs", "/// Which of the names are taken.\nfn a() {}\n"),
    "Terms": ("rs", f"/// Sends a packet, {TERMS[0]}.\nfn a() {{}}\n"),
    "Sentence": ("md", f"{LONG}\n"),
    "CommentSentence": ("rs", f"/// Returns one.\n/// {LONG}\nfn a() {{}}\n"),
    "OneWord": ("rs", "/// The file.\nfn a() {}\n"),
}
ACCEPTED = {
    "rs": f"/// Returns the names that the filter selects.\nfn a() {{}}\n\n//# {QUOTED}\nfn b() {{}}\n",
    "py": '"""Tests of the filter."""\n',
    "md": "Vale checks this chapter.\n",
}


def run(*arguments, **environment):
    command = ["/bin/sh", str(SCRIPT), *arguments]
    settings = {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)


class Script(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def rules(self, ending, text):
        """Returns the names of the rules that reject a file."""
        file = self.folder / f"a.{ending}"
        file.write_text(text)
        ended = run(str(file))
        found = {line.split("Anabranch.")[1].split(":")[0] for line in ended.stdout.splitlines()}
        self.assertEqual((ended.returncode, ended.stderr), (1 if found else 0, ""))
        return found

    def test_build_without_go_names_the_remedy(self):
        ended = run("build", PATH=str(self.folder), XDG_CACHE_HOME=str(self.folder))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("Go is missing", ended.stderr)
        self.assertIn("go.dev/doc/install", ended.stderr)

    def test_check_without_vale_names_the_remedy(self):
        ended = run("README.md", XDG_CACHE_HOME=str(self.folder))
        self.assertEqual(ended.returncode, 1)
        self.assertIn("make setup", ended.stderr)

    def test_each_rule_rejects_its_text_and_accepts_plain_text(self):
        for ending, text in ACCEPTED.items():
            self.assertEqual(self.rules(ending, text), set())
        for rule, (ending, text) in REJECTED.items():
            self.assertEqual(self.rules(ending, text), {rule})

    def test_every_word_of_the_terms_is_rejected(self):
        self.assertGreater(len(TERMS), 20)
        file = self.folder / "a.rs"
        file.write_text("".join(f"/// Sends a packet, {term}.\nfn a() {{}}\n" for term in TERMS))
        self.assertEqual(re.findall(r":Anabranch\.Terms:'([a-z ]+)'", run(str(file)).stdout), TERMS)


if __name__ == "__main__":
    unittest.main()
