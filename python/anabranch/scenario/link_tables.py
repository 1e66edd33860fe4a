"""Tables of scenario files as dataclasses.

Generated from `crates/scenario` by `UPDATE_EXPECT=1 cargo test -p anabranch-scenario`. Values are as in a file: text
with units, numbers, and `None` or `()` for keys that are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from anabranch.scenario.table import Table
from anabranch.scenario.tables import Handover


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Loss(Table):
    """Process that loses packets on a link."""

    model: Literal["bernoulli", "gilbert-elliott", "trace"]
    """Independent losses, a chain of a good and a bad state, or the packets in `lost`. Required."""
    rate: float | str | None = None
    """`bernoulli` only. Loss probability. Required."""
    p: float | str | None = None
    """`gilbert-elliott` only. Probability per packet of a change from the good to the bad state. A run
    starts in the good state. Required."""
    r: float | str | None = None
    """`gilbert-elliott` only. Probability per packet of a change from the bad to the good state; more than
    0. Required."""
    loss_good: float | str | None = None
    """`gilbert-elliott` only. Probability that a packet is lost in the good state. Default: `0.0`."""
    loss_bad: float | str | None = None
    """`gilbert-elliott` only. Probability that a packet is lost in the bad state. Default: `1.0`."""
    lost: Sequence[int] | None = None
    """`trace` only. Numbers of the lost packets, counted per flow on this link and direction; cross traffic
    loses none. Required."""
    where: Literal["before-queue", "after-queue"] | None = None
    """Before: a lost packet uses neither queue nor link. After: it uses both. Default: `"before-queue"`."""
    direction: Literal["forward", "reverse", "both"] | None = None
    """Not allowed inside `reverse`. Default: `"forward"`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Policer(Table):
    """Token bucket that drops packets above a rate before they reach the queue."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "rate": "Mbit/s",
        "burst": "KiB",
    }
    rate: str
    """Long-term rate, in bits on the wire. Required."""
    burst: str
    """Wire bytes that pass at once after a pause, at least `association.mtu`. With less than two packets
    the bucket overflows between packets, and the throughput is below `rate`. Required."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Jitter(Table):
    """Delay that is drawn for each packet and added to `delay`."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "most": "ms",
        "mean": "ms",
        "deviation": "ms",
        "round": "ms",
    }
    model: Literal["uniform", "normal", "retransmission"]
    """All delays up to `most` equally likely, a normal distribution cut off at 0 and at twice the mean, or
    retransmissions of the link layer. Required."""
    most: str | None = None
    """`uniform` only. The largest delay; uniform from 0. Required."""
    mean: str | None = None
    """`normal` only. Mean; the distribution is truncated at 0 and at twice the mean. Required."""
    deviation: str | None = None
    """`normal` only. Standard deviation before truncation. Required."""
    failure: float | str | None = None
    """`retransmission` only. Probability that an attempt fails. Default: `0.1`."""
    round: str | None = None
    """`retransmission` only. Time from an attempt to the next. Default: `"8 ms"`."""
    attempts: int | None = None
    """`retransmission` only. Largest number of retransmissions of a packet; the last one succeeds. Default:
    `3`."""
    order: Literal["kept", "free"] | None = None
    """`kept`: no packet overtakes another; one that would arrives with the packet before it, so the mean
    delay grows with the rate. `free`: packets may overtake each other. Default: `"kept"`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Aggregation(Table):
    """Transmission in batches, for which packets wait in the queue."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "period": "ms",
    }
    period: str
    """Longest wait of the first packet of a batch. Required."""
    packets: int | None = None
    """Size at which a batch starts without waiting; also its maximum. Default: no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Fading(Table):
    """Rayleigh channel whose signal-to-noise ratio determines the rate of a link."""

    snr: float
    """Mean signal-to-noise ratio in dB. Required."""
    doppler: float
    """Largest Doppler shift in Hz: the speed of the station over the wavelength. Required."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Queue(Table):
    """Queue of one direction of a link, with its discipline."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "limit": "packets",
        "target": "ms",
        "interval": "ms",
        "quantum": "B",
        "update": "ms",
        "burst": "ms",
        "mean_packet": "B",
    }
    limit: str | None = None
    """Limit of the queue, at which it drops arriving packets under each discipline. Default: `"50
    packets"`."""
    discipline: Literal["drop-tail", "codel", "fq-codel", "pie", "red"] | None = None
    """Rule by which packets are dropped before the queue is full. Default: `"drop-tail"`."""
    target: str | None = None
    """`codel` and `fq-codel` and `pie` only. Acceptable waiting time of a persistent queue; `"15 ms"` by
    default with `pie`. Default: `"5 ms"`."""
    interval: str | None = None
    """`codel` and `fq-codel` only. Time for which the waiting time exceeds the target before the first
    drop; longer than `target`. Default: `"100 ms"`."""
    flows: int | None = None
    """`fq-codel` only. Number of queues, onto which flows are hashed. Default: `1024`."""
    quantum: str | None = None
    """`fq-codel` only. Bytes that a flow sends in a round. Default: `"1514 B"`."""
    update: str | None = None
    """`pie` only. Time between two updates of the drop probability. Default: `"15 ms"`."""
    burst: str | None = None
    """`pie` only. Length of a burst that passes without drops. Default: `"150 ms"`."""
    min_packets: float | None = None
    """`red` only. Average queue in packets from which packets are dropped. Default: `5.0`."""
    max_packets: float | None = None
    """`red` only. Average queue in packets at which `probability` applies; more than `min_packets`.
    Default: `15.0`."""
    probability: float | str | None = None
    """`red` only. Drop probability at `max_packets`; more than 0. Default: `0.02`."""
    weight: float | str | None = None
    """`red` only. Weight of the current queue in the average; between 0 and 1. Default: `0.002`."""
    mean_packet: str | None = None
    """`pie` and `red` only. Mean size of a packet; `"1000 B"` by default with `pie`. Default: `"500 B"`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CapacityTrace(Table):
    """Trace of the capacity of a link: a file of Mahimahi, or a table of times and rates."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "step": "ms",
        "start": "s",
        "resample": "ms",
    }
    file: str
    """The file, relative to the folder of the scenario file. Required."""
    column: str | None = None
    """Name or number of the column with the values, in files with more than two columns. Default: the
    second."""
    time: str | None = None
    """Name or number of the column with the times. Default: the first."""
    time_unit: Literal["s", "ms"] | None = None
    """Unit of the times. Default: `"s"`."""
    step: str | None = None
    """Time that each line lasts, in files without times, which have one value per line unless `column`
    names one. Default: times are in the file."""
    start: str | None = None
    """Time in the trace at which the run starts. Traces that were recorded together stay simultaneous with
    the same `start`. Default: `"0 s"`."""
    repeat: bool | None = None
    """Start again after the end. Without it, a link with a capacity trace sends nothing after its end, and
    other values stay. Default: `true`."""
    scale: float | None = None
    """Factor of rates and delays, such as 0.5 for delays that were measured as round-trip times. Default:
    `1.0`."""
    unit: Literal["bit/s", "kbit/s", "Mbit/s", "B/s"] | None = None
    """Unit of the rates; not for files of Mahimahi. Default: as the column is named, or else `"Mbit/s"`."""
    resample: str | None = None
    """Use the mean rate of each such time. Default: as recorded."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SeriesTrace(Table):
    """Trace of the delay, the loss or the outages of a link: a table of times and values."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "step": "ms",
        "start": "s",
    }
    file: str
    """The file, relative to the folder of the scenario file. Required."""
    column: str | None = None
    """Name or number of the column with the values, in files with more than two columns. Default: the
    second."""
    time: str | None = None
    """Name or number of the column with the times. Default: the first."""
    time_unit: Literal["s", "ms"] | None = None
    """Unit of the times. Default: `"s"`."""
    step: str | None = None
    """Time that each line lasts, in files without times, which have one value per line unless `column`
    names one. Default: times are in the file."""
    start: str | None = None
    """Time in the trace at which the run starts. Traces that were recorded together stay simultaneous with
    the same `start`. Default: `"0 s"`."""
    repeat: bool | None = None
    """Start again after the end. Without it, a link with a capacity trace sends nothing after its end, and
    other values stay. Default: `true`."""
    scale: float | None = None
    """Factor of rates and delays, such as 0.5 for delays that were measured as round-trip times. Default:
    `1.0`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Reverse(Table):
    """Reverse direction of a link. Omitted `rate`, `delay`, `queue` and `outage_trace` are as forward;
    omitted impairments do not apply."""

    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "capacity": CapacityTrace,
        "delay_trace": SeriesTrace,
        "queue": Queue,
        "loss": Loss,
        "loss_trace": SeriesTrace,
        "outage_trace": SeriesTrace,
        "policer": Policer,
        "jitter": Jitter,
        "aggregation": Aggregation,
        "fading": Fading,
    }
    UNITS: ClassVar[Mapping[str, str]] = {
        "rate": "Mbit/s",
        "delay": "ms",
        "queue": "packets",
    }
    rate: str | None = None
    """Transmission rate. Default: required; in `reverse`, as forward."""
    capacity: str | CapacityTrace | None = None
    """Trace of the capacity, in place of `rate`. Default: `rate`."""
    delay: str | None = None
    """One-way propagation delay. Default: required; in `reverse`, as forward."""
    delay_trace: str | SeriesTrace | None = None
    """Trace of the delay in ms, in place of `delay`. Default: `delay`."""
    queue: str | Queue | None = None
    """Capacity of the queue, and with a table its discipline. In profile `ns2` the packet in transmission
    counts, in the others it does not. Default: `"50 packets"`; in `reverse`, as forward."""
    loss: float | str | Loss | Sequence[Loss] | None = None
    """Random loss, forward by default."""
    loss_trace: str | SeriesTrace | None = None
    """Trace of a loss probability, in place of `loss`; forward by default."""
    outage_trace: str | SeriesTrace | None = None
    """Trace with 1 while the link is up and 0 while it is down. Default: none; in `reverse`, as forward."""
    policer: Policer | None = None
    """Policer, of the forward direction by default."""
    jitter: str | Jitter | None = None
    """Random delay, forward by default."""
    aggregation: Aggregation | None = None
    """Transmission in batches, forward by default."""
    fading: Fading | None = None
    """Rate adaptation over a fading channel, forward by default; `rate` is the highest rate."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Background(Table):
    """Cross traffic on one link."""

    UNITS: ClassVar[Mapping[str, str]] = {
        "rate": "Mbit/s",
        "burst": "ms",
        "idle": "ms",
        "min_size": "B",
        "max_size": "B",
        "segment": "ms",
        "fragment": "B",
        "packet": "B",
        "start": "s",
        "stop": "s",
    }
    kind: Literal["cbr", "pareto", "poisson", "transfers", "video"]
    """Packets at a constant rate, on and off for Pareto-distributed times, or with exponential gaps.
    `transfers` and `video` react to losses: short transfers with Poisson arrivals, and segments at equal
    times. Required."""
    rate: str
    """Rate of one source, in bits on the wire; for `pareto` while it is on. For `transfers` and `video`,
    mean rate of user data. Required."""
    jitter: float | None = None
    """`cbr` only. Each gap varies by up to this fraction. Default: `0.5`."""
    burst: str | None = None
    """`pareto` only. Mean time on. Default: `"500 ms"`."""
    idle: str | None = None
    """`pareto` only. Mean time off. Default: `"500 ms"`."""
    shape: float | None = None
    """`pareto` and `transfers` only. Shape of the Pareto distributions, more than 1. Default: `1.5`."""
    min_size: str | None = None
    """`transfers` only. Smallest size of a transfer. Default: `"10 kB"`."""
    max_size: str | None = None
    """`transfers` only. Largest size of a transfer, more than `min_size`. Default: `"10 MB"`."""
    segment: str | None = None
    """`video` only. Time from one segment to the next. Default: `"2 s"`."""
    control: Literal["cubic", "newreno"] | None = None
    """`transfers` and `video` only. Congestion control. Default: `"cubic"`."""
    fragment: str | None = None
    """`pareto` only. Packets are split into pieces of at most this many wire bytes, sent back to back; at
    most `packet`. Default: not split."""
    packet: str | None = None
    """`cbr` and `pareto` and `poisson` only. Wire bytes of a packet. Required."""
    direction: Literal["forward", "reverse"] | None = None
    """The direction of the packets. Default: `"forward"`."""
    start: str | None = None
    """Time of the first packet. Default: `"100 ms"`."""
    stop: str | None = None
    """Time of the end, later than `start`. Default: with the run."""
    count: int | None = None
    """Number of such sources, each with its own random stream; at most 16 of `transfers` and `video`.
    Default: `1`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LinkEvent(Table):
    """Change of one link during a run. Omitted keys do not change."""

    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "loss": Loss,
    }
    UNITS: ClassVar[Mapping[str, str]] = {
        "at": "s",
        "rate": "Mbit/s",
        "delay": "ms",
    }
    at: str
    """Time of the change, from the start of the run. Required."""
    direction: Literal["forward", "reverse"] | None = None
    """The direction that changes. Default: both."""
    up: bool | None = None
    """`false`: arriving packets are dropped, queued packets are dropped when they leave the queue, packets
    in flight arrive."""
    rate: str | None = None
    """The packet in transmission finishes at the old rate."""
    delay: str | None = None
    """Applies to packets that leave the queue later; packets do not overtake each other."""
    loss: float | str | Loss | Sequence[Loss] | None = None
    """Replaces the model of the link's first loss process, and keeps its `where`; only the first entry of a
    list counts. Without `direction` in event or table, the change applies forward only."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Link(Table):
    """Link that paths share, `[[link]]`."""

    KEYS: ClassVar[Mapping[str, str]] = {
        "events": "event",
    }
    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "capacity": CapacityTrace,
        "delay_trace": SeriesTrace,
        "queue": Queue,
        "loss": Loss,
        "loss_trace": SeriesTrace,
        "outage_trace": SeriesTrace,
        "policer": Policer,
        "jitter": Jitter,
        "aggregation": Aggregation,
        "fading": Fading,
        "reverse": Reverse,
        "background": Background,
        "events": LinkEvent,
    }
    UNITS: ClassVar[Mapping[str, str]] = {
        "rate": "Mbit/s",
        "delay": "ms",
        "queue": "packets",
        "half_duplex": "ms",
    }
    name: str | None = None
    """The name, unique among the links. Default: `"link-1"`, …."""
    rate: str | None = None
    """Transmission rate. Default: required; in `reverse`, as forward."""
    capacity: str | CapacityTrace | None = None
    """Trace of the capacity, in place of `rate`. Default: `rate`."""
    delay: str | None = None
    """One-way propagation delay. Default: required; in `reverse`, as forward."""
    delay_trace: str | SeriesTrace | None = None
    """Trace of the delay in ms, in place of `delay`. Default: `delay`."""
    queue: str | Queue | None = None
    """Capacity of the queue, and with a table its discipline. In profile `ns2` the packet in transmission
    counts, in the others it does not. Default: `"50 packets"`; in `reverse`, as forward."""
    loss: float | str | Loss | Sequence[Loss] | None = None
    """Random loss, forward by default."""
    loss_trace: str | SeriesTrace | None = None
    """Trace of a loss probability, in place of `loss`; forward by default."""
    outage_trace: str | SeriesTrace | None = None
    """Trace with 1 while the link is up and 0 while it is down. Default: none; in `reverse`, as forward."""
    policer: Policer | None = None
    """Policer, of the forward direction by default."""
    jitter: str | Jitter | None = None
    """Random delay, forward by default."""
    aggregation: Aggregation | None = None
    """Transmission in batches, forward by default."""
    fading: Fading | None = None
    """Rate adaptation over a fading channel, forward by default; `rate` is the highest rate."""
    half_duplex: str | None = None
    """Both directions share a medium and send in turn. Each packet occupies it for this time besides its
    transmission. Default: each direction sends at any time."""
    reverse: Reverse | None = None
    """Settings of the reverse direction that differ from the forward one. Default: `rate`, `delay`, `queue`
    and `outage_trace` as forward, and none of the others."""
    background: Sequence[Background] = ()
    """Cross traffic."""
    events: Sequence[LinkEvent] = ()
    """Changes in the course of a run."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Path(Table):
    """Path between the two hosts, `[[path]]`: the links in `via`, then its own link, or only one of these."""

    KEYS: ClassVar[Mapping[str, str]] = {
        "events": "event",
    }
    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "handover": Handover,
        "capacity": CapacityTrace,
        "delay_trace": SeriesTrace,
        "queue": Queue,
        "loss": Loss,
        "loss_trace": SeriesTrace,
        "outage_trace": SeriesTrace,
        "policer": Policer,
        "jitter": Jitter,
        "aggregation": Aggregation,
        "fading": Fading,
        "reverse": Reverse,
        "background": Background,
        "events": LinkEvent,
    }
    UNITS: ClassVar[Mapping[str, str]] = {
        "rate": "Mbit/s",
        "delay": "ms",
        "queue": "packets",
        "half_duplex": "ms",
    }
    name: str | None = None
    """The name, unique among the paths. Default: `"path-1"`, …."""
    via: Sequence[str] | None = None
    """Names of shared links in forward order; the reverse direction uses the opposite order."""
    handover: Handover | None = None
    """Handovers to other points of access."""
    cost: Literal["free", "metered", "backup"] | None = None
    """Cost of the path: `metered` as `--path wwan0,metered`, `backup` as `only=backup`. Default: `"free"`."""
    rate: str | None = None
    """Transmission rate. Default: required; in `reverse`, as forward."""
    capacity: str | CapacityTrace | None = None
    """Trace of the capacity, in place of `rate`. Default: `rate`."""
    delay: str | None = None
    """One-way propagation delay. Default: required; in `reverse`, as forward."""
    delay_trace: str | SeriesTrace | None = None
    """Trace of the delay in ms, in place of `delay`. Default: `delay`."""
    queue: str | Queue | None = None
    """Capacity of the queue, and with a table its discipline. In profile `ns2` the packet in transmission
    counts, in the others it does not. Default: `"50 packets"`; in `reverse`, as forward."""
    loss: float | str | Loss | Sequence[Loss] | None = None
    """Random loss, forward by default."""
    loss_trace: str | SeriesTrace | None = None
    """Trace of a loss probability, in place of `loss`; forward by default."""
    outage_trace: str | SeriesTrace | None = None
    """Trace with 1 while the link is up and 0 while it is down. Default: none; in `reverse`, as forward."""
    policer: Policer | None = None
    """Policer, of the forward direction by default."""
    jitter: str | Jitter | None = None
    """Random delay, forward by default."""
    aggregation: Aggregation | None = None
    """Transmission in batches, forward by default."""
    fading: Fading | None = None
    """Rate adaptation over a fading channel, forward by default; `rate` is the highest rate."""
    half_duplex: str | None = None
    """Both directions share a medium and send in turn. Each packet occupies it for this time besides its
    transmission. Default: each direction sends at any time."""
    reverse: Reverse | None = None
    """Settings of the reverse direction that differ from the forward one. Default: `rate`, `delay`, `queue`
    and `outage_trace` as forward, and none of the others."""
    background: Sequence[Background] = ()
    """Cross traffic."""
    events: Sequence[LinkEvent] = ()
    """Changes in the course of a run."""
