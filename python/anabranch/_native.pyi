"""Native module: scenarios, runs and the command.

Its functions take and return text and numbers; the package's own modules convert them to objects.
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
    "Scenario",
    "ScenarioError",
    "ScenarioText",
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
    "read_link",
    "read_rates",
    "resolve",
    "run_batch",
    "run_label",
    "schemes_of",
    "video_due_ms",
    "video_fates",
    "video_measures",
]

class AnabranchError(Exception):
    """Base class of the exceptions of this package."""

class ScenarioError(AnabranchError):
    """A scenario cannot be read or is invalid.

    The message has every fault with its place and a remedy.
    """

class SchemeError(AnabranchError):
    """A scheme expression is invalid."""

class RunError(AnabranchError):
    """A run could not be made: a file that a flow sends cannot be read, or a trace cannot be written."""

def engine() -> dict[str, str]:
    """Returns `version`, `commit` and `fingerprint` of the engine. See `anabranch.version.Engine`."""

def resolve(text: str, file: str, values: Sequence[tuple[str, str]] = ...) -> str:
    """Returns a scenario with these values as canonical TOML with all defaults.

    Each value is a key such as `path.path-1.loss` with a TOML literal. Text that is not TOML counts as a string. `file`
    names the scenario in messages. Raises `ScenarioError`.
    """

def read_link(line: str, option: str, default_name: str) -> dict[str, Any]:
    """Returns the table of a path from a line such as `rate=10Mbit,delay=45ms`, with the keys of `Link`.

    `option` names the line in messages. Raises `ScenarioError`.
    """

def schemes_of(text: str, file: str, expressions: str) -> list[str]:
    """Returns the full expression of each scheme in a list such as `sctp,cmt(trigger=4)` or `all`, each once.

    Raises `ScenarioError` and `SchemeError`.
    """

def cards() -> str:
    """Returns every scheme and component as JSON, as `anabranch schemes --json` prints it."""

@final
class ScenarioText:
    """Text of a scenario file in TOML, which may lack values that a reader adds."""

    def __new__(cls, text: str, file: str) -> ScenarioText:
        """Parses text. `file` names it in messages. Raises `ScenarioError`."""

    def read(self, values: Sequence[tuple[str, str]]) -> Scenario:
        """Returns the scenario with these values, as `Scenario` does."""

@final
class Scenario:
    """Scenario with all defaults. The text is parsed once for all values, sweeps and runs."""

    def __new__(cls, text: str, file: str, values: Sequence[tuple[str, str]] = ...) -> Scenario:
        """Reads the text of a scenario.

        Each value is a key such as `path.path-1.loss` with a TOML literal. Text that is not TOML counts as a string.
        `file` names the scenario in messages. Raises `ScenarioError`.
        """

    def with_values(self, values: Sequence[tuple[str, str]]) -> Scenario:
        """Returns the scenario with more values. Raises `ScenarioError`."""

    def table(self) -> dict[str, Any]:
        """Returns the given keys as a dictionary."""

    def to_toml(self) -> str:
        """Returns the scenario as canonical TOML."""

    def schemes_of(self, expressions: str) -> list[str]:
        """Returns the full expression of each scheme in a list such as `sctp,cmt(trigger=4)` or `all`, each once.

        Raises `SchemeError`.
        """

    @property
    def schemes(self) -> list[str]:
        """Schemes to run, as given in the scenario."""

    @property
    def seeds(self) -> list[int]:
        """The seeds to run."""

    @property
    def files(self) -> list[tuple[str, str]]:
        """Files that flows send: the key of each, and the path as given in the scenario."""

    @property
    def makes_content(self) -> bool:
        """Returns `True` if a flow sends a file, whose made content depends on the seed."""

@final
class Prepared:
    """A scenario with a scheme, read and checked once for runs with any seed.

    It cannot be pickled: what goes to another process is the text it was made from.
    """

    def __new__(
        cls,
        scenario: Scenario | str,
        scheme: str,
        folder: str | PathLike[str] = ...,
        file: str = "scenario",
        own: tuple[str, Callable[[int, int], object], Sequence[str]] | None = None,
    ) -> Prepared:
        """Reads a scenario, which may be text, with the scheme of flows that name none.

        Files that flows send are looked for in `folder`, by default the working folder; `file` names the scenario in
        messages. With `own`, policies in Python take the place of some of the scheme's: a name for the results, a
        function that makes the object of an association from the run's seed and the association's number, and the
        methods that the object has. Raises `ScenarioError`, `SchemeError`, and `RunError` if such a file cannot be
        read.
        """

    @property
    def scheme(self) -> str:
        """Name of the scheme in results."""

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
    """Makes runs on native threads, each given as a prepared scenario and a seed (0 to 2**64 - 1).

    It uses `threads` threads, by default one per processor, without the interpreter's lock. `trace` and `pcap` are
    folders for the traces and captures of the runs. `digest` adds a SHA-256 over all events of a run, at about the cost
    of the run itself. Neither runs nor results are stored.

    `done` is called in this thread as each run finishes, in any order, with the index of its job and one JSON object,
    as `anabranch run --json` prints it. Runs wait if it is slower.

    In the main thread, raises `KeyboardInterrupt` within a fraction of a second of Ctrl-C: runs under way are
    abandoned, and finished ones are passed to `done` first. If Ctrl-C interrupts `done`, that call is repeated. Other
    exceptions of `done` end the batch at once. Raises `RunError`, `ScenarioError` and `SchemeError` for a run that
    cannot be made. No further run is then started, and those under way are passed to `done` first.

    `tables` selects the traces to write: `paths`, `decisions`, `packets`, `queues` (default: all). `until_s` ends runs
    early, if the traces are not needed beyond that time.

    Runs with policies in Python are made in this thread, one after the other, after the others. Exceptions of a policy
    are raised here.
    """

def run_label(scheme: str, seed: int) -> str:
    """Returns the common name of the output files of a run with this scheme and seed."""

def video_due_ms(frames: Sequence[tuple[str, int, float]], deadline_ms: float) -> list[float]:
    """Returns the time at which each frame is due, in milliseconds from the first hand-over.

    `frames` are in coding order: type, place in the order of display, and time of the hand-over to the sender.
    """

def video_fates(
    frames: Sequence[tuple[str, int, float]],
    packet_frames: Sequence[int],
    arrivals_ms: Sequence[float | None],
    deadline_ms: float,
) -> list[tuple[str, float | None]]:
    """Returns the fate of each frame in coding order, and the time at which it was complete.

    `packet_frames` has the frame of each packet, `arrivals_ms` its time of arrival, or `None` if it did not arrive.
    """

def video_measures(
    frames: Sequence[tuple[str, int, float]],
    fates: Sequence[tuple[str, float | None]],
) -> str:
    """Returns the measures of delivery of runs as JSON, from frames with their fates and times of completion."""

def policy_sources() -> str:
    """Returns the sources of the code between policies in Python and the engine."""

# Inputs and decisions of policies in Python. `anabranch.policy` exports them.

_State = Literal["unconfirmed", "active", "potentially-failed", "inactive"]
_Refusal = Literal["state", "window-full", "in-flight-cap", "paced", "burst", "buffer-share"]
_Limiter = Literal["window", "pacing", "peer-window", "scheduler", "application"]
_LossCause = Literal["fast-retransmit", "timeout", "rescheduled"]

@final
class PathFacts:
    """State of one path."""

    @property
    def id(self) -> int:
        """Its position in `View.paths`."""
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
        """Pacing rate of chunk bytes; `None` without pacing."""
    @property
    def in_flight_cap_bytes(self) -> int | None:
        """Maximum number of bytes in flight beside the window."""
    @property
    def paced_until_s(self) -> float | None:
        """Time at which pacing allows the next packet; `None` if it allows one now."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes that were sent, and neither acknowledged nor declared lost."""
    @property
    def outstanding_bytes(self) -> int:
        """Bytes that count against the window for new data."""
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
        """Minimum of the last seconds, from chunks sent once and acknowledged on this path."""
    @property
    def delivery_rate_kbps(self) -> float | None: ...
    @property
    def delivery(self) -> DeliverySample | None:
        """Latest sample of the path's delivery rate."""
    @property
    def limiter(self) -> _Limiter:
        """Limit that ended the latest send opportunity on the path."""
    @property
    def bottleneck_rate_kbps(self) -> float | None:
        """Estimated rate of the path's bottleneck, if the scheme's estimator publishes one."""
    @property
    def propagation_ms(self) -> float | None: ...
    @property
    def queueing_ms(self) -> float | None: ...
    @property
    def exempt_packets(self) -> int: ...
    @property
    def burst_left(self) -> int | None:
        """Packets of new data that may still be sent in this opportunity; `None` if there is no limit."""
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
        """Reason why the path cannot take new data now; `None` if it can."""

