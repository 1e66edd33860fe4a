"""The native module: scenarios, runs and the command.

It takes and gives text and numbers; the package's own modules make objects of them.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import final

class AnabranchError(Exception):
    """Anything that this package raises of its own accord."""

class ScenarioError(AnabranchError):
    """A scenario cannot be read, or something in it is wrong.

    The message has every fault, with its place and what to do about it.
    """

class SchemeError(AnabranchError):
    """A scheme expression is wrong."""

class RunError(AnabranchError):
    """A run could not be made: a file that a flow sends cannot be read, or a trace cannot be written."""

def engine() -> dict[str, str]:
    """What computes runs here: `version`, `commit` and `fingerprint`. See `anabranch.engine.Engine`."""

def resolve(text: str, file: str, set: Sequence[tuple[str, str]] = ()) -> str:
    """The scenario in `text` with every default in it, as canonical TOML.

    `set` puts values in first: pairs of a key such as `path.path-1.loss` and a value as a TOML literal; what is not
    TOML is taken as a string. `file` names the scenario in messages. Raises `ScenarioError`.
    """

def schemes_of(text: str, file: str, list: str) -> list[str]:
    """The schemes that a list such as `sctp,cmt(trigger=4)` or `all` stands for in a scenario, each written in full.

    Raises `ScenarioError` and `SchemeError`.
    """

def cards() -> str:
    """Every scheme and component as JSON: what `anabranch schemes --json` prints."""

@final
class Prepared:
    """A scenario with a scheme, read and checked once for runs with any seed."""

    def __new__(cls, text: str, scheme: str, folder: str | PathLike[str] = "", file: str = "scenario") -> Prepared:
        """Reads the scenario in `text` with the scheme of flows that have none of their own.

        Files that flows send are looked for in `folder`; `file` names the scenario in messages. Raises `ScenarioError`,
        `SchemeError`, and `RunError` if such a file cannot be read.
        """

    @property
    def scheme(self) -> str:
        """The scheme as results name it."""

def run_batch(
    jobs: Sequence[tuple[Prepared, int]],
    done: Callable[[int, str], object],
    threads: int | None = None,
    trace: str | PathLike[str] | None = None,
    pcap: str | PathLike[str] | None = None,
    digest: bool = False,
) -> None:
    """Makes runs, each given as what was prepared and a seed (0 to 2**64 - 1), on native threads.

    There are `threads` of them, or one per processor if that is `None`; the interpreter is free meanwhile.
    `done` is called in this thread as each run finishes, in whatever order, with the index of its job and one JSON
    object, as `anabranch run --json` prints it. `trace` and `pcap` are folders that get a folder of traces or a capture
    for each run. Raises `RunError`, `ScenarioError` and `SchemeError` for runs that cannot be made, whatever `done`
    raises, and `KeyboardInterrupt` soon after Ctrl-C; what was finished before has been handed to `done`.
    """

def command(arguments: Sequence[str]) -> int:
    """Runs the native command with these arguments, of which the first names the program, and gives its exit status.

    It takes Ctrl-C over as the native program does: Python does not see it from then on.
    """

def python_commands() -> list[str]:
    """The names of the commands that the Python package carries out itself."""
