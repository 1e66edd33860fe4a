"""Tests of tools/setup.sh, with an apt-get that records the requested packages, and of the Containerfile."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / "tools" / "setup.sh"
# Programs that the script itself needs.
NEEDED = ["cat", "env", "find", "grep", "sh", "xargs", "echo"]

APT = '#!/bin/sh\necho "$@" >> "{log}"\nexit {status}\n'


class Setup(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="with blank ")
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.log = self.folder / "apt.log"
        for name in NEEDED:
            (self.folder / name).symlink_to(shutil.which(name))
        self.program("cargo", "#!/bin/sh\n")
        # The PATH hides the programs of this machine.
        self.script = self.folder / "setup.sh"
        self.script.write_text(SETUP.read_text().replace(":/usr/sbin:/sbin", ""))

    def program(self, name, text="#!/bin/sh\n"):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)

    def run_setup(self, wanted="test", user=0, **environment):
        self.program("id", f"#!/bin/sh\necho {user}\n")
        return subprocess.run(
            ["/bin/sh", str(self.script), wanted],
            env={"PATH": str(self.folder), **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def apt(self, status=0):
        self.program("apt-get", APT.format(log=self.log, status=status))

    def installed(self):
        return self.log.read_text() if self.log.exists() else ""

    def test_root_installs_missing_packages_of_the_set_and_prints_them(self):
        self.apt()
        ended = self.run_setup("demo")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("Installing: gcc", ended.stdout)
        self.assertIn("python3-venv", self.installed())
        self.assertNotIn("tshark", self.installed())

    def test_installed_programs_are_not_installed_again(self):
        self.apt()
        self.program("tshark")
        ended = self.run_setup("test")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertNotIn("tshark", self.installed())
        self.assertIn("ethtool", self.installed())
        self.assertNotIn("ns2", self.installed())

    def test_without_root_the_command_to_type_is_printed(self):
        self.apt()
        ended = self.run_setup("test", user=1000)
        self.assertEqual(ended.returncode, 1)
        self.assertRegex(ended.stderr, "sudo apt-get update && sudo apt-get install .*tshark")
        self.assertEqual(self.installed(), "")

    def test_refused_setup_installs_nothing_and_succeeds(self):
        self.apt()
        ended = self.run_setup("all", user=1000, ANABRANCH_SETUP="no")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("ns2", ended.stdout)
        self.assertEqual(self.installed(), "")

    def test_failed_installation_of_needed_packages_fails(self):
        self.apt(status=100)
        self.assertEqual(self.run_setup("demo").returncode, 1)

    def test_failed_installation_of_other_packages_succeeds(self):
        self.apt(status=100)
        for name in ("cc", "python3"):
            self.program(name)
        self.script.write_text(self.script.read_text().replace("demo libc6-dev command -v cc\n", ""))
        ended = self.run_setup("test")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("could not install", ended.stderr)

    def test_missing_rust_is_named(self):
        (self.folder / "cargo").unlink()
        ended = self.run_setup("demo")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("rustup.rs", ended.stderr)

    def test_without_apt_the_packages_are_named(self):
        for name in ("cc", "python3"):
            self.program(name)
        ended = self.run_setup("test")
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("Missing: tshark", ended.stdout)


class Container(unittest.TestCase):
    def test_image_has_the_toolchain_and_runs_the_same_setup(self):
        text = (ROOT / "Containerfile").read_text()
        channel = (ROOT / "rust-toolchain.toml").read_text().split('channel = "')[1].split('"')[0]
        self.assertIn(f"rust:{channel}-", text)
        self.assertIn("COPY tools/setup.sh /tmp/setup.sh\nRUN /tmp/setup.sh all\n", text)


class Listing(unittest.TestCase):
    def test_make_lists_targets_that_a_contributor_needs_in_groups(self):
        ended = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
        lines = ended.stdout.splitlines()
        self.assertEqual([line for line in lines if not line.startswith(" ")], ["start", "change", "check", "measure"])
        targets = {line.split()[1] for line in lines if line.startswith("  make ")}
        self.assertLessEqual({"setup", "demo", "test", "lint"}, targets)
        self.assertLessEqual(len(targets), 18)


if __name__ == "__main__":
    unittest.main()
