"""Tables of the finished runs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from anabranch.experiments.pages.document import Block, Items, Paragraph, Table
from studies.arena.measuring import Row
from studies.recorded.judging import median_of

REFERENCE = "mptcp"
"""Stack that the others are compared with."""

LATE_US = 5_000
"""Mean delay of the emulator, from which a run is left out because other programs disturbed it."""

TITLES = {
    "synthetic": "Goodput of bulk data over synthetic links, in Mbit/s:",
    "recorded": "Goodput of bulk data over recorded sections:",
    "synthetic-messages": "Delay of messages over synthetic links, median / 99 %, in ms:",
    "recorded-messages": "Delay of messages over recorded sections:",
    "files": "Median time of files over all settings:",
    "outage": "First link down in the middle third: goodput then in Mbit/s / longest stall, and delay of messages:",
    "bytes": "Bytes on the links, in both directions, per byte of user data:",
}

_ONE_LINK = re.compile(r"(?P<stack>tcp-\w+)-\d+")
_LOWER_IS_BETTER = ("seconds", "p50_ms", "p99_ms", "stalled_s")


def judged(rows: Sequence[Row]) -> pd.DataFrame:
    """Returns the valid runs: the median over the rounds of each setting, stack and work.

    TCP has the figures of the better link, each figure separately.
    """
    frame = pd.DataFrame(rows)
    frame = frame[frame["error"].isna() & (frame["late_mean_us"] < LATE_US)]
    frame = frame.assign(bytes_per_user_byte=frame["wire_bytes"] / frame["user_bytes"].where(frame["user_bytes"] > 0))
    figures = [name for name in frame.columns if name not in ("setting", "stack", "work", "round", "error")]
    frame[figures] = frame[figures].apply(pd.to_numeric)
    keys = ["setting", "work", "stack"]
    frame = frame.groupby(keys, sort=False)[figures].median().reset_index()
    frame["stack"] = frame["stack"].str.replace(_ONE_LINK, r"\g<stack>", regex=True)
    best: Mapping[str, str] = {name: "min" if name in _LOWER_IS_BETTER else "max" for name in figures}
    return frame.groupby(keys, sort=False).agg(best).reset_index()


def tables(rows: Sequence[Row], synthetic: Sequence[str]) -> dict[str, list[Block]]:
    """Returns the tables by name. Those without runs are empty and left out."""
    frame = judged(rows)
    is_synthetic = frame["setting"].isin(synthetic)
    by_hand, recorded = frame[is_synthetic], frame[~is_synthetic]
    parts: dict[str, list[Table]] = {
        "synthetic": [_by_setting(by_hand, "bulk", _rate)],
        "recorded": [_recorded(recorded)],
        "synthetic-messages": [_by_setting(by_hand, "messages", _delays)],
        "recorded-messages": [_recorded_messages(recorded)],
        "files": [_files(frame)],
        "outage": [_by_setting(by_hand, "bulk-outage", _outage), _by_setting(by_hand, "messages-outage", _delays)],
        "bytes": [_bytes(frame)],
    }
    full = {name: [table for table in part if table.rows] for name, part in parts.items()}
    titled: dict[str, list[Block]] = {name: [Paragraph(TITLES[name]), *part] for name, part in full.items() if part}
    return {**titled, "conditions": [Paragraph(conditions(rows))], "failed": [_failed(rows)]}


def _order(frame: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(frame["stack"]))


def _by_setting(frame: pd.DataFrame, work: str, shown: Callable[[pd.Series], str]) -> Table:
    """Returns a row for each stack and a column for each setting."""
    frame = frame[frame["work"] == work]
    settings = list(dict.fromkeys(frame["setting"]))
    cells = {(row["stack"], row["setting"]): shown(row) for _, row in frame.iterrows()}
    body = [[f"`{stack}`", *(cells.get((stack, each), "") for each in settings)] for stack in _order(frame)]
    return Table(["stack", *settings], body, frozenset(range(1, len(settings) + 1)))


def _rate(row: pd.Series) -> str:
    return f"{row['goodput_mbps']:.1f}"


def _delays(row: pd.Series) -> str:
    return " / ".join("missing" if pd.isna(row[key]) else f"{row[key]:.0f}" for key in ("p50_ms", "p99_ms"))


def _outage(row: pd.Series) -> str:
    return f"{row['outage_mbps']:.1f} / {row['stalled_s']:.1f} s"


def _recorded(frame: pd.DataFrame) -> Table:
    """Returns the goodput of bulk data over recorded sections, and its ratio to that of MPTCP in the same section."""
    wide = frame[frame["work"] == "bulk"].pivot(index="setting", columns="stack", values="goodput_mbps")
    rows = []
    for stack in _order(frame[frame["work"] == "bulk"]):
        own = wide[stack].dropna()
        pairs = (wide[stack] / wide[REFERENCE]).dropna() if REFERENCE in wide else own[:0]
        quantiles = [f"{pairs.quantile(part):.2f}" if len(pairs) else "" for part in (0.1, 0.9)]
        over = str(median_of(list(pairs))) if len(pairs) and stack != REFERENCE else ""
        rows.append([f"`{stack}`", str(len(own)), f"{own.median():.1f}", over, *quantiles])
    header = ["stack", "sections", "median, Mbit/s", f"over `{REFERENCE}`, median", "10 %", "90 %"]
    return Table(header, rows, frozenset({1, 2, 3, 4, 5}))


def _recorded_messages(frame: pd.DataFrame) -> Table:
    """Returns the delays of messages over recorded sections. A missing quantile counts as the slowest."""
    messages = frame[frame["work"] == "messages"]
    rows = []
    for stack in _order(messages):
        own = messages[messages["stack"] == stack]
        values = [own[key].fillna(float("inf")) for key in ("p50_ms", "p99_ms")]
        medians = [f"{each.median():.0f}" for each in values]
        incomplete = f"{(own['missing'] > 0).sum()} of {len(own)}"
        rows.append([f"`{stack}`", *medians, f"{values[1].quantile(0.9, interpolation='higher'):.0f}", incomplete])
    header = [
        "stack",
        "median, ms",
        "99 %, ms",
        "99 % in the worst tenth, ms",
        "sections with missing messages",
    ]
    return Table(header, rows, frozenset({1, 2, 3, 4}))


def _files(frame: pd.DataFrame) -> Table:
    """Returns the median time of files over all settings. A file that did not arrive counts as the slowest."""
    files = frame[frame["work"].str.startswith("file-")]
    sizes = list(dict.fromkeys(files["work"]))
    rows = []
    for stack in _order(files):
        own = files[files["stack"] == stack]
        times = [own.loc[own["work"] == size, "seconds"].fillna(float("inf")) for size in sizes]
        rows.append([f"`{stack}`", *(f"{each.median():.2f} s" if len(each) else "" for each in times)])
    header = ["stack", *(f"{size.removeprefix('file-')} MB" for size in sizes)]
    return Table(header, rows, frozenset(range(1, len(header))))


def _bytes(frame: pd.DataFrame) -> Table:
    """Returns the bytes on the links, in both directions, per byte that the receiver had."""
    works = ["bulk", "messages"]
    wide = frame[frame["work"].isin(works)].pivot_table(
        index="stack", columns="work", values="bytes_per_user_byte", aggfunc="median", sort=False
    )
    rows = [
        [f"`{stack}`", *("" if pd.isna(row.get(work)) else f"{row[work]:.2f}" for work in works)]
        for stack, row in wide.iterrows()
    ]
    return Table(["stack", *works], rows, frozenset({1, 2}))


def conditions(rows: Sequence[Row]) -> str:
    """Returns the number of runs, the kernel, and the disturbance by other programs."""
    late = sorted(row["late_mean_us"] for row in rows)
    left_out = sum(each >= LATE_US for each in late)
    loads = sorted(row["load"] for row in rows)
    return (
        f"{len(rows)} runs on Linux {os.uname().release.split('-')[0]} with {os.cpu_count()} processors. The load "
        f"average was {loads[0]:.1f} to {loads[-1]:.1f}. The emulator sent packets late by {late[len(late) // 2]:.0f} "
        f"µs in the median of the runs. Runs with a mean above {LATE_US / 1000:g} ms are left out: {left_out}."
    )


def _failed(rows: Sequence[Row]) -> Block:
    """Returns the errors of stacks."""
    failed: dict[str, int] = {}
    for row in rows:
        if row["error"]:
            text = f"`{row['stack']}`, {row['work']}: {row['error']}"
            failed[text] = failed.get(text, 0) + 1
    lines = [f"{text} ({count} runs)" for text, count in failed.items()]
    return Items(lines) if lines else Paragraph("No run failed.")
