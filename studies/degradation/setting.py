"""Settings of the checks, in which one flow is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from anabranch.experiments.points import Figures, Trial
from anabranch.scenario import Scenario
from studies.bounds.points import SUBJECT as SUBJECT
from studies.bounds.points import kbit as kbit

Table = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Contest:
    """Link that the subject shares with flows of one path: the paths of the subject and of these flows through the
    link."""

    own_paths: tuple[str, ...]
    other_paths: tuple[str, ...]

    def share(self, figures: Figures) -> float:
        """Returns the share of the subject, where 1 is the mean of the other flows.

        Goodput is measured per flow and not per path. Bytes that arrive over the link are compared instead.
        """
        own, others = (
            sum(figures.paths[name].arrived_bytes for name in names) for names in (self.own_paths, self.other_paths)
        )
        return share_of(own, others, len(self.other_paths))


def share_of(own: float, others: float, other_flows: int) -> float:
    """Returns the subject's part of the goodput of all flows, times their number.

    >>> share_of(2, 1, 1), share_of(1, 4, 4)
    (1.3333333333333333, 1.0)
    """
    return own / (own + others) * (1 + other_flows) if own + others > 0 else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Scenario with the paths of the subject. `uneven` is `True` if paths lose packets or differ."""

    name: str
    table: Table = field(repr=False)
    paths: tuple[str, ...]
    contest: Contest | None = None
    uneven: bool = False

    def trial(self, scheme: str, alone: str | None = None) -> Trial:
        """Returns the subject with this scheme over all of its paths, or over one `alone`."""
        return Trial(self.name, _text(self, alone), scheme)


@cache
def _text(setting: Setting, alone: str | None) -> str:
    flows = [
        {**flow, "paths": [alone]} if alone and flow["name"] == SUBJECT else flow for flow in setting.table["flow"]
    ]
    return Scenario.from_dict({**setting.table, "flow": flows}, name=setting.name).to_toml(resolved=True)


def subject(paths: Sequence[str], **more: object) -> Table:
    """Returns the flow that is judged."""
    return {"name": SUBJECT, "paths": list(paths), **more}


def over_links(
    name: str,
    duration_s: float,
    buffer_bytes: float,
    links: Mapping[str, Table],
    contested: str | None,
    uneven: bool,
) -> Setting:
    """Returns a setting with a path over each of these links, which have the names of the paths.

    A flow of `sctp` shares the link of the path `contested`.
    """
    paths = tuple(links)
    tables: list[Table] = [{"name": path, "via": [f"link-{path}"]} for path in paths]
    flows = [subject(paths)]
    if contested:
        tables.append({"name": "other", "via": [f"link-{contested}"]})
        flows.append({"name": "other", "paths": ["other"], "scheme": "sctp"})
    table = {
        "run": run_table(duration_s),
        "association": {"recv_buffer": f"{round(buffer_bytes)} B"},
        "link": [{"name": f"link-{path}", **link} for path, link in links.items()],
        "path": tables,
        "flow": flows,
    }
    return Setting(name, table, paths, Contest((contested,), ("other",)) if contested else None, uneven)


def run_table(duration_s: float, **more: object) -> Table:
    """Returns `[run]` of every setting."""
    return {"duration": f"{duration_s:g} s", "profile": "rfc9260", "delays": True, **more}


def ms(delay_ms: float) -> str:
    """Returns the text of a time, to the microsecond."""
    return f"{round(delay_ms * 1000)} us"


def poisson(rate_kbps: float) -> Table:
    """Returns random cross traffic of a low rate, so that drop-tail queues do not drop in phase with their senders."""
    return {"kind": "poisson", "rate": kbit(rate_kbps), "packet": "500 B"}


def single_losses(loss: float) -> Table:
    """Returns independent losses with this probability."""
    return {"model": "bernoulli", "rate": round(loss, 6)}


def bursts(loss: float, packets: float) -> Table:
    """Returns bursts of this mean length that lose this share of all packets."""
    leave = 1 / packets
    return {"model": "gilbert-elliott", "p": round(leave * loss / (1 - loss), 6), "r": round(leave, 6)}


def cross_traffic(kind: str, taken_kbps: float, packet_bytes: int) -> Table:
    """Returns cross traffic with this mean rate. Pareto sources are on for half of the time."""
    rate_kbps = 2 * taken_kbps if kind == "pareto" else taken_kbps
    return {"kind": kind, "rate": kbit(rate_kbps), "packet": f"{packet_bytes} B"}
