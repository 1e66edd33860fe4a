"""Measures from the figures of finished runs, which the book's chapter "Figures of a run" defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from anabranch.errors import ExperimentError
from anabranch.experiments.measures.definition import measure
from anabranch.experiments.model import Measure
from anabranch.quantity import in_base_unit

if TYPE_CHECKING:
    import pandas

HEADERS_BYTES = 48
"""Bytes of headers in a full packet: IP, SCTP and DATA chunk."""

Place: TypeAlias = tuple[tuple[int, ...], int]
"""Place of a scenario: the indices of a cell, and the first seed with this scenario."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs of a setting: three tables whose index is the key of the run, and the place of each run.

    `scenario` returns the tables of the scenario at a place.
    """

    runs: pandas.DataFrame
    paths: pandas.DataFrame
    flows: pandas.DataFrame
    places: Mapping[str, Place]
    scenario: Callable[[Place], dict[str, Any]]
    folder: Path = Path()
    """Folder of the scenario file."""

    def of_scenario(self, figure: Callable[[dict[str, Any]], float]) -> pandas.Series:
        """Returns a figure that is computed from the scenario of each run."""
        import pandas

        figures = {place: figure(self.scenario(place)) for place in set(self.places.values())}
        return pandas.Series({key: figures[place] for key, place in self.places.items()}, dtype=float)

    def of_flow(self, asked: Measure) -> pandas.DataFrame:
        """Returns the rows of the flow that the measure names, or of all flows."""
        return self.flows if asked.flow is None else self.flows[self.flows["flow"] == asked.flow]

    def of_path(self, asked: Measure) -> pandas.DataFrame:
        """Returns the rows of the path that the measure names."""
        return self.paths[self.paths["path"] == asked.path]

    def delivered_bytes(self) -> pandas.Series:
        """Returns the delivered user data of all flows together."""
        return self.flows.groupby(level=0)["delivered_bytes"].sum()


@measure("Throughput", "kbit/s", "db-cmt 5.2.1, cmt-mptcp-analysis IV, cmt-dfr 4, cmt-qa 7.1")
def goodput_kbps(runs: Runs, asked: Measure) -> pandas.Series:
    """Goodput of all flows, called average throughput in papers."""
    return runs.runs["goodput_kbps"]


@measure("Throughput", "kbit/s", "as goodput_kbps", needs=["flow"])
def flow_goodput_kbps(runs: Runs, asked: Measure) -> pandas.Series:
    """`goodput_kbps` of one flow."""
    return runs.of_flow(asked)["goodput_kbps"]


@measure("Throughput of the path", "kbit/s", "smt-afr equation 1", needs=["path"])
def path_throughput_kbps(runs: Runs, asked: Measure) -> pandas.Series:
    """Wire bytes of packets with DATA that arrived over one path, by time."""
    return runs.of_path(asked)["bytes"] * 8 / 1000 / runs.runs["duration_s"]


@measure("Share of the path", "%", "none", needs=["path"])
def path_share_percent(runs: Runs, asked: Measure) -> pandas.Series:
    """Packets with DATA that arrived over one path, in per cent of those that arrived over all paths."""
    return 100 * runs.of_path(asked)["share"]


@measure(
    "Aggregated bandwidth utilisation",
    "%",
    "smt-afr equations 2 to 5, whose capacity is the largest momentary throughput",
)
def utilisation_percent(runs: Runs, asked: Measure) -> pandas.Series:
    """`path_throughput_kbps` of all paths, in per cent of their nominal rates."""
    total = runs.paths.groupby(level=0)["bytes"].sum() * 8 / runs.runs["duration_s"]

    def rates(tables: dict[str, Any]) -> float:
        for path in tables["path"]:
            if "rate" not in path:
                raise ExperimentError(
                    f"measure `{asked}`: path `{path['name']}` has no rate, because it follows a trace or only uses "
                    "links; use `path_throughput_kbps`"
                )
        return sum(in_base_unit(path["rate"]) for path in tables["path"])

    return 100 * total / runs.of_scenario(rates)


@measure("File transfer time", "s", "db-cmt 5.2.1 and 5.2.2", allows=["flow"])
def transfer_s(runs: Runs, asked: Measure) -> pandas.Series:
    """Transfer time of the flow that ends last. Runs in which a flow does not end have no value."""
    return runs.of_flow(asked).groupby(level=0)["transfer_s"].agg(lambda each: each.max(skipna=False))


@measure(
    "Timeouts",
    "per run",
    "db-cmt Fig. 4, cmt-dfr Figs. 4 and 7, whose axes say time but whose values are counts",
    grows=True,
)
def timeouts(runs: Runs, asked: Measure) -> pandas.Series:
    """Expiries of T3 over all paths."""
    return runs.runs["timeouts"]


@measure("Timeouts", "per MB", "none")
def timeouts_per_mb(runs: Runs, asked: Measure) -> pandas.Series:
    """Expiries of T3 per 10^6 delivered bytes."""
    delivered = runs.delivered_bytes() / 1e6
    return (runs.runs["timeouts"] / delivered).where(delivered > 0)


@measure("Unanswered HEARTBEATs", "per run", "none", grows=True)
def heartbeat_timeouts(runs: Runs, asked: Measure) -> pandas.Series:
    """Unanswered HEARTBEATs, which ns-2 counts as timeouts."""
    return runs.runs["heartbeat_timeouts"]


NS2_TIMEOUTS_AT_START = 2
"""Initial value of `timeoutCount_` in ns-2's agent (`tools/ns2/settle.py timeouts`)."""


