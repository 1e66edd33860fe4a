"""`make install` and `make uninstall`, with a compiler that builds a script in place of the command."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

COMMAND = """#!/bin/sh
case $1 in
man) mkdir -p "$2"; for page in anabranch anabranch-run; do echo page > "$2/$page.1"; done ;;
completions) echo "for $2" ;;
esac
"""

CARGO = """#!/bin/sh
case $1 in
metadata) echo '{metadata}' ;;
build) mkdir -p "{target}/fast"; cp "{command}" "{target}/fast/anabranch" ;;
esac
"""

INSTALLED = {
    "bin/anabranch",
    "share/man/man1/anabranch.1",
    "share/man/man1/anabranch-run.1",
    "share/bash-completion/completions/anabranch",
    "share/zsh/site-functions/_anabranch",
    "share/fish/vendor_completions.d/anabranch.fish",
}


def executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


class Install(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="with blank ")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        target = self.folder / "target"
        command = executable(self.folder / "command", COMMAND)
        metadata = json.dumps({"target_directory": str(target)})
        self.cargo = executable(self.folder / "cargo", CARGO.format(metadata=metadata, target=target, command=command))
        self.strip = executable(self.folder / "strip", '#!/bin/sh\necho "# stripped" >> "$1"\n')
        self.destination = self.folder / "destination"

    def make(self, goal, prefix="/usr"):
        variables = {
            "CARGO": f"'{self.cargo}'",
            "STRIP": f"'{self.strip}'",
            "PREFIX": prefix,
            "DESTDIR": self.destination,
        }
        arguments = [f"{name}={value}" for name, value in variables.items()]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        command = ["make", "--no-print-directory", goal, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    def files(self):
        below = self.destination / "usr"
        return {str(path.relative_to(below)) for path in below.rglob("*") if path.is_file()}

    def test_installed_command_is_stripped(self):
        ended = self.make("install")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(self.files(), INSTALLED)
        self.assertTrue((self.destination / "usr/bin/anabranch").read_text().endswith("# stripped\n"))

    def test_uninstall_removes_installed_files_only(self):
        self.make("install")
        others = {"bin/other", "share/man/man1/anabranch-of-others.1", "share/zsh/site-functions/_other"}
        for name in others:
            (self.destination / "usr" / name).write_text("another program's")
        ended = self.make("uninstall")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual(self.files(), others)

    def test_uninstall_without_an_installation_is_an_error(self):
        self.make("install")
        ended = self.make("uninstall", prefix="/opt")
        self.assertNotEqual(ended.returncode, 0)
        self.assertIn("nothing was removed", ended.stdout)
        self.assertEqual(self.files(), INSTALLED)


if __name__ == "__main__":
    unittest.main()
