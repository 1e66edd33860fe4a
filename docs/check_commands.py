"""Runs the commands that the documents show, and finds commands that no check runs.

    python3 docs/check_commands.py --anabranch target/release/anabranch [PAGE...]
    python3 docs/check_commands.py --marks

Every block of ```sh is run by bash, page after page: the blocks of a page share one temporary folder, in which the
repository's `scenarios`, `contrib`, `examples`, `docs`, `studies`, `tools` and `python` are found. It has to end with
status 0.
`anabranch run` and `sweep` are given two seeds at most there, to save time. In a block of
```console the lines after `$ ` are run and their output is compared with the lines below; a line `...` stands for any
number of lines. A comment in the line above a block changes this:

    <!-- run: background -->        it is left running until the page ends
    <!-- run: output varies -->     the output of ```console is not compared
    <!-- run: status 3 -->          it has to end with this status
    <!-- not run: REASON -->        it is not run
    <!-- page not run: REASON -->   anywhere in a page: none of its blocks is run

Of `anabranch` commands that are not run the options are looked up in `--help`. Lines with `make TARGET` are not run:
the target has to exist. With --marks the script runs no command and checks only marks, targets and placeholders.

Commands that only the Python package has are skipped, and counted, if the command given with --anabranch has none of
them.
"""

import argparse
import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "src"
FENCE = re.compile(r"^(```+)\s*(\w*)")
MARK = re.compile(r"^<!-- (run|not run): (.+) -->$")
PAGE_MARK = re.compile(r"^<!-- page not run: .+ -->$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\b(MEASURED|TODO|FIXME|XXX|TBD)\b")
IN_PYTHON_ONLY = {"sweep", "report", "view", "plot", "papers", "video", "trace plot", "trace import"}
LINKED = ("scenarios", "contrib", "examples", "docs", "tools", "studies", "papers", "python")
# Takes the place of `anabranch` in blocks of sh.
FEW_SEEDS = """#!{python}
import os, sys
words = sys.argv[1:]
if words and words[0] in ("run", "sweep"):
    at = words.index("--seeds") if "--seeds" in words else None
    if at is None:
        words += ["--seeds", "2"]
    elif not words[at + 1].endswith(","):
        words[at + 1] = "2"
os.execv({command!r}, [{command!r}, *words])
"""
TIME_OUT_S = 120
START_S = 10


@dataclass
class Block:
    page: Path
    line: int
    language: str
    text: str
    # "run" or "not run", and the text that follows in the mark.
    kind: str
    mark: str

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self):
        """Returns the shell words of each line that runs a command, without comments."""
        text = self.text.replace("\\\n", " ")
        lines = text.splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for line in lines:
            try:
                words = shlex.split(line, comments=True)
            except ValueError:
                # The body of a here-document.
                continue
            if words:
                yield words

    def runs_only_make(self):
        return all(words[0] == "make" for words in self.commands())

    def subcommands(self):
        """Returns each subcommand of `anabranch` that the block runs, with its words."""
        for words in self.commands():
            for i, word in enumerate(words[:-1]):
                pair = " ".join(words[i + 1 : i + 3])
                if word == "anabranch" and pair in IN_PYTHON_ONLY:
                    yield pair, words[i + 3 :]
                elif word == "anabranch" and re.fullmatch(r"[a-z]+", words[i + 1]):
                    yield words[i + 1], words[i + 2 :]


def pages(names):
    if names:
        return [Path(name).resolve() for name in names]
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(BOOK.rglob("*.md"))]


def blocks(page):
    """Returns the blocks of a page that contain commands, and problems of marks without a block."""
    found, problems = [], []
    fence, start, language, body, mark = None, 0, "", [], None
    here = page.relative_to(ROOT)
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        opened = FENCE.match(line)
        if fence is None and opened:
            fence, start, language, body = opened[1], number, opened[2], []
        elif fence is not None and line.strip() == fence:
            if language in ("sh", "console"):
                kind, text = (mark[1], mark[2]) if mark else ("run", "")
                found.append(Block(page, start, language, "\n".join(body), kind, text))
            elif mark:
                problems.append(f"{here}:{start}: a mark above a block that holds no commands")
            fence, mark = None, None
        elif fence is not None:
            body.append(line)
        elif line.strip():
            if mark:
                problems.append(f"{here}:{number}: a mark that is not above a block")
            mark = MARK.match(line.strip())
    return found, problems


