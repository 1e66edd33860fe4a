"""One run of a scenario, and its figures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Literal, overload

from anabranch import _native
from anabranch._native import RunError, SchemeError
from anabranch.errors import SweepError
from anabranch.policy.python_scheme import PythonScheme, SchemeLike, resolve_scheme
from anabranch.results.delivery import delivery_figures
from anabranch.scenario import Scenario, load
from anabranch.values import whole_number

if TYPE_CHECKING:
    import pandas

    from anabranch.policy.slots import Policy
    from anabranch.results import Results
    from anabranch.series import Series

# Bounds of `--snaplen`.
_MIN_SNAPLEN = 64
_LARGEST_SNAPLEN = 2**32 - 1
LARGEST_SEED = 2**63 - 1
"""Largest seed in scenario files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """Figures of one path of a run, over all flows, in the direction of the data."""

    name: str
    data_packets: int
    """Number of received packets with DATA."""
    bytes: int
    """Wire bytes of these packets."""
    drops: int
    """Number of dropped packets with DATA."""
    sent_packets: int
    """Number of sent packets with DATA."""
    share: float
    """Share of the path in the received packets with DATA, from 0 to 1."""
    delay_ms: float | None = None
    """Mean delay of packets with DATA from host to host, if `run.delays` asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDelays:
    """Delays of small messages beside a bulk flow: `[flow.messages]` of a scenario."""

    sent: int
    """Number of messages that were due after the warm-up."""
    delivered: int
    """Number of these messages that were delivered."""
    median_ms: float | None
    """Median time from when a message was due to its delivery."""
    p99_ms: float | None
    """99th percentile of the same time."""
    max_ms: float | None
    """Maximum of the same time."""
    queue_p99_ms: float | None
    """99th percentile of the time from when a message was due to its first packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionResult:
    """Figures of one program of a forward flow: a connection, or its datagrams."""

    name: str
    """`download-N`, or the key of the scenario."""
    goodput_kbps: float
    """Goodput after the warm-up, of complete requests and responses."""
    sent: int
    """Number of requests or datagrams that were due after the warm-up; 0 for a download."""
    completed: int
    """Number of these that were answered, or arrived."""
    median_ms: float | None
    """Median time from when a request was due to the end of its response, or a datagram to its arrival."""
    p99_ms: float | None
    """99th percentile of the same time."""
    max_ms: float | None
    """Maximum of the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResult:
    """Figures of one flow of a run."""

    name: str
    scheme: str
    goodput_kbps: float
    delivered_bytes: int
    """User bytes delivered."""
    transfer_s: float | None
    """For a transfer: seconds from its start to its last byte, in the direction of the transfer."""
    intact: bool | None
    """For a transfer: `True` if the received data has the hash of the sent data."""
    sha256: str | None
    """For a transfer: SHA-256 of the received data."""
    failure: str | None
    """Failure of its association, if it was not shut down gracefully."""
    message_delays: MessageDelays | None = None
    """Delays of the small messages beside the bulk, if it has any."""
    connections: tuple[ConnectionResult, ...] = ()
    """Programs of a forward flow."""
    abandoned: Mapping[str, int] | None = None
    """Counts of abandoned messages, for messages with a limit."""
    video: Mapping[str, Any] | None = None
    """Figures of its frames, for a video."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Run:
    """One run and its figures. Two runs are equal if scenario, scheme, seed and all figures are.

    `metrics` has numbers by name, with units in the names: `goodput_kbps`, `duration_s`, `retransmissions`, `timeouts`,
    `heartbeat_timeouts`, `fast_retransmits`, `spurious_retransmissions`, `peak_reorder_bytes`, `rwnd_blocked_s`, and
    `jain_index` if there are several flows. The book's chapter "Figures of a run" defines each.
    """

    scenario: Scenario
    scheme: str
    """Name of the scheme in results."""
    seed: int
    profile: str
    goodput_counts: Literal["delivered", "chunk-arrivals"]
    """Unit of goodput: user bytes delivered, or as in ns-2 every new chunk that arrived."""
    metrics: dict[str, float]
    paths: tuple[PathResult, ...]
    flows: tuple[FlowResult, ...]
    failure: str | None = None
    """First failure of a flow; `None` if there is none."""
    digest: str | None = None
    """SHA-256 over every delivered packet with its time and place, if requested."""
    trace: FilePath | None = field(default=None, compare=False)
    """Folder of its traces, if requested."""
    pcap: FilePath | None = field(default=None, compare=False)
    """File of its capture, if requested."""
    policy: Policy | None = field(default=None, compare=False)
    """Scheme object of the run, if its policies are in Python."""

    @cached_property
    def series(self) -> Series:
        """Traces of the run.

        If `trace` was not given, the run is repeated into a temporary folder, which exists as long as the run or its
        series.

        Raises `RunError` if the repeated run differs, for example because a file that a flow sends has changed.
        """
        from anabranch.series import Series, TemporaryFolder

        if self.trace is not None:
            return Series(self.trace)
        folder = TemporaryFolder()
        scheme = self.policy or (None if has_all_schemes(self.scenario) else self.scheme)
        again = run(self.scenario, scheme, self.seed, trace=folder.path)
        if (again.metrics, again.paths, again.flows) != (self.metrics, self.paths, self.flows):
            name = self.scenario.name
            raise RunError(f"{name}: the run was not the same again: has a file that a flow sends changed?")
        return Series(folder.path, keep=folder)

    def to_pandas(self, table: Literal["runs", "paths", "flows"] = "runs") -> pandas.DataFrame:
        """Returns a tidy table: `runs` with one row of all metrics, `paths` or `flows` with a row for each."""
        import pandas

        about = {"scheme": self.scheme, "seed": self.seed}
        rows: list[dict[str, Any]]
        if table == "runs":
            metrics = {**self.metrics, "jain_index": self.metrics.get("jain_index"), "failure": self.failure}
            rows = [{**about, "profile": self.profile, **metrics}]
        elif table == "paths":
            rows = [{**about, "path": path.name, **without_name(path)} for path in self.paths]
        elif table == "flows":
            rows = [{**about, "flow": flow.name, "flow_scheme": flow.scheme, **_flow_row(flow)} for flow in self.flows]
        else:
            raise ValueError(f"a run has the tables runs, paths and flows, not {table!r}")
        return pandas.DataFrame(rows)

    def __repr__(self) -> str:
        shown = {"scheme": self.scheme, "seed": self.seed, **self.metrics, "failure": self.failure}
        return f"Run({', '.join(f'{name}={value!r}' for name, value in shown.items() if value is not None)})"

    def _repr_html_(self) -> str:
        """Returns the view in a notebook: the metrics, then paths and flows."""
        tables = (self.to_pandas("runs"), self.to_pandas("paths"), self.to_pandas("flows"))
        return "\n".join(table.dropna(axis="columns").to_html(index=False) for table in tables)


