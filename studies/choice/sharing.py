"""Share of a flow with one path in a bottleneck beside each scheme."""

from __future__ import annotations

import pandas as pd

from anabranch import Results, Scenario
from anabranch.statistics import summary
from studies.choice.cells import in_unit, rtt_s

ORDINARY = "sctp"
"""Scheme with which the other flow equals the flow with one path."""

ONE_PATH, MULTIPATH = "one-path", "multipath"


def sharing(results: Results) -> pd.DataFrame:
    """Returns a row for each condition and scheme.

    Columns: `buffer_kib`, `rtt_ratio` of the association's second path to its first, `scheme`, `n`, and `kept`, the
    share of the flow with one path in both flows' goodput, with `half_width`.
    """
    shares = shares_of(results)
    means = summary(shares, "kept").rename(columns={"mean": "kept"})
    points = shares[results.over].drop_duplicates().to_dict("records")
    conditions = pd.DataFrame([{**point, **_condition(results, point)} for point in points])
    joined = conditions.merge(means, on=results.over, how="right")
    return joined[["buffer_kib", "rtt_ratio", "scheme", "n", "kept", "half_width", "kind"]]


def taken(results: Results) -> pd.DataFrame:
    """Returns a row for each scheme: the share of the flow with one path over all conditions, with `half_width`."""
    means = summary(shares_of(results), "kept", by=["scheme"]).rename(columns={"mean": "kept"})
    return means[["scheme", "n", "kept", "half_width"]]


def shares_of(results: Results) -> pd.DataFrame:
    """Returns a row for each run: the swept keys, `scheme`, `seed` and `kept`."""
    flows = results.to_pandas("flows")
    goodput = flows.pivot_table(
        index=[*results.over, "scheme", "seed"], columns="flow", values="goodput_kbps", sort=False
    )
    kept = goodput[ONE_PATH] / (goodput[ONE_PATH] + goodput[MULTIPATH])
    return kept.rename("kept").reset_index()


def _condition(results: Results, point: dict[str, object]) -> dict[str, float]:
    scenario = Scenario.parse(results.scenario_at(point))
    shared = {link.name: rtt_s(link) for link in scenario.links}
    first, second = (
        rtt_s(path) + sum(shared[name] for name in path.via or ()) for path in scenario.paths if path.name != "other"
    )
    return {
        "buffer_kib": in_unit(scenario.association.recv_buffer, "B") / 1024,
        "rtt_ratio": round(second / first, 6),
    }