@measure("Timeouts by ns-2's counter", "per run", "a reading of `timeouts`", grows=True)
def timeouts_by_ns2(runs: Runs, asked: Measure) -> pandas.Series:
    """Value of `timeoutCount_` in ns-2's agent: expiries of T3, unanswered HEARTBEATs, and two, at which the counter
    starts."""
    return runs.runs["timeouts"] + runs.runs["heartbeat_timeouts"] + NS2_TIMEOUTS_AT_START


@measure("Retransmissions", "per run", "cmt-qa Fig. 8, read as a total", grows=True)
def retransmissions(runs: Runs, asked: Measure) -> pandas.Series:
    """Transmissions of a TSN after its first, over all paths."""
    return runs.runs["retransmissions"]


@measure(
    "Retransmissions",
    "per run and path",
    "cmt-qa Fig. 8, read as a mean per path, as ns-2's agent gives it",
    grows=True,
)
def retransmissions_mean_per_path(runs: Runs, asked: Measure) -> pandas.Series:
    """`retransmissions`, divided by the number of paths."""
    return runs.runs["retransmissions"] / runs.of_scenario(lambda tables: len(tables["path"]))


@measure("Retransmissions", "per delivered chunk", "none")
def retransmissions_per_delivered_chunk(runs: Runs, asked: Measure) -> pandas.Series:
    """`retransmissions`, divided by the delivered data in full chunks."""
    full_bytes = runs.of_scenario(lambda tables: in_base_unit(tables["association"]["mtu"]) - HEADERS_BYTES)
    chunks = runs.delivered_bytes() / full_bytes
    return (runs.runs["retransmissions"] / chunks).where(chunks > 0)


@measure("Fast retransmits", "per run", "none", grows=True)
def fast_retransmits(runs: Runs, asked: Measure) -> pandas.Series:
    """SACKs that led to at least one fast retransmission."""
    return runs.runs["fast_retransmits"]


@measure("Spurious retransmissions", "per run", "none", grows=True)
def spurious_retransmissions(runs: Runs, asked: Measure) -> pandas.Series:
    """Retransmissions sent after an earlier copy had arrived."""
    return runs.runs["spurious_retransmissions"]


@measure("Blocked by the receive window", "s", "none", grows=True)
def rwnd_blocked_s(runs: Runs, asked: Measure) -> pandas.Series:
    """Time in which the peer's receive window blocked the sender."""
    return runs.runs["rwnd_blocked_s"]


@measure("Most bytes held by the receiver", "B", "none")
def peak_reorder_bytes(runs: Runs, asked: Measure) -> pandas.Series:
    """Largest number of user bytes that the receiver buffered at one time."""
    return runs.runs["peak_reorder_bytes"]


@measure("Receive buffer", "packets", "cmt-qa 7.1, which has 64 * 1024 / 1500")
def recv_buffer_packets(runs: Runs, asked: Measure) -> pandas.Series:
    """Receive buffer of the scenario, divided by the size of the largest packet."""

    def packets(tables: dict[str, Any]) -> float:
        return in_base_unit(tables["association"]["recv_buffer"]) / in_base_unit(tables["association"]["mtu"])

    return runs.of_scenario(packets)
