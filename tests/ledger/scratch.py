"""A clone of the repository in which bugs are reproduced, and how commands run there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from bugs import HERE, Bug, LedgerError

# What cargo's test runner prints for each binary, if no test failed there.
PASSED = re.compile(r"^test result: ok\. (\d+) passed", re.M)
# And if one failed, or ended the process.
FAILED = re.compile(r"^test result: FAILED|process didn't exit successfully", re.M)


@dataclass(frozen=True)
class Limits:
    """What one command may take. One that takes more is ended, and has reproduced nothing."""

    seconds: int = 1800
    log_bytes: int = 64 << 20


@dataclass(frozen=True)
class Outcome:
    status: int
    seconds: float
    log: Path
    text: str

    def end(self) -> str:
        return "\n".join(f"    | {line}" for line in self.text.splitlines()[-15:])


class Scratch:
    """A clone in `target/ledger/tree`. Its path is always the same, so that cargo builds again only what differs."""

    def __init__(self, root: Path, limits: Limits, *, keep: bool = False) -> None:
        self.root = root
        self.folder = root / "target" / "ledger"
        self.tree = self.folder / "tree"
        # Not the folder that cargo uses for the checkout: it tells packages apart by their paths in a workspace, and
        # would take those of an old commit for today's.
        self.target = self.folder / "build"
        self.limits = limits
        self.keep = keep
        self._open = contextlib.ExitStack()
        self._now_there: object = None

    def __enter__(self) -> Scratch:
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as opening:
            opening.enter_context(_locked(self.folder / "lock"))
            shutil.rmtree(self.tree, ignore_errors=True)
            # The clone borrows the objects and has its own references: nothing is written to the repository.
            self._git(
                "clone", "--quiet", "--shared", "--no-checkout", "--", str(self.root), str(self.tree), cwd=self.root
            )
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.keep:
            shutil.rmtree(self.tree, ignore_errors=True)
        self._open.close()

    def fails_at_parent(self, bug: Bug) -> float:
        """Runs the command with the tests of the fix on its parent. Gives the seconds that it took."""
        self._check_out(bug, f"{bug.fixed}^", bug.place)
        outcome = self._run(bug, bug.arguments, "parent")
        if outcome.status == 0:
            raise LedgerError(f"the command passes at the parent of the fix; see {outcome.log}")
        if _is_cargo_test(bug.arguments) and not FAILED.search(outcome.text):
            raise LedgerError(f"no test failed at the parent of the fix, see {outcome.log}\n{outcome.end()}")
        if bug.fails_with not in outcome.text:
            raise LedgerError(
                f"the command fails at the parent of the fix, but without {bug.fails_with!r}; see {outcome.log}\n"
                + outcome.end()
            )
        return outcome.seconds

    def passes_at_fix(self, bug: Bug) -> float:
        """Runs the command at the fix, or the one that stands in for it there. Gives the seconds that it took."""
        # A command of the fix's own runs its own tests; the placed ones need not even compile there.
        self._check_out(bug, bug.fixed, {} if bug.fixed_command else bug.place)
        outcome = self._run(bug, bug.fixed_arguments, "fix")
        if outcome.status != 0:
            raise LedgerError(f"the command fails at the fix; see {outcome.log}\n{outcome.end()}")
        if _is_cargo_test(bug.fixed_arguments) and not any(int(count) for count in PASSED.findall(outcome.text)):
            raise LedgerError(f"no test ran at the fix: does its name still fit? See {outcome.log}")
        return outcome.seconds

    def _check_out(self, bug: Bug, revision: str, place: dict[str, str]) -> None:
        # Files that are written anew are built anew, even if they are what they were.
        wanted = (revision, bug.fixed if bug.take else None, bug.take, place)
        if wanted == self._now_there:
            return
        self._now_there = None
        known = self._git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False)
        if known.returncode != 0:
            raise LedgerError(
                f"commit {revision} is not in this repository; "
                "a shallow clone gets its history with `git fetch --unshallow`"
            )
        self._git("reset", "--quiet", "--hard", check=False)
        self._git("clean", "--quiet", "-xdff")
        self._git("checkout", "--quiet", "--force", "--detach", known.stdout.strip())
        if bug.take:
            self._git("checkout", "--quiet", bug.fixed, "--", *bug.take)
        for source, path in place.items():
            target = self.tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(HERE / source, target)
        self._now_there = wanted

    def _git(self, *arguments: str, cwd: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        # A hook that calls this sets variables that point git to the user's checkout.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
        command = ["git", "-c", "advice.detachedHead=false", *arguments]
        done = subprocess.run(
            command,
            cwd=cwd or self.tree,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if check and done.returncode != 0:
            raise LedgerError(f"`git {' '.join(arguments)}` failed: {done.stderr.strip()}")
        return done

    def _run(self, bug: Bug, arguments: list[str], where: str) -> Outcome:
        log = self.folder / "logs" / f"{bug.id}.{where}.log"
        log.parent.mkdir(exist_ok=True)
        began = time.monotonic()
        with log.open("wb") as output:
            process = self._start(arguments, output)
            try:
                status = self._wait(process, log, began)
            finally:
                _end_group(process)
        return Outcome(status, time.monotonic() - began, log, log.read_text(encoding="utf-8", errors="replace"))

    def _start(self, arguments: list[str], output: BinaryIO) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                arguments,
                cwd=self.tree,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise LedgerError(f"`{shlex.join(arguments)}` cannot be started: {error}") from error

    def _wait(self, process: subprocess.Popen[bytes], log: Path, began: float) -> int:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=0.2)
            if time.monotonic() - began > self.limits.seconds:
                raise LedgerError(f"the command was ended after {self.limits.seconds} s (--timeout); see {log}")
            if log.stat().st_size > self.limits.log_bytes:
                raise LedgerError(
                    f"the command was ended after it had printed {self.limits.log_bytes} bytes; see {log}"
                )

    def _environment(self) -> dict[str, str]:
        """That of the caller, without what changes which cases are drawn or where cargo looks."""
        left_out = re.compile(r"GIT_|ANABRANCH_|PROPTEST_|CARGO_TARGET_DIR$|RUST_BACKTRACE$")
        environment = {key: value for key, value in os.environ.items() if not left_out.match(key)}
        # One case runs once: what is not optimised is ready sooner.
        defaults = {
            "CARGO_PROFILE_DEV_DEBUG": "line-tables-only",
            "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
            "CARGO_TERM_COLOR": "never",
        }
        return {**defaults, **environment, "CARGO_TARGET_DIR": str(self.target)}


def _is_cargo_test(arguments: list[str]) -> bool:
    return arguments[:2] == ["cargo", "test"]


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the command and all that it started: they are a process group of their own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise LedgerError(f"another reproduction runs in {path.parent}; wait for it to end") from error
        yield