def targets():
    return set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def check_marks(block, known):
    """Returns the problems of a block that are known before a command runs."""
    mark = block.mark
    if block.kind == "run" and mark and not re.fullmatch(r"background|output varies|status \d+", mark):
        yield f"{block.place}: unknown mark `run: {mark}`"
    for words in block.commands():
        if words[0] == "make":
            for target in words[1:]:
                if "=" not in target and target not in known:
                    yield f"{block.place}: `make {target}`: there is no such target"


def placeholders(page):
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if found := PLACEHOLDER.search(line):
            yield f"{page.relative_to(ROOT)}:{number}: placeholder {found[0]}"


class Options:
    """Options of subcommands, from their `--help`."""

    def __init__(self, anabranch):
        self.anabranch = anabranch
        self.help = {}

    def has(self, subcommand):
        """Returns `True` if the subcommand exists. A name such as `"video send"` is a subcommand of a group."""
        if subcommand not in self.help:
            command = [self.anabranch, *subcommand.split(), "--help"]
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            self.help[subcommand] = ended.stdout if ended.returncode == 0 else None
        return self.help[subcommand] is not None

    def named(self, subcommand, words):
        """Returns the subcommand to which the options belong: the subcommand of a group for groups such as `video`."""
        is_group = re.search(r"^Usage: .* <?COMMAND\b", self.help[subcommand], re.IGNORECASE | re.MULTILINE)
        member = f"{subcommand} {words[0]}" if is_group and words and re.fullmatch(r"[a-z]+", words[0]) else ""
        return member if member and self.has(member) else subcommand

    def unknown(self, block):
        for subcommand, words in block.subcommands():
            if not self.has(subcommand):
                if subcommand not in IN_PYTHON_ONLY:
                    yield f"{block.place}: there is no `anabranch {subcommand}`"
                continue
            named = self.named(subcommand, words)
            for word in words:
                if word in ("|", "&&", ";", "&"):
                    break
                option = re.match(r"--[a-z][\w-]*", word)
                if option and not re.search(re.escape(option[0]) + r"(?![\w-])", self.help[named]):
                    yield f"{block.place}: `anabranch {named}` has no {option[0]}"