def without_name(result: PathResult | FlowResult) -> dict[str, Any]:
    """Returns the figures of a path or a flow."""
    skipped = {"name", "scheme"} | {name for name in _OPTIONAL if getattr(result, name, None) is None}
    return {name: value for name, value in asdict(result).items() if name not in skipped}


_OPTIONAL = ("delay_ms", "message_delays")
"""Figures that a scenario has to request."""


def _flow_of(flow: Mapping[str, Any]) -> FlowResult:
    delays = flow.get("message_delays")
    connections = tuple(ConnectionResult(**each) for each in flow.get("connections", ()))
    message_delays = None if delays is None else MessageDelays(**delays)
    return FlowResult(**{**flow, "message_delays": message_delays, "connections": connections})


def _flow_row(flow: FlowResult) -> dict[str, Any]:
    """Returns the columns of a flow."""
    figures = without_name(flow)
    delays = figures.pop("message_delays", None) or {}
    connections = {
        f"{each['name'].replace('-', '_')}_{name}": value
        for each in figures.pop("connections")
        for name, value in each.items()
        if name != "name"
    }
    delivery = delivery_figures({"abandoned": figures.pop("abandoned"), "video": figures.pop("video")})
    return {**figures, **connections, **delivery, **{f"message_delays_{name}": value for name, value in delays.items()}}


def run_of(scenario: Scenario, result: Mapping[str, Any]) -> Run:
    """Returns the run of a result of the native module, which `anabranch run --json` prints."""
    numbers = {name: value for name, value in result.items() if type(value) in (int, float)}
    return Run(
        scenario=scenario,
        scheme=result["scheme"],
        seed=result["seed"],
        profile=result["profile"],
        goodput_counts=result["goodput_counts"],
        metrics={name: value for name, value in numbers.items() if name != "seed"},
        paths=tuple(PathResult(**path) for path in result["paths"]),
        flows=tuple(_flow_of(flow) for flow in result["flows"]),
        failure=result["failure"],
        digest=result.get("digest"),
    )


