"""Runs the two plans and makes tables and figures of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

import anabranch
from anabranch import Results
from anabranch.experiments.pages.document import Block, Heading, Items, Paragraph, markdown
from anabranch.experiments.sweeps import SweepOptions
from anabranch.figures import save
from anabranch.sweeps.plan import Plan, read_plan
from studies.choice import maps, tables
from studies.choice.choosing import advice, ranking
from studies.choice.judging import BASELINE, METRIC, OUTSIDE, exceeding, judge
from studies.choice.samples import Samples, samples
from studies.choice.sharing import sharing, taken
from studies.choice.wording import buffer_text, file_name, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLANS = Path(__file__).resolve().parent / "plans"

SHOWN_GAINS = (
    "braid",
    "sctp",
    "naive-cmt",
    "cmt+sttf",
    "cmt+rescheduling",
    "bonded",
    "db-cmt",
    "cmt-dfr",
    "mptcp-olia",
)
"""Schemes whose gains stand side by side in one figure; of every other there is a figure of its own."""


@dataclass(frozen=True, slots=True)
class Made:
    """Tables by name, as frames and as parts of the chapter, and the figures."""

    frames: Mapping[str, pd.DataFrame]
    parts: Mapping[str, Sequence[Block]]
    figures: Mapping[str, Figure]


QUICK_OVER: Mapping[str, list[object]] = {
    "association.recv_buffer": ["32 KiB", "128 KiB"],
    "path.path-2.delay": ["20 ms", "100 ms"],
    "path.path-2.loss.rate": [0, 0.01],
    "path.right.delay": ["5 ms", "30 ms"],
}
"""Values of the plans for a picture in about a minute."""

QUICK_SET = {"run.duration": "15 s", "run.warmup": "5 s"}
QUICK_SEEDS = 3


def run_plans(quick: bool, options: SweepOptions) -> tuple[Results, Results]:
    """Runs the grid, and the link that is shared."""
    grid, shared = (read_plan(PLANS / name) for name in ("grid.toml", "sharing.toml"))
    if quick:
        grid, shared = quicker(grid), quicker(shared)
    return _run(grid, options), _run(shared, options)


def quicker(plan: Plan) -> Plan:
    """Returns the plan with fewer values, fewer seeds and shorter runs."""
    over = {key: QUICK_OVER.get(str(key), values) for key, values in plan.over.items()}
    return Plan(plan.scenario, over, {**plan.overrides, **QUICK_SET}, QUICK_SEEDS)


def _run(plan: Plan, options: SweepOptions) -> Results:
    return anabranch.sweep(
        plan.scenario,
        plan.over,
        plan.seeds,
        overrides=plan.overrides,
        cache=options.cache,
        executor=options.executor,
        workers=options.workers,
        progress=options.progress,
    )


def make(grid: Results, shared: Results, looked_into: pd.DataFrame) -> Made:
    """Judges the results of both plans. `looked_into` is the frame that `explained` returns."""
    judged = judge(grid)
    goodputs = samples(grid.to_pandas(), grid.over, METRIC)
    shares, kept = sharing(shared), taken(shared)
    advised, ranked = advice(goodputs, judged, kept), ranking(goodputs, judged)
    shown = [scheme for scheme in SHOWN_GAINS if scheme in grid.schemes]
    figures = {
        "winners": maps.winner_map(judged),
        "limits": maps.limit_map(judged),
        "shared-limits": maps.limit_map(judged, "of_shared_limit"),
        "gains": maps.gains_map(judged, shown),
        "trade-off": maps.trade_off(ranked, kept),
    }
    for scheme in grid.schemes:
        if scheme != BASELINE:
            figures[f"gain-{file_name(scheme)}"] = maps.gain_map(judged, scheme)
    parts: dict[str, Sequence[Block]] = {
        "short": [Paragraph(short_text(judged, advised, ranked))],
        "grid": [Paragraph(grid_text(grid, shared))],
        "advice": [tables.advice_table(advised)],
        "list": [advice_list(advised)],
        "schemes": [tables.ranking_table(ranked, kept)],
        "room": [Paragraph(exceeding_text(goodputs, judged)), tables.room_table(judged)],
        "explained": [tables.explained_table(looked_into)],
        "sharing": [tables.sharing_table(shares)],
        "cells": [tables.winners_table(judged)],
    }
    frames = {"cells": judged, "advice": advised, "schemes": ranked.merge(kept, on="scheme"), "sharing": shares}
    frames["explained"] = looked_into
    return Made(frames, parts, figures)


def short_text(judged: pd.DataFrame, advised: pd.DataFrame, ranked: pd.DataFrame) -> str:
    """Returns the answer in three sentences: by receive buffer, over all cells, and for `cmt` itself."""
    uses = []
    for buffer_kib, own in advised.groupby("buffer_kib", sort=True):
        counts = own["use"].value_counts(sort=False)
        most = counts[counts == counts.max()]
        each = " each" if len(most) > 1 else ""
        uses.append(
            f"with {buffer_text(buffer_kib)} use {_listed(list(most.index), ' or ')} "
            f"(best in {most.iloc[0]} of {len(own)} kinds of links{each})"
        )
    first = ranked.iloc[0]
    baseline = judged[judged["scheme"] == BASELINE].groupby("buffer_kib", sort=True)["of_best"].mean()
    reached = ", ".join(f"{percent(part)} with {buffer_text(buffer_kib)}" for buffer_kib, part in baseline.items())
    return (
        f"The receive buffer decides first: {', '.join(uses)}. "
        f"If nothing is known of the links, `{first.scheme}` comes closest to the best scheme: it has "
        f"{percent(first.of_best)} of the best goodput on average and {percent(first.worst)} at worst. "
        f"`{BASELINE}` has {reached}."
    )


def advice_list(advised: pd.DataFrame) -> Items:
    """Returns the scheme to use for each kind of links as a list, for screens on which the map cannot be read."""
    rows = tables.advice_table(advised).rows
    return Items([f"{row[0]}, round trips {row[1]}, {row[2]} loss: {row[3]}, {row[5]} of the best" for row in rows])


def grid_text(grid: Results, shared: Results) -> str:
    """Returns the extent of both plans."""
    cells = len(grid.to_pandas()[grid.over].drop_duplicates())
    return (
        f"{grid.runs.num_rows:,} runs of {cells} cells, {len(grid.schemes)} schemes and "
        f"{len(grid.manifest['seeds'])} seeds, and {shared.runs.num_rows:,} runs with "
        f"{len(shared.manifest['seeds'])} seeds over a shared link. The same version gives the same figures again."
    )


def exceeding_text(goodputs: Samples, judged: pd.DataFrame) -> str:
    """Returns a sentence about schemes above the limit."""
    limits = judged.drop_duplicates("cell").sort_values("cell")["limit_kbps"].to_numpy()
    can_win = [place for place, scheme in enumerate(goodputs.schemes) if scheme not in OUTSIDE]
    runs = goodputs.values[:, can_win] / limits[:, None, None]
    above = exceeding(judged)
    possible = above[~above["scheme"].isin(OUTSIDE)]
    most = judged[~judged["scheme"].isin(OUTSIDE)]["of_limit"].max()
    shared = exceeding(judged, "of_shared_limit")
    above_shared = (~shared["scheme"].isin(OUTSIDE)).sum()
    count = f"{len(possible)} of {len(judged):,} means are above the limit, and {above_shared} above the shared limit, "
    count += f"but for those of {_listed(OUTSIDE)}"
    return (
        f"{count}. The highest is {percent(most, 1)} of the limit. Of single runs, {(runs > 1).sum()} of {runs.size:,} "
        f"are above it, by {percent(max(runs.max() - 1, 0), 1)} at most."
    )


def _listed(schemes: Sequence[str], between: str = ", ") -> str:
    return between.join(f"`{scheme}`" for scheme in schemes)


def write(made: Made, folder: Path) -> None:
    """Writes tables as CSV, figures as SVG, and everything in Markdown together, as `summary.md`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in made.frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False, float_format="%.6g")
    for name, figure in made.figures.items():
        save(figure, folder / "maps" / f"{name}.svg")
    blocks = [block for name, part in made.parts.items() for block in (Heading(2, name), *part)]
    (folder / "summary.md").write_text(markdown([Heading(1, "Choice of a scheme"), *blocks]), encoding="utf-8")