@final
class AssociationFacts:
    """State of the association."""

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
    """Chunk that blocks the cumulative TSN."""

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
    """Input of a policy's decision: a copy, which the policy may store."""

    @property
    def now_s(self) -> float: ...
    @property
    def paths(self) -> tuple[PathFacts, ...]:
        """All paths, including full ones and those out of service. The id of a path is its position."""
    @property
    def association(self) -> AssociationFacts: ...
    def path(self, path: PathFacts | int) -> PathFacts: ...
    def refusal(self, path: PathFacts | int) -> _Refusal | None:
        """Returns the reason why a path cannot take new data now; `None` if it can."""

    def outstanding_bytes(self, path: PathFacts | int) -> int: ...
    def active(self) -> tuple[PathFacts, ...]: ...
    def ready(self) -> tuple[PathFacts, ...]:
        """Returns the paths that can take new data now."""

@final
class SendAsk:
    """Packet that the scheduler has to place."""

    @property
    def chunk_bytes(self) -> int: ...
    @property
    def window_probe(self) -> bool:
        """`True` if the packet exceeds the peer's window, and is sent as a window probe."""
    @property
    def duplicate(self) -> bool:
        """`True` if the application asks for a copy on a second path."""

@final
class LostChunk:
    """Lost chunk that waits to be retransmitted."""

    @property
    def tsn(self) -> int: ...
    @property
    def chunk_bytes(self) -> int: ...
    @property
    def path(self) -> int:
        """Path on which the chunk was lost."""
    @property
    def cause(self) -> _LossCause: ...

