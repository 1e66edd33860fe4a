"""Goodput of each scheme beside that of the better link alone, section by section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from anabranch.experiments.pages.document import Block, Items, Paragraph, Table
from studies.alone import ratio
from studies.recorded.runs import SUBJECT
from studies.recorded.sections import Section

LEAST, GOAL = 0.97, 0.95
"""Required part of the better link's goodput, and the share of sections that shall reach it."""


@dataclass(frozen=True, slots=True)
class Median:
    """Median, and its 95 % interval by order statistics, which exists for six values or more."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = "" if np.isnan(self.low) else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.value:.2f}{interval}"


def median_of(values: Sequence[float]) -> Median:
    """Returns the median of at least one value."""
    from scipy import stats

    interval = stats.quantile_test(list(values), q=float(np.median(values))).confidence_interval(0.95)
    return Median(float(np.median(values)), float(interval.low), float(interval.high))


def judge(runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of `run_all` with `of_alone`, the goodput over that of the better link alone."""
    pairs = zip(runs["goodput_kbps"], runs["alone_kbps"], strict=True)
    return runs.assign(of_alone=[ratio(both, alone) for both, alone in pairs])


def ranking(judged: pd.DataFrame) -> Table:
    """Returns a row for each scheme, with the highest median first, and the comparison of the subject with it."""
    wide = judged.pivot(index="section", columns="scheme", values="of_alone")
    order = wide.median().sort_values(ascending=False, kind="stable").index
    rows = [_row(wide, scheme) for scheme in order]
    header = ["scheme", "median", "10 %", "90 %", f"at least {LEAST}", f"`{SUBJECT}` over it, median"]
    return Table(header, rows, frozenset(range(1, len(header))))


def _row(wide: pd.DataFrame, scheme: str) -> list[str]:
    values = wide[scheme]
    quantiles = [f"{values.quantile(part):.2f}" for part in (0.1, 0.9)]
    reached = f"{(values >= LEAST).sum()} of {len(values)}"
    pairs = [] if scheme == SUBJECT else zip(wide[SUBJECT], values, strict=True)
    gains = [ratio(ours, theirs) for ours, theirs in pairs]
    return [f"`{scheme}`", str(median_of(list(values))), *quantiles, reached, str(median_of(gains)) if gains else ""]


def directions(judged: pd.DataFrame) -> Table:
    """Returns the subject's row for each direction and for both."""
    own = judged[judged["scheme"] == SUBJECT]
    parts = [*own.groupby("direction", sort=False), ("both", own)]
    rows = [
        [
            str(name),
            f"{(part['of_alone'] >= LEAST).sum()} of {len(part)}",
            str(median_of(list(part["of_alone"]))),
            f"{part['of_alone'].min():.2f}",
            f"{(part['goodput_kbps'] >= LEAST * part['subject_alone_kbps']).sum()} of {len(part)}",
        ]
        for name, part in parts
    ]
    header = ["direction", f"at least {LEAST}", "median", "least", f"at least {LEAST} of `{SUBJECT}` alone"]
    return Table(header, rows, frozenset(range(1, len(header))))


def short_text(judged: pd.DataFrame) -> str:
    """Returns the answer in three sentences."""
    wide = judged.pivot(index="section", columns="scheme", values="of_alone")
    own = wide[SUBJECT]
    reached, medians = (own >= LEAST).mean(), wide.median()
    most = (wide >= LEAST).sum()
    highest, safest = medians.idxmax(), most.idxmax()
    return (
        f"`{highest}` has the highest median, {medians[highest]:.2f} times the goodput of the better link alone. "
        f"`{safest}` reaches {LEAST} of the better link in the most sections, {most[safest]} of {len(wide)}. "
        f"`{SUBJECT}` has a median of {medians[SUBJECT]:.2f} and reaches it in {reached:.0%} of the sections; "
        f"the goal is {GOAL:.0%}."
    ).replace("%", " %")


def worst(judged: pd.DataFrame, count: int) -> list[str]:
    """Returns the sections in which the subject is lowest beside the better link, the lowest first."""
    own = judged[judged["scheme"] == SUBJECT]
    return list(own.nsmallest(count, "of_alone")["section"])


def worst_table(judged: pd.DataFrame, sections: Sequence[Section]) -> Table:
    """Returns a row for each of these sections with rates in Mbit/s."""
    rows = []
    for section in sections:
        of_section = judged[judged["section"] == section.name].set_index("scheme")
        own, best = of_section.loc[SUBJECT], of_section["goodput_kbps"].idxmax()
        kbps = [*own[["alone_kbps", "subject_alone_kbps", "goodput_kbps"]], of_section.loc[best, "goodput_kbps"]]
        rates = [f"{rate:.1f}" for rate in (*section.means, *(each / 1000 for each in kbps))]
        rows.append([section.name, *rates, f"`{best}`", f"{own['of_alone']:.2f}"])
    header = [
        "section",
        "x",
        "y",
        "better link alone",
        f"`{SUBJECT}` alone",
        f"`{SUBJECT}`",
        "best scheme",
        "",
        "ratio",
    ]
    return Table(header, rows, frozenset({1, 2, 3, 4, 5, 6, 8}))


def findings(name: str, report: dict[str, list[dict[str, list[str]]]]) -> list[Block]:
    """Returns the findings of `anabranch explain` on where capacity and time went."""
    (flow,) = report["flows"]
    return [Paragraph(f"{name}:"), Items([*flow["capacity_findings"][:4], *flow["time_findings"][:3]])]
