"""Types the commands of README and tutorials into terminals, as a reader of a fresh clone would.

    python3 docs/first_use.py [--transcript FILE] [PAGE...]

docs/check_commands.py runs the commands of all pages without a terminal, and compares their output. This script types
the commands into a shell in a terminal, character by character and in the order of the text. It includes commands that
install, and commands that need a second machine, in whose place it uses a loopback address. Each has to end with status
0. Servers run in terminals of their own until the page ends, and have to give the prompt back after Ctrl-C.

The script uses the command that the README's first block installs into a temporary home folder. Commands of the Python
package are found in .venv, where `make venv` has done what `pip install .` does.
"""

import argparse
import contextlib
import os
import re
import shlex
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pexpect
from check_commands import BOOK, IN_PYTHON_ONLY, LINKED, ROOT, blocks, in_own_network

PAGES = (ROOT / "README.md", BOOK / "move-files.md", BOOK / "compare-schemes.md", BOOK / "write-a-scheme.md")
VENV = ROOT / ".venv" / "bin"
# Blocks that docs/check_commands.py omits and that this script types.
INSTALLS = "installs the command"
TWO_MACHINES = "needs a second machine"
# Values for the placeholders of the text, and the files that the README's example sends.
FILLED_IN = {
    "HOST": "127.0.0.1",
    # The example runs on one machine, so both sides have the same key.
    "KEY NAME": '"$(anabranch keys show | head -n 1)" myself',
}
FILES = {"video.mkv": 3_000_000, "photos/one.jpg": 200_000, "photos/two.jpg": 100_000}
SERVES = re.compile(r"^anabranch (serve|relay|send --code)\b")
# One-time code in the text. The command prints a different code each time.
CODE_OF_TEXT = "42-marble-river"
CODE = re.compile(r"code (\d+-[a-z]+-[a-z]+): ")
QUESTION = "[y/N] "
PROMPT = "\nready> "
COMMAND_S = 180
# The installation compiles the release, unless a step before it has.
INSTALL_S = 1800
STOP_S = 15


class ReaderError(Exception):
    """A command whose result was not the one that the text promises, with the text of the terminal."""


class Terminal:
    """A shell in a terminal of 100 columns."""

    def __init__(self, folder, environment, log):
        self.child = pexpect.spawn(
            "bash",
            ["--norc", "--noprofile", "--noediting"],
            cwd=str(folder),
            env={**environment, "PS1": PROMPT, "PS2": "", "TERM": "xterm"},
            encoding="utf-8",
            codec_errors="replace",
            dimensions=(40, 100),
        )
        self.child.logfile_read = log
        self.wait_for_prompt("bash", COMMAND_S)

    def wait_for_prompt(self, command, limit_s):
        try:
            # The reader accepts the offer.
            while self.child.expect_exact([PROMPT.replace("\n", "\r\n"), QUESTION], timeout=limit_s):
                self.child.sendline("y")
        except pexpect.TIMEOUT:
            raise ReaderError(f"`{command}` did not end within {limit_s} s:\n{self.child.before}") from None
        except pexpect.EOF:
            raise ReaderError(f"the shell ended at `{command}`:\n{self.child.before}") from None
        return self.child.before

    def type(self, command, limit_s=COMMAND_S):
        """Types a command and waits for its end."""
        self.child.sendline(command)
        shown = self.wait_for_prompt(command, limit_s)
        self.child.sendline("echo status $?")
        if "status 0\r\n" not in self.wait_for_prompt("echo", STOP_S) + "\r\n":
            raise ReaderError(f"`{command}` did not end with status 0:\n{shown}")

    def leave_running(self, command):
        """Types a command that keeps running, and waits for its first output.

        Returns the one-time code in the output.
        """
        self.child.sendline(command)
        last_line = command.splitlines()[-1]
        index = self.child.expect([re.escape(last_line) + r"\r\n[^\r\n]+\r\n", pexpect.TIMEOUT, pexpect.EOF], STOP_S)
        # Time to open the sockets that the command opens after its first line.
        time.sleep(0.3)
        if index != 0:
            raise ReaderError(f"`{command}` printed nothing within {STOP_S} s:\n{self.child.before}")
        if "--code" not in command:
            return None
        if self.child.expect([CODE, pexpect.TIMEOUT, pexpect.EOF], STOP_S) != 0:
            raise ReaderError(f"`{command}` printed no code within {STOP_S} s:\n{self.child.before}")
        return self.child.match[1]

    def interrupt(self, command):
        self.child.sendintr()
        self.wait_for_prompt(f"{command} and Ctrl-C", STOP_S)

    def close(self):
        self.child.close(force=True)