def matches(shown, printed):
    """Returns `True` if the output is that of the page, in which `...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"\n" for line in shown)
    text = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    return re.fullmatch(pattern, text) is not None


class Page:
    """Runs the blocks of one page."""

    def __init__(self, folder, bins):
        self.folder = Path(folder)
        self.bins = bins
        self.environment = {**os.environ, "COLUMNS": "100", "XDG_STATE_HOME": str(self.folder / ".state")}
        self.environment["ANABRANCH_CACHE"] = str(self.folder / ".cache")
        self.background = []
        for name in LINKED:
            if (ROOT / name).exists():
                (self.folder / name).symlink_to(ROOT / name)

    def start(self, script, output, exact):
        path = f"{self.bins / ('exact' if exact else 'few')}:{self.environment['PATH']}"
        return subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env={**self.environment, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, script, wanted, exact=False):
        """Runs a script to its end. Returns its output and the problems."""
        with (self.folder / ".output").open("w+", encoding="utf-8") as output:
            process = self.start(script, output, exact)
            try:
                status = process.wait(TIME_OUT_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = f"nothing after {TIME_OUT_S} s"
            output.seek(0)
            printed = output.read()
        return printed, None if status == wanted else f"ended with {status} instead of {wanted}"

    def leave_running(self, script):
        log = self.folder / f".background-{len(self.background)}"
        with log.open("w", encoding="utf-8") as output:
            process = self.start(script, output, exact=True)
        self.background.append(process)
        until = time.monotonic() + START_S
        while process.poll() is None and not log.stat().st_size and time.monotonic() < until:
            time.sleep(0.02)
        # Time to open the sockets that the command opens after its first line.
        time.sleep(0.2)
        if process.poll() is not None:
            return f"ended with {process.returncode} instead of running on:\n{log.read_text(encoding='utf-8')}"
        return None

    def console(self, block):
        """Runs each command of a block and compares its output."""
        lines = block.text.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("$ ")] + [len(lines)]
        for begin, end in itertools.pairwise(starts):
            last = begin
            while lines[last].endswith("\\"):
                last += 1
            script = "\n".join([lines[begin][2:], *lines[begin + 1 : last + 1]])
            wanted = int(block.mark.split()[1]) if block.mark.startswith("status") else 0
            printed, problem = self.run(script, wanted, exact=True)
            if problem is None and block.mark != "output varies" and not matches(lines[last + 1 : end], printed):
                problem = "prints something else than the page shows"
            if problem:
                return f"{problem}:\n$ {script}\n{printed}"
        return None

    def block(self, block):
        if block.mark == "background":
            return self.leave_running(block.text)
        if block.language == "console":
            return self.console(block)
        printed, problem = self.run(block.text, int(block.mark.split()[1]) if block.mark else 0)
        return f"{problem}:\n{printed}" if problem else None

    def end(self):
        for process in self.background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        for process in self.background:
            try:
                process.wait(START_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def run_page(found, options, bins, counts, times):
    with tempfile.TemporaryDirectory(prefix="anabranch-commands-") as folder:
        page = Page(folder, bins)
        try:
            for block in found:
                if block.kind == "not run" or block.runs_only_make():
                    counts["not run"] += 1
                elif not all(options.has(name) for name, _ in block.subcommands() if name in IN_PYTHON_ONLY):
                    counts["skipped"] += 1
                else:
                    began = time.monotonic()
                    if problem := page.block(block):
                        # Blocks below build on this one.
                        yield f"{block.place}: {problem}"
                        return
                    counts["run"] += 1
                    times.append((time.monotonic() - began, block.place))
        finally:
            page.end()


def in_own_network():
    """Starts this script again in a separate network namespace, where fixed ports are free, if the system permits
    one."""
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    up = 'ip link set lo up && exec "$@"'
    if os.environ.get("ANABRANCH_COMMANDS_INSIDE") or not shutil.which("unshare"):
        return
    if subprocess.run([*unshare, "sh", "-c", up, "sh", "true"], capture_output=True, check=False).returncode == 0:
        os.environ["ANABRANCH_COMMANDS_INSIDE"] = "1"
        os.execvp(unshare[0], [*unshare, "sh", "-c", up, "sh", sys.executable, *sys.argv])


def install(command, bins):
    """Puts the command to be run, and the one with few seeds, into folders for the PATH. Returns the command."""
    for name in ("exact", "few"):
        (bins / name).mkdir()
    (bins / "exact" / "anabranch").symlink_to(command)
    few = bins / "few" / "anabranch"
    few.write_text(FEW_SEEDS.format(python=sys.executable, command=str(command)), encoding="utf-8")
    few.chmod(0o755)
    return command


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", type=Path, help="the command to run")
    parser.add_argument("--marks", action="store_true", help="run nothing")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="documents to look at in place of all")
    options = parser.parse_args()
    if not options.marks:
        if options.anabranch is None:
            parser.error("--anabranch or --marks is needed")
        in_own_network()

    began, problems, counts, known = time.monotonic(), [], {"run": 0, "skipped": 0, "not run": 0}, targets()
    times = []
    with tempfile.TemporaryDirectory() as bins:
        if options.anabranch:
            help_of = Options(install(options.anabranch.resolve(), Path(bins)))
        for page in pages(options.pages):
            problems += placeholders(page)
            found, complaints = blocks(page)
            problems += complaints
            for block in found:
                problems += check_marks(block, known)
                if options.anabranch:
                    problems += help_of.unknown(block)
            if options.anabranch and not options.marks and not PAGE_MARK.search(page.read_text(encoding="utf-8")):
                problems += run_page(found, help_of, Path(bins), counts, times)
    for problem in problems:
        print(problem)
    for seconds, place in sorted(times, reverse=True)[:3]:
        print(f"slowest: {seconds:.1f} s {place}")
    done = ", ".join(f"{count} {what}" for what, count in counts.items()) if not options.marks else "marks only"
    print(f"commands: {len(problems)} problems ({done}, {time.monotonic() - began:.1f} s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