@overload
def run(
    scenario: Scenario | str | os.PathLike[str],
    scheme: SchemeLike | None = None,
    seed: int = 1,
    *,
    trace: str | os.PathLike[str] | None = None,
    pcap: str | os.PathLike[str] | None = None,
    snaplen: int | None = None,
    digest: bool = False,
) -> Run: ...
@overload
def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    schemes: Iterable[SchemeLike],
    seeds: int | Iterable[int] | None = None,
) -> Results: ...
@overload
def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    seeds: int | Iterable[int],
) -> Results: ...
def run(
    scenario: Scenario | str | os.PathLike[str],
    scheme: SchemeLike | None = None,
    seed: int = 1,
    *,
    schemes: Iterable[SchemeLike] | None = None,
    seeds: int | Iterable[int] | None = None,
    trace: str | os.PathLike[str] | None = None,
    pcap: str | os.PathLike[str] | None = None,
    snaplen: int | None = None,
    digest: bool = False,
) -> Run | Results:
    """Makes one run of a scenario, or with `schemes` or `seeds` one for each of them. Runs are deterministic.

    `scheme` is a name, an expression such as `"cmt(trigger=4)"`, or an object with policies in Python (see
    `anabranch.policy`); by default it is the scenario's only one. `trace` and `pcap` are folders for a folder of traces
    and a capture, each named after scheme and seed. `snaplen` is the number of bytes of each packet in the capture,
    from its IP header on (default 256, 0 for whole packets). `digest` requests a hash over all packets.

    >>> made = run("scenarios/two-path.toml", "cmt", seed=3)
    >>> made.metrics["duration_s"], [path.name for path in made.paths]
    (60.0, ['path-1', 'path-2'])

    If `schemes` (a list of such schemes) or `seeds` (a number or a list) is given, it returns `Results`, as `sweep`
    does at a single point. Cached runs are reused.

    Raises `ScenarioError` and `SchemeError` if scenario or scheme are invalid, and `RunError` if a file that a flow
    sends cannot be read, or a trace or capture cannot be written. Raises `KeyboardInterrupt` soon after Ctrl-C. An
    exception of a policy in Python ends the run and is passed on.
    """
    if schemes is not None or seeds is not None:
        if scheme is not None or seed != 1 or any((trace, pcap, snaplen, digest)):
            raise RunError(
                "`schemes` and `seeds` make many runs: `scheme`, `seed`, `trace`, `pcap`, `snaplen` and `digest` are "
                "for one"
            )
        return _comparison(scenario, schemes, seeds)
    scenario = load(scenario)
    seed = checked_seed(seed)
    chosen = resolve_scheme(only_scheme(scenario) if scheme is None else scheme)
    own = chosen if isinstance(chosen, PythonScheme) else None
    expression = own.base if own else str(chosen)
    prepared = _native.Prepared(
        scenario.native, expression, scenario.folder, scenario.name, own.native() if own else None
    )
    results: list[str] = []
    snaplen = _checked_snaplen(snaplen, pcap)
    _native.run_batch(
        [(prepared, seed)], lambda _, text: results.append(text), trace=trace, pcap=pcap, snaplen=snaplen, digest=digest
    )
    result = json.loads(results[0])
    made, name = run_of(scenario, result), result["label"]
    trace_folder = None if trace is None else FilePath(trace).absolute() / name
    capture = None if pcap is None else FilePath(pcap).absolute() / f"{name}.pcapng"
    return replace(made, trace=trace_folder, pcap=capture, policy=own.policy if own else None)


def _comparison(
    scenario: Scenario | str | os.PathLike[str],
    schemes: Iterable[SchemeLike] | None,
    seeds: int | Iterable[int] | None,
) -> Results:
    """Returns the runs of several schemes and seeds."""
    from anabranch.sweeps import sweep

    return sweep(scenario, None if schemes is None else {"scheme": schemes}, seeds)


def _checked_snaplen(snaplen: int | None, pcap: str | os.PathLike[str] | None) -> int | None:
    """Returns the bytes to keep of each packet. Raises `RunError` for an invalid length, or without a capture."""
    if snaplen is None:
        return None
    if pcap is None:
        raise RunError("`snaplen` has no effect without `pcap`, the folder of the capture")
    try:
        length = whole_number("snaplen", snaplen, least=0, most=_LARGEST_SNAPLEN)
    except SweepError as error:
        raise RunError(str(error)) from None
    if 0 < length < _MIN_SNAPLEN:
        raise RunError(f"`snaplen`: expected {_MIN_SNAPLEN} bytes or more, or 0 for whole packets, found {length}")
    return length


def checked_seed(seed: int) -> int:
    """Returns a seed as an int. NumPy's integers are allowed. Raises `RunError` for other values."""
    try:
        return whole_number("seed", seed, least=0, most=LARGEST_SEED)
    except SweepError:
        raise RunError(f"invalid seed {seed!r}: a seed is a whole number from 0 to {LARGEST_SEED}") from None


def only_scheme(scenario: Scenario) -> str:
    """Returns the scheme of a scenario that names only one; any if all of its flows have schemes of their own."""
    schemes = scenario.native.schemes_of(",".join(scenario.native.schemes))
    if len(schemes) == 1 or has_all_schemes(scenario):
        return schemes[0]
    raise SchemeError(
        f"{scenario.name} has {len(schemes)} schemes, and a run has one: "
        f"choose with scheme=, one of: {', '.join(schemes)}"
    )


def has_all_schemes(scenario: Scenario) -> bool:
    """Returns `True` if each flow has a scheme of its own, so that there is no choice."""
    return bool(scenario.flows) and all(flow.scheme is not None for flow in scenario.flows)
