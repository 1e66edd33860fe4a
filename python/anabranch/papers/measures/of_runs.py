"""Measures that the figures of finished runs give. The book's chapter "What the figures mean" defines those figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from anabranch.papers.measures.definition import Definition, Parameter
from anabranch.papers.model import Measure
from anabranch.papers.quantity import bits_per_second, size_bytes

if TYPE_CHECKING:
    import pandas

HEADERS_BYTES = 48
"""IP, SCTP and DATA chunk: what a full packet has beside user data."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a setting: three frames indexed by the key of the run, and the scenario of each as tables.

    `points` has for each run the number of its scenario, which `scenario` gives as tables.
    """

    runs: pandas.DataFrame
    paths: pandas.DataFrame
    flows: pandas.DataFrame
    points: pandas.Series
    scenario: Callable[[int], dict[str, Any]]

    def of_scenario(self, figure: Callable[[dict[str, Any]], float]) -> pandas.Series:
        """A figure of the scenario of each run."""
        return self.points.map({point: figure(self.scenario(point)) for point in self.points.unique()})


def _column(name: str, runs: Runs, measure: Measure) -> pandas.Series:
    return runs.runs[name].astype(float)


def _per_path(name: str, runs: Runs, measure: Measure) -> pandas.Series:
    return runs.runs[name] / runs.of_scenario(lambda scenario: len(scenario["path"]))


def _flows(runs: Runs, measure: Measure) -> pandas.DataFrame:
    return runs.flows if measure.flow is None else runs.flows[runs.flows["flow"] == measure.flow]


def _delivered_bytes(runs: Runs, measure: Measure) -> pandas.Series:
    return _flows(runs, measure).groupby(level=0)["delivered_bytes"].sum()


def _flow_goodput(runs: Runs, measure: Measure) -> pandas.Series:
    return _flows(runs, measure)["goodput_kbps"].astype(float)


def _transfer(runs: Runs, measure: Measure) -> pandas.Series:
    """A run has a time only if each of its flows was delivered."""
    return _flows(runs, measure).groupby(level=0)["transfer_s"].agg(lambda each: each.max(skipna=False))


def _per_chunk(name: str, runs: Runs, measure: Measure) -> pandas.Series:
    full_bytes = runs.of_scenario(lambda scenario: size_bytes(scenario["association"]["mtu"]) - HEADERS_BYTES)
    chunks = _delivered_bytes(runs, measure) / full_bytes
    return (runs.runs[name] / chunks).where(chunks > 0)


def _per_mb(name: str, runs: Runs, measure: Measure) -> pandas.Series:
    delivered = _delivered_bytes(runs, measure) / 1e6
    return (runs.runs[name] / delivered).where(delivered > 0)


def _path_column(name: str, runs: Runs, measure: Measure) -> pandas.Series:
    return runs.paths[runs.paths["path"] == measure.path][name].astype(float)


def _path_throughput(runs: Runs, measure: Measure) -> pandas.Series:
    return _path_column("bytes", runs, measure) * 8 / 1000 / runs.runs["duration_s"]


def _utilisation(runs: Runs, measure: Measure) -> pandas.Series:
    total = runs.paths.groupby(level=0)["bytes"].sum() * 8 / runs.runs["duration_s"]
    return (
        100 * total / runs.of_scenario(lambda scenario: sum(bits_per_second(path["rate"]) for path in scenario["path"]))
    )


def _receive_buffer(runs: Runs, measure: Measure) -> pandas.Series:
    def packets(scenario: dict[str, Any]) -> float:
        association = scenario["association"]
        return size_bytes(association["recv_buffer"]) / size_bytes(association["mtu"])

    return runs.of_scenario(packets)


def _share(runs: Runs, measure: Measure) -> pandas.Series:
    return 100 * _path_column("share", runs, measure)


_FLOW: frozenset[Parameter] = frozenset({"flow"})
_PATH: frozenset[Parameter] = frozenset({"path"})

DEFINITIONS = (
    Definition(
        "goodput_kbps",
        "Throughput",
        "kbps",
        "What the papers call average throughput: unique data that reached the receiver over the time of the run, all "
        "paths together. In profile ns2 these are DATA chunks with their headers, as ns-2's traces allow to count.",
        "db-cmt 5.2.1, cmt-mptcp-analysis IV, cmt-dfr 4, cmt-qa 5",
        of_runs=partial(_column, "goodput_kbps"),
    ),
    Definition(
        "flow_goodput_kbps",
        "Throughput",
        "kbps",
        "The same of one flow.",
        "as goodput_kbps",
        needs=_FLOW,
        of_runs=_flow_goodput,
    ),
    Definition(
        "path_throughput_kbps",
        "Throughput of the path",
        "kbps",
        "Wire bytes of packets with DATA that arrived over one path, over the time of the run.",
        "smt-afr equation 1",
        needs=_PATH,
        of_runs=_path_throughput,
    ),
    Definition(
        "path_share_percent",
        "Share of the path",
        "%",
        "Packets with DATA that arrived over one path, of those over all paths.",
        "none; used in causes",
        needs=_PATH,
        of_runs=_share,
    ),
    Definition(
        "utilisation_percent",
        "Aggregated bandwidth utilisation",
        "%",
        "Wire bytes of packets with DATA that arrived over all paths, over the time of the run, as a part of the sum "
        "of the paths' nominal rates.",
        "smt-afr equations 2 to 5; the paper's capacity is the largest momentary throughput, for which the nominal "
        "rate stands here",
        of_runs=_utilisation,
    ),
    Definition(
        "transfer_s",
        "File transfer time",
        "s",
        "From the start of the association to the last byte read, of the flow that ends last. Runs in which it did not "
        "come to that have no value.",
        "db-cmt 5.2.1 and 5.2.2",
        allows=_FLOW,
        of_runs=_transfer,
    ),
    Definition(
        "timeouts",
        "Timeouts",
        "per run",
        "Expiries of T3 over all paths.",
        "db-cmt Fig. 4, cmt-dfr Figs. 4 and 7: their axes say time, their values and texts show that they count",
        of_runs=partial(_column, "timeouts"),
        grows=True,
    ),
    Definition(
        "timeouts_per_mb",
        "Timeouts",
        "per MB",
        "Expiries of T3 by 10^6 delivered bytes: a sender that sends more meets more losses.",
        "none; takes the amount sent out of the papers' counts",
        of_runs=partial(_per_mb, "timeouts"),
    ),
    Definition(
        "heartbeat_timeouts",
        "Unanswered HEARTBEATs",
        "per run",
        "HEARTBEATs that nobody answered in time; ns-2 counts them as timeouts.",
        "none",
        of_runs=partial(_column, "heartbeat_timeouts"),
        grows=True,
    ),
    Definition(
        "retransmissions",
        "Retransmissions",
        "per run",
        "Transmissions of a TSN after its first, over all paths.",
        "cmt-qa Fig. 8, read as a total",
        of_runs=partial(_column, "retransmissions"),
        grows=True,
    ),
    Definition(
        "retransmissions_mean_per_path",
        "Retransmissions",
        "per run and path",
        "Transmissions of a TSN after its first, divided by the number of paths.",
        "cmt-qa Fig. 8, read as a mean per path, with which ns-2's own agent agrees",
        of_runs=partial(_per_path, "retransmissions"),
        grows=True,
    ),
    Definition(
        "retransmissions_per_delivered_chunk",
        "Retransmissions",
        "per delivered chunk",
        "Transmissions of a TSN after its first, by what was delivered to the application in full chunks.",
        "none; takes the amount sent out of cmt-qa Fig. 8",
        of_runs=partial(_per_chunk, "retransmissions"),
    ),
    Definition(
        "fast_retransmits",
        "Fast retransmits",
        "per run",
        "SACKs that led to at least one fast retransmission.",
        "none; used in causes",
        of_runs=partial(_column, "fast_retransmits"),
        grows=True,
    ),
    Definition(
        "spurious_retransmissions",
        "Spurious retransmissions",
        "per run",
        "Retransmissions that left when an earlier copy had arrived.",
        "none; used in causes",
        of_runs=partial(_column, "spurious_retransmissions"),
        grows=True,
    ),
    Definition(
        "rwnd_blocked_s",
        "Blocked by the receive window",
        "s",
        "Time in which data waited and a window was open, but the peer's receive window was not.",
        "none; used in causes",
        of_runs=partial(_column, "rwnd_blocked_s"),
        grows=True,
    ),
    Definition(
        "peak_reorder_bytes",
        "Most bytes held by the receiver",
        "B",
        "The most user bytes that the receiver held at one time.",
        "none; used in causes",
        of_runs=partial(_column, "peak_reorder_bytes"),
    ),
    Definition(
        "recv_buffer_packets",
        "Receive buffer",
        "packets",
        "The receive buffer by the size of the largest packet: arithmetic, not a measurement.",
        "cmt-qa 5.2, which has 64 * 1024 / 1500",
        of_runs=_receive_buffer,
    ),
)
