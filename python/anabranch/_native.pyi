"""The native module: scenarios, runs and the command.

It takes and gives text and numbers; the package's own modules make objects of them.
"""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Generic, Literal, TypeVar, final

from anabranch.transfer.settings import Settings

__all__ = [
    "Acknowledged",
    "AnabranchError",
    "Association",
    "AssociationFacts",
    "Bind",
    "Copies",
    "Decision",
    "DeliverySample",
    "Events",
    "HeadOfLine",
    "Listener",
    "LostChunk",
    "Operation",
    "PaceAsk",
    "Pacing",
    "PathFacts",
    "PathLoss",
    "PolicyEvent",
    "Prepared",
    "RunError",
    "ScenarioError",
    "SchemeError",
    "SendAsk",
    "View",
    "Wait",
    "WakePipe",
    "Window",
    "built_in_files",
    "built_in_names",
    "cards",
    "command",
    "connect",
    "end_associations",
    "engine",
    "forget_runtime",
    "listen",
    "policy_sources",
    "python_commands",
    "resolve",
    "run_batch",
    "schemes_of",
    "video_due_ms",
    "video_fates",
    "video_measures",
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

    def __new__(
        cls,
        text: str,
        scheme: str,
        folder: str | PathLike[str] = ...,
        file: str = "scenario",
        own: tuple[str, Callable[[int, int], object], Sequence[str]] | None = None,
    ) -> Prepared:
        """Reads the scenario in `text` with the scheme of flows that have none of their own.

        Files that flows send are looked for in `folder`, by default the working folder; `file` names the scenario in
        messages. With `own`, policies in Python take the place of some of the scheme's: a name for the results, a
        function that makes the object of an association from the run's seed and the association's number, and the
        methods that the object has. Raises `ScenarioError`, `SchemeError`, and `RunError` if such a file cannot be
        read.
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
    snaplen: int | None = None,
    digest: bool = False,
    tables: Sequence[str] | None = None,
    until_s: float | None = None,
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

    Of the traces only `tables` are written if they are given: `paths`, `decisions`, `packets`, `queues`. Runs end
    before their time at `until_s`, for traces of which nothing later is read.

    Runs with policies in Python are made in this thread, one after the other, after the others. What a policy raises is
    raised here.
    """

def video_due_ms(frames: Sequence[tuple[str, int, float]], deadline_ms: float) -> list[float]:
    """When each frame is due, in milliseconds from when the first is handed over.

    `frames` are in coding order: type, place in the order of display, and when it is handed to the sender.
    """

def video_fates(
    frames: Sequence[tuple[str, int, float]],
    packet_frames: Sequence[int],
    arrivals_ms: Sequence[float | None],
    deadline_ms: float,
) -> list[tuple[str, float | None]]:
    """The fate of each frame in coding order, and when it was complete.

    `packet_frames` has the frame of each packet, `arrivals_ms` when it arrived, or `None` if it did not.
    """

def video_measures(
    frames: Sequence[tuple[str, int, float]],
    fates: Sequence[tuple[str, float | None]],
) -> str:
    """The measures of delivery as JSON, as runs have them: of frames, the fate of each, and when it was complete."""

def policy_sources() -> str:
    """The sources of what lies between policies in Python and the engine."""

# What policies in Python see and answer. `anabranch.policy` has them.

_State = Literal["unconfirmed", "active", "potentially-failed", "inactive"]
_Refusal = Literal["state", "window-full", "in-flight-cap", "paced", "burst", "buffer-share"]
_Limiter = Literal["window", "pacing", "peer-window", "scheduler", "application"]
_LossCause = Literal["fast-retransmit", "timeout", "rescheduled"]

@final
class PathFacts:
    """What is known of one path."""

    @property
    def id(self) -> int:
        """Its place in `View.paths`."""
    @property
    def state(self) -> _State: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def primary(self) -> bool: ...
    @property
    def ipv6(self) -> bool: ...
    @property
    def error_count(self) -> int: ...
    @property
    def potentially_failed_since_s(self) -> float | None: ...
    @property
    def cwnd_bytes(self) -> int: ...
    @property
    def ssthresh_bytes(self) -> int: ...
    @property
    def partial_bytes_acked(self) -> int: ...
    @property
    def pacing_rate_kbps(self) -> float | None:
        """The rate of chunk bytes at which packets leave; `None` where windows alone decide."""
    @property
    def in_flight_cap_bytes(self) -> int | None:
        """The most that may be in flight beside the window."""
    @property
    def paced_until_s(self) -> float | None:
        """When the next packet may leave at that rate; `None` if that is now."""
    @property
    def in_flight_bytes(self) -> int:
        """Sent, and neither acknowledged nor declared lost."""
    @property
    def outstanding_bytes(self) -> int:
        """What counts against the window for new data."""
    @property
    def lost_unsent_bytes(self) -> int: ...
    @property
    def bound_bytes(self) -> int: ...
    @property
    def held_bytes(self) -> int: ...
    @property
    def within_share(self) -> bool: ...
    @property
    def last_sent_at_s(self) -> float | None: ...
    @property
    def latest_rtt_ms(self) -> float | None: ...
    @property
    def min_rtt_ms(self) -> float | None: ...
    @property
    def smoothed_rtt_ms(self) -> float | None: ...
    @property
    def rtt_variance_ms(self) -> float | None: ...
    @property
    def rto_ms(self) -> float: ...
    @property
    def largest_chunk_bytes(self) -> int: ...
    @property
    def recovery_point(self) -> int | None: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def lost_bytes(self) -> int: ...
    @property
    def delivered_bytes(self) -> int: ...
    @property
    def recent_min_rtt_ms(self) -> float | None:
        """The least of the last seconds, from chunks sent once and acknowledged on this path."""
    @property
    def delivery_rate_kbps(self) -> float | None: ...
    @property
    def delivery(self) -> DeliverySample | None:
        """The latest sample of how fast the path delivers."""
    @property
    def limiter(self) -> _Limiter:
        """What kept the path from sending more as the latest send opportunity ended."""
    @property
    def bottleneck_rate_kbps(self) -> float | None:
        """The estimator's, where the scheme has one that publishes it; so are the next two."""
    @property
    def propagation_ms(self) -> float | None: ...
    @property
    def queueing_ms(self) -> float | None: ...
    @property
    def exempt_packets(self) -> int: ...
    @property
    def burst_left(self) -> int | None:
        """Packets of new data that may still leave in this opportunity; `None` if there is no limit."""
    @property
    def resend_burst_left(self) -> int | None: ...
    @property
    def loss_rate(self) -> float | None: ...
    @property
    def seconds_per_byte(self) -> float | None: ...
    @property
    def withdrawn(self) -> bool: ...
    @property
    def admits_retransmission(self) -> bool: ...
    @property
    def refusal(self) -> _Refusal | None:
        """Why it cannot take new data now; `None` if it can."""

@final
class AssociationFacts:
    """What is known of the association."""

    @property
    def queued_bytes(self) -> int: ...
    @property
    def peer_window_bytes(self) -> int: ...
    @property
    def peer_window_advertised_bytes(self) -> int: ...
    @property
    def peer_window_initial_bytes(self) -> int: ...
    @property
    def send_buffer_free_bytes(self) -> int | None: ...
    @property
    def send_buffer_limit_bytes(self) -> int | None: ...
    @property
    def last_new_data_path(self) -> int | None: ...
    @property
    def head_of_line(self) -> HeadOfLine | None: ...
    @property
    def cumulative_tsn(self) -> int: ...

@final
class HeadOfLine:
    """The chunk that holds the cumulative TSN back."""

    @property
    def tsn(self) -> int: ...
    @property
    def chunk_bytes(self) -> int: ...
    @property
    def path(self) -> int: ...
    @property
    def in_flight_on(self) -> list[int]: ...
    @property
    def sent_at_s(self) -> float | None: ...
    @property
    def transmissions(self) -> int: ...

@final
class View:
    """Everything that a policy may look at when it decides: a copy, which it may keep."""

    @property
    def now_s(self) -> float: ...
    @property
    def paths(self) -> tuple[PathFacts, ...]:
        """All paths, those too that are full or out of service; the id of a path is its place."""
    @property
    def association(self) -> AssociationFacts: ...
    def path(self, path: PathFacts | int) -> PathFacts: ...
    def refusal(self, path: PathFacts | int) -> _Refusal | None:
        """Why a path cannot take new data now; `None` if it can."""

    def outstanding_bytes(self, path: PathFacts | int) -> int: ...
    def active(self) -> tuple[PathFacts, ...]: ...
    def ready(self) -> tuple[PathFacts, ...]:
        """The paths that can take new data now."""

@final
class SendAsk:
    """The packet that a scheduler is asked to place."""

    @property
    def chunk_bytes(self) -> int: ...
    @property
    def window_probe(self) -> bool:
        """Whether the peer's window is too small for it, and it goes as a probe."""

@final
class LostChunk:
    """A lost chunk that waits for its retransmission."""

    @property
    def tsn(self) -> int: ...
    @property
    def chunk_bytes(self) -> int: ...
    @property
    def path(self) -> int:
        """The path that it was lost on."""
    @property
    def cause(self) -> _LossCause: ...

@final
class Window:
    """A path's congestion window, its slow-start threshold, and the bytes acknowledged toward its next step."""

    def __new__(cls, cwnd_bytes: float, ssthresh_bytes: float, partial_bytes_acked: float = 0.0) -> Window: ...
    @property
    def cwnd_bytes(self) -> int: ...
    @property
    def ssthresh_bytes(self) -> int: ...
    @property
    def partial_bytes_acked(self) -> int: ...
    def replace(
        self,
        *,
        cwnd_bytes: float | None = None,
        ssthresh_bytes: float | None = None,
        partial_bytes_acked: float | None = None,
    ) -> Window:
        """The same with other values."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Acknowledged:
    """Acknowledgements let a path's window grow."""

    @property
    def path(self) -> int: ...
    @property
    def acked_bytes(self) -> int:
        """Bytes that this SACK newly acknowledged on the path."""
    @property
    def slow_start_limit_bytes(self) -> int:
        """The most that this SACK may add in slow start."""
    @property
    def window(self) -> Window: ...
    @property
    def windows(self) -> list[Window]:
        """Those of all paths."""

@final
class Pacing:
    """What limits a path beside its window: a rate of chunk bytes, and a cap on what is in flight."""

    def __new__(cls, *, rate_kbps: float | None = None, in_flight_cap_bytes: float | None = None) -> Pacing: ...
    @property
    def rate_kbps(self) -> float | None: ...
    @property
    def in_flight_cap_bytes(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class DeliverySample:
    """What a SACK told of the rate at which a path delivers, from the newest chunk acknowledged that was sent once."""

    @property
    def rate_kbps(self) -> float | None:
        """`None` if acknowledgements were held up and came together."""
    @property
    def delivered_bytes(self) -> int:
        """What the path has delivered since that chunk left, itself included."""
    @property
    def interval_ms(self) -> float:
        """The longer of the times in which those bytes were sent and acknowledged."""
    @property
    def rtt_ms(self) -> float | None:
        """`None` if the SACK came back on another path."""
    @property
    def sent_at_s(self) -> float: ...
    @property
    def delivered_before_bytes(self) -> int:
        """What the path had delivered when the chunk left."""
    @property
    def in_flight_bytes(self) -> int:
        """What was in flight on the path then, the chunk included."""
    @property
    def lost_bytes(self) -> int:
        """What was declared lost on the path since then."""
    @property
    def limiter(self) -> _Limiter:
        """What limited sending when the chunk left."""

@final
class PaceAsk:
    """A path whose pacing is asked about."""

    @property
    def path(self) -> int: ...
    @property
    def window(self) -> Window:
        """The path's, after what has just happened."""
    @property
    def windows(self) -> list[Window]:
        """Those of all paths."""

@final
class PathLoss:
    """A loss that a path's window answers."""

    @property
    def path(self) -> int: ...
    @property
    def cause(self) -> _LossCause: ...
    @property
    def window(self) -> Window: ...
    @property
    def windows(self) -> list[Window]: ...

@final
class PolicyEvent:
    """An event of the association. What it does not have is `None`."""

    @property
    def kind(self) -> str:
        """Core's name of it, such as `sent`, `acked`, `lost`, `loss-event` or `rtt-sample`."""
    @property
    def path(self) -> int | None: ...
    @property
    def tsn(self) -> int | None: ...
    @property
    def chunk_bytes(self) -> int | None: ...
    @property
    def rtt_ms(self) -> float | None: ...
    @property
    def sent_at_s(self) -> float | None: ...
    @property
    def cause(self) -> str | None:
        """Of a loss, what found it; of `sent`, the kind of transmission."""
    @property
    def state(self) -> _State | None: ...

@final
class Wait:
    """Waits: until a window has room, for a path, or until a time, at which a send opportunity opens."""

    def __new__(cls, *, path: PathFacts | int | None = None, until_s: float | None = None) -> Wait: ...

@final
class Copies:
    """A packet of new data on several paths at once."""

    def __new__(cls, paths: Iterable[PathFacts | int]) -> Copies: ...

@final
class Bind:
    """A chunk in a path's queue, where it waits for room in the path's window."""

    def __new__(cls, path: PathFacts | int) -> Bind: ...

@final
class Decision:
    """An answer with its reason: a fixed text, and the figure that decided with its unit in its name."""

    def __new__(cls, choice: object, rule: str, figure: str = "", value: float = 0.0) -> Decision: ...

def command(arguments: Sequence[str]) -> int:
    """Runs the native command with these arguments, of which the first names the program, and gives its exit status.

    It takes Ctrl-C over as the native program does: Python does not see it from then on.
    """

def python_commands() -> list[str]:
    """The names of the commands that the Python package carries out itself."""

def built_in_files(name: str) -> list[tuple[str, str]] | None:
    """Names and texts of the files of a built-in scenario or plan, as `anabranch init` writes them, that one first.

    `None` if there is none of this name.
    """

def built_in_names() -> list[str]:
    """The names of the built-in scenarios and plans."""

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
    def peer_key(self) -> str | None: ...
    @property
    def streams(self) -> int: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def supports_partial_reliability(self) -> bool: ...
    def send(
        self,
        payload: bytes,
        stream: int,
        ordered: bool,
        ppid: int,
        limit: tuple[int | None, float | None, int | None],
        context: int,
    ) -> Operation[None]:
        """`limit`: retransmissions, seconds of lifetime, number of a priority; one of them at most is given."""

    def recv(self) -> Operation[tuple[bytes, int, bool, int, bool, bool] | None]:
        """Payload, stream, `ordered`, PPID, `True` for the first part of a message, `True` for the last part."""

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