@final
class Window:
    """Congestion window of a path, its slow-start threshold, and the bytes acknowledged toward its next step."""

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
        """Returns a copy with other values."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Acknowledged:
    """Acknowledgements that let a path's window grow."""

    @property
    def path(self) -> int: ...
    @property
    def acked_bytes(self) -> int:
        """Bytes that this SACK newly acknowledged on the path."""
    @property
    def slow_start_limit_bytes(self) -> int:
        """Maximum number of bytes that this SACK may add in slow start."""
    @property
    def window(self) -> Window: ...
    @property
    def windows(self) -> list[Window]:
        """Windows of all paths."""

@final
class Pacing:
    """Limits of a path beside its window: a rate of chunk bytes, and a cap on bytes in flight."""

    def __new__(cls, *, rate_kbps: float | None = None, in_flight_cap_bytes: float | None = None) -> Pacing: ...
    @property
    def rate_kbps(self) -> float | None: ...
    @property
    def in_flight_cap_bytes(self) -> int | None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class DeliverySample:
    """Sample of a path's delivery rate by a SACK, from the newest acknowledged chunk that was sent once."""

    @property
    def rate_kbps(self) -> float | None:
        """Delivery rate; `None` if acknowledgements were delayed and arrived together."""
    @property
    def delivered_bytes(self) -> int:
        """Bytes that the path has delivered since that chunk was sent, including the chunk."""
    @property
    def interval_ms(self) -> float:
        """Longer of the times in which those bytes were sent and acknowledged."""
    @property
    def rtt_ms(self) -> float | None:
        """Round-trip time; `None` if the SACK returned on another path."""
    @property
    def sent_at_s(self) -> float: ...
    @property
    def delivered_before_bytes(self) -> int:
        """Bytes that the path had delivered when the chunk was sent."""
    @property
    def in_flight_bytes(self) -> int:
        """Bytes in flight on the path at that time, including the chunk."""
    @property
    def lost_bytes(self) -> int:
        """Bytes declared lost on the path since that time."""
    @property
    def limiter(self) -> _Limiter:
        """Limit of sending when the chunk was sent."""

@final
class PaceAsk:
    """Path whose pacing is requested."""

    @property
    def path(self) -> int: ...
    @property
    def window(self) -> Window:
        """Window of the path, after the event."""
    @property
    def windows(self) -> list[Window]:
        """Windows of all paths."""

