"""The native module: scenarios, runs and the command.

It takes and gives text and numbers; the package's own modules make objects of them.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Generic, TypeVar, final

from anabranch.transfer.settings import Settings

__all__ = [
    "AnabranchError",
    "Association",
    "Events",
    "Listener",
    "Operation",
    "Prepared",
    "RunError",
    "ScenarioError",
    "SchemeError",
    "WakePipe",
    "cards",
    "command",
    "connect",
    "end_associations",
    "engine",
    "forget_runtime",
    "listen",
    "python_commands",
    "resolve",
    "run_batch",
    "schemes_of",
]

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

def resolve(text: str, file: str, set: Sequence[tuple[str, str]] = ...) -> str:
    """The scenario in `text` with every default in it, as canonical TOML.

    `set` puts values in first: pairs of a key such as `path.path-1.loss` and a value as a TOML literal; what is not
    TOML is taken as a string. `file` names the scenario in messages. Raises `ScenarioError`.
    """

def schemes_of(text: str, file: str, list: str) -> list[str]:
    """The schemes that a list such as `sctp,cmt(trigger=4)` or `all` stands for in a scenario, each in full and once.

    Raises `ScenarioError` and `SchemeError`.
    """

def cards() -> str:
    """Every scheme and component as JSON: what `anabranch schemes --json` prints."""

@final
class Prepared:
    """A scenario with a scheme, read and checked once for runs with any seed.

    It cannot be pickled: what goes to another process is the text it was made from.
    """

    def __new__(cls, text: str, scheme: str, folder: str | PathLike[str] = ..., file: str = "scenario") -> Prepared:
        """Reads the scenario in `text` with the scheme of flows that have none of their own.

        Files that flows send are looked for in `folder`, by default the working folder; `file` names the scenario in
        messages. Raises `ScenarioError`, `SchemeError`, and `RunError` if such a file cannot be read.
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

    There are `threads` of them, or one per processor if that is `None`; the interpreter is free meanwhile. `trace` and
    `pcap` are folders that get a folder of traces or a capture for each run; `digest` adds a SHA-256 over everything
    that happened, at about the cost of the run itself. Neither runs nor results are kept.

    `done` is called in this thread as each run finishes, in whatever order, with the index of its job and one JSON
    object, as `anabranch run --json` prints it. Runs wait where it falls behind.

    Raises `KeyboardInterrupt` within a fraction of a second of Ctrl-C if this is the main thread: runs under way are
    given up, and finished ones are handed to `done` first. If Ctrl-C comes while `done` is at work, that call is made
    again. Whatever else `done` raises ends the batch at once. Raises `RunError`, `ScenarioError` and `SchemeError` for
    a run that cannot be made: it keeps others from starting, and those under way are handed over first.
    """

def command(arguments: Sequence[str]) -> int:
    """Runs the native command with these arguments, of which the first names the program, and gives its exit status.

    It takes Ctrl-C over as the native program does: Python does not see it from then on.
    """

def python_commands() -> list[str]:
    """The names of the commands that the Python package carries out itself."""

# Associations over real sockets. `anabranch.transfer` makes objects of what these give.

_T = TypeVar("_T")

@final
class WakePipe:
    """A pipe that an event loop watches, and the numbers of the operations that are to be polled again."""

    def __new__(cls) -> WakePipe: ...
    def fileno(self) -> int: ...
    def drain(self) -> list[int]:
        """The numbers of the operations woken since the last call, some perhaps twice."""

@final
class Operation(Generic[_T]):
    """Something that takes time. It is to be polled in the thread of the event loop."""

    def poll(self, pipe: WakePipe, number: int) -> tuple[_T] | None:
        """The result in a tuple; `None` if it is not there yet: `number` then comes through the pipe when it is time to
        poll again."""

    def cancel(self) -> None:
        """Gives it up. What it would have taken stays where it is."""

@final
class Association:
    """An association, which is aborted when this is dropped unless it has been shut down."""

    @property
    def peer(self) -> str: ...
    @property
    def streams(self) -> int: ...
    @property
    def is_open(self) -> bool: ...
    def send(self, payload: bytes, stream: int, ordered: bool, ppid: int) -> Operation[None]: ...
    def recv(self) -> Operation[tuple[bytes, int, bool, int, bool, bool] | None]:
        """Payload, stream, whether it is ordered, PPID, whether the message begins with it, whether it ends with it."""

    def shutdown(self) -> Operation[None]: ...
    def closed(self) -> Operation[None]: ...
    def abort(self) -> None: ...
    def leave(self, gracefully: bool) -> Operation[None]:
        """Ends it and gives back all that it holds. What the peer sent meanwhile is thrown away."""

    def paths(self) -> Operation[list[dict[str, Any]]]: ...
    def statistics(self) -> Operation[dict[str, Any]]: ...
    def events(self) -> Events: ...
    def add_path(self, local: str, remote: str) -> Operation[int]: ...
    def remove_path(self, path: int) -> Operation[None]: ...

@final
class Events:
    """What happens to an association from the moment on when this was made."""

    def next(self) -> Operation[dict[str, Any] | None]: ...

@final
class Listener:
    """Accepts associations until it is closed or dropped."""

    @property
    def addresses(self) -> list[str]: ...
    def accept(self) -> Operation[Association | None]: ...
    def stop(self) -> None: ...
    def close(self) -> Operation[None]: ...
    def statistics(self) -> Operation[dict[str, int]]: ...

def connect(
    remote: Sequence[str], local: Sequence[str], settings: Settings, sctp_port: int, connect_timeout_s: float
) -> Operation[Association]:
    """Opens an association. The attempt begins at once."""

def listen(
    addresses: Sequence[str], settings: Settings, sctp_port: int, backlog: int, accept_from: Sequence[str] | None
) -> Listener:
    """Binds sockets to these addresses of this machine."""

def end_associations() -> None:
    """Aborts all associations, so that peers know, and waits a moment until they have been told."""

def forget_runtime() -> None:
    """Leaves the threads of all hosts to the process that this one is a fork of."""