class Reader:
    """Follows one page, with the number of terminals that the page needs."""

    def __init__(self, folder, environment, log):
        self.folder, self.environment, self.log = folder, environment, log
        self.serving = []
        self.on_two_machines = False
        self.code = None
        self.terminal = Terminal(folder, environment, log)

    def follow(self, block):
        if block.mark == TWO_MACHINES:
            if not self.on_two_machines:
                # The text continues on machines without a server.
                self.stop_serving()
                self.on_two_machines = True
            block = replace(block, text=filled_in(block.text, self.code))
        if block.mark == INSTALLS:
            # The build stays in the clone, where other steps use it.
            self.terminal.type(f"cd {shlex.quote(str(ROOT))}")
        for command in commands(block):
            if block.mark == "background" or SERVES.match(command):
                self.serve(command)
            else:
                self.terminal.type(command, INSTALL_S if block.mark == INSTALLS else COMMAND_S)
        if block.mark == INSTALLS:
            self.terminal.type(f"cd {shlex.quote(str(self.folder))}")

    def serve(self, command):
        terminal = Terminal(self.folder, self.environment, self.log)
        self.serving.append((terminal, command))
        self.code = terminal.leave_running(command) or self.code

    def stop_serving(self):
        while self.serving:
            terminal, command = self.serving.pop()
            try:
                terminal.interrupt(command)
            finally:
                terminal.close()

    def close(self):
        for terminal, _ in self.serving:
            terminal.close()
        self.terminal.close()


def filled_in(text, code):
    if code:
        text = text.replace(CODE_OF_TEXT, code)
    for name, value in FILLED_IN.items():
        text = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", value, text)
    return text


def commands(block):
    """Returns the commands to type for a block: its lines, or those after `$ ` with their continuation lines."""
    lines = block.text.splitlines()
    if block.language == "console":
        shown, lines, continues = lines, [], False
        for line in shown:
            if continues or line.startswith("$ "):
                lines.append(line if continues else line[2:])
                continues = line.endswith("\\")
    joined = "\n".join(lines).replace("\\\n", "\\\0").split("\n")
    return [command.replace("\0", "\n") for command in joined if typed(command)]


def typed(command):
    targets = re.match(r"\s*make (\w+)", command)
    return command.strip() and not command.lstrip().startswith("#") and (targets is None or targets[1] == "install")


def is_for_reader(block):
    return block.kind == "run" or block.mark in (INSTALLS, TWO_MACHINES)


def prepare(folder, page):
    """Creates the working folder of a reader, with the files of a clone that the commands read."""
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    if page.name == "README.md":
        for name, size_bytes in FILES.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(os.urandom(size_bytes))


def wants_python(block):
    return any(name in IN_PYTHON_ONLY for name, _ in block.subcommands())


def follow(page, environment, log):
    """Types the blocks of a page. Returns the number of commands."""
    found = [block for block in blocks(page)[0] if is_for_reader(block)]
    count = 0
    if any(map(wants_python, found)):
        # If both are installed, the command of the Python package comes first in the PATH, because it has all
        # subcommands.
        environment = {**environment, "PATH": os.pathsep.join([str(VENV), environment["PATH"]])}
    with tempfile.TemporaryDirectory(prefix="anabranch-first-use-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        prepare(folder, page)
        reader = Reader(folder, environment, log)
        stack.callback(reader.close)
        for block in found:
            print(f"{block.place}: {len(commands(block))} commands", flush=True)
            try:
                reader.follow(block)
            except ReaderError as failure:
                raise ReaderError(f"{block.place}: {failure}") from None
            count += len(commands(block))
        reader.stop_serving()
    return count


def reader_environment(home):
    """Returns the environment of a reader who has Rust and Python, and no anabranch yet."""
    old = Path.home()
    return {
        "CARGO_HOME": str(old / ".cargo"),
        "RUSTUP_HOME": str(old / ".rustup"),
        **os.environ,
        "HOME": home,
        "PATH": os.pathsep.join([f"{home}/.local/bin", os.environ["PATH"]]),
        # The network namespace of these terminals has no way out. An earlier step has fetched the packages that cargo
        # needs.
        "CARGO_NET_OFFLINE": "true",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transcript", type=Path, help="file for the output of the terminals")
    parser.add_argument(
        "pages",
        nargs="*",
        metavar="PAGE",
        type=Path,
        default=PAGES,
        help="pages to follow in place of README and tutorials",
    )
    options = parser.parse_args()
    in_own_network()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home, contextlib.ExitStack() as stack:
        log = None
        if options.transcript:
            options.transcript.parent.mkdir(parents=True, exist_ok=True)
            log = stack.enter_context(options.transcript.open("w", encoding="utf-8"))
        try:
            count = sum(follow(page.resolve(), reader_environment(home), log) for page in options.pages)
        except ReaderError as failure:
            print(failure)
            return 1
    print(f"first use: {count} commands typed, {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