@final
class PathLoss:
    """Loss that reduces a path's window."""

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
    """Event of the association. Properties that it lacks are `None`."""

    @property
    def kind(self) -> str:
        """Name of the event in core, such as `sent`, `acked`, `lost`, `loss-event` or `rtt-sample`."""
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
        """For a loss, its detection; for `sent`, the kind of transmission."""
    @property
    def state(self) -> _State | None: ...

@final
class Wait:
    """Decision to wait: until a window has room, for a path, or until a time, at which a send opportunity opens."""

    def __new__(cls, *, path: PathFacts | int | None = None, until_s: float | None = None) -> Wait: ...

@final
class Copies:
    """Decision to send a packet of new data on several paths at once."""

    def __new__(cls, paths: Iterable[PathFacts | int]) -> Copies: ...

@final
class Bind:
    """Decision to put a chunk into a path's queue, where it waits for room in the path's window."""

    def __new__(cls, path: PathFacts | int) -> Bind: ...

@final
class Decision:
    """Decision with its reason: a fixed text, and the deciding figure, whose name contains the unit."""

    def __new__(cls, choice: object, rule: str, figure: str = "", value: float = 0.0) -> Decision: ...

def command(arguments: Sequence[str]) -> int:
    """Runs the native command with these arguments, the first of which names the program. Returns its exit status.

    It handles Ctrl-C as the native program does: Python does not receive it from then on.
    """

def python_commands() -> list[str]:
    """Returns the names of the commands that the Python package implements."""

def read_rates(
    file: str | PathLike[str],
    step_s: float,
    column: str | None = None,
    time: str | None = None,
    unit: str | None = None,
) -> list[float]:
    """Returns the mean rates of equal steps of a trace, in Mbit/s.

    The file is one of Mahimahi, or a table with a `time` in seconds and rates in `column`. Raises `AnabranchError` if
    it cannot be read, and `ValueError` for an unknown unit.
    """

def built_in_files(name: str) -> list[tuple[str, str]] | None:
    """Returns names and texts of the files of a built-in scenario or plan, itself first, as in `anabranch init`.

    Returns `None` if there is none of this name.
    """

def built_in_names() -> list[str]:
    """Returns the names of the built-in scenarios and plans."""

# Associations over real sockets. `anabranch.transfer` converts their results to objects.

_T = TypeVar("_T")

@final
class WakePipe:
    """Pipe that an event loop watches, and the numbers of operations to poll again."""

    def __new__(cls) -> WakePipe: ...
    def fileno(self) -> int: ...
    def drain(self) -> list[int]:
        """Returns the numbers of the operations woken since the last call, maybe with duplicates."""

@final
class Operation(Generic[_T]):
    """Operation that takes time. Poll it in the thread of the event loop."""

    def poll(self, pipe: WakePipe, number: int) -> tuple[_T] | None:
        """Returns the result in a tuple, or `None` if it is not ready. The pipe then announces `number` when it is."""

    def cancel(self) -> None:
        """Cancels the operation before it has an effect."""

@final
class Association:
    """Association that is aborted when this object is dropped, unless it has been shut down."""

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
        """`limit`: retransmissions, seconds of lifetime, number of a priority; a priority excludes the others."""

    def recv(self) -> Operation[tuple[bytes, int, bool, int, bool, bool] | None]:
        """Payload, stream, `ordered`, PPID, `True` for the first part of a message, `True` for the last part."""

    def shutdown(self) -> Operation[None]: ...
    def closed(self) -> Operation[None]: ...
    def abort(self) -> None: ...
    def leave(self, gracefully: bool) -> Operation[None]:
        """Ends the association and frees its resources. Messages of the peer are discarded meanwhile."""

    def paths(self) -> Operation[list[dict[str, Any]]]: ...
    def statistics(self) -> Operation[dict[str, Any]]: ...
    def events(self) -> Events: ...
    def add_path(self, local: str, remote: str) -> Operation[int]: ...
    def remove_path(self, path: int) -> Operation[None]: ...

@final
class Events:
    """Events of an association since this object was made."""

    def next(self) -> Operation[dict[str, Any] | None]: ...

@final
class Listener:
    """Listener that accepts associations until it is closed or dropped."""

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
    """Aborts all associations with an ABORT to each peer, and waits briefly for the transmission."""

def forget_runtime() -> None:
    """Leaves the threads of all hosts to the parent process after a fork."""
