"""Tables of the finished runs."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TypedDict

import pandas as pd

from anabranch.experiments.pages.document import Block, Items, Paragraph, Table
from studies.arena.measuring import Row
from studies.arena.stacks import PEERS, STACKS
from studies.recorded.judging import GOAL, LEAST, median_of

SUBJECT, REFERENCE = "braid", "mptcp"
"""Stack to judge, and the one that the others are compared with."""

GAIN = 1.1
"""Goal for the median ratio of the subject's goodput to that of the reference."""

BETTER = "better link"
"""Column with the highest goodput of TCP over one link."""

LATE_US = 5_000
"""Mean delay of the emulator, from which a run is left out because other programs disturbed it."""

TITLES = {
    "synthetic": "Goodput of bulk data over synthetic links, in Mbit/s:",
    "recorded": "Goodput of bulk data over recorded sections:",
    "synthetic-messages": "Delay of messages over synthetic links, median / 99 %, in ms:",
    "recorded-messages": "Delay of messages over recorded sections:",
    "files": "Time of files over all settings, median and 90 %:",
    "outage": "First link down in the middle third: goodput then in Mbit/s / longest stall, and delay of messages:",
    "cost": "Cost of a byte of user data, median over all settings:",
}

_ONE_LINK = re.compile(r"(?P<stack>tcp-\w+)-\d+")
_LOWER_IS_BETTER = ("seconds", "p50_ms", "p99_ms", "stalled_s")


class Machine(TypedDict):
    """Machine of the runs, and versions of the stacks from the registry."""

    kernel: str
    processors: int
    versions: dict[str, str]


def this_machine() -> Machine:
    """Returns the machine of this process."""
    lock = (PEERS / "Cargo.lock").read_text(encoding="utf-8")
    versions = dict(re.findall(r'^name = "(tquic|aggligator)"\nversion = "([^"]+)"$', lock, re.MULTILINE))
    return {"kernel": platform.release().split("-")[0], "processors": os.cpu_count() or 1, "versions": versions}


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
    frame = frame.groupby(keys, sort=False).agg(best).reset_index()
    return _sorted(frame, "stack", [_ONE_LINK.sub(r"\g<stack>", stack.name) for stack in STACKS])


def _sorted(frame: pd.DataFrame, column: str, order: Sequence[str]) -> pd.DataFrame:
    """Returns the rows in the order of the values of a column. Runs side by side finish in any order."""
    return frame.sort_values(column, key=lambda values: values.map(order.index), kind="stable")


def tables(rows: Sequence[Row], synthetic: Sequence[str], machine: Machine) -> dict[str, list[Block]]:
    """Returns the tables by name. Those without runs are empty and left out."""
    frame = judged(rows)
    is_synthetic = frame["setting"].isin(synthetic)
    by_hand, recorded = _sorted(frame[is_synthetic], "setting", synthetic), frame[~is_synthetic]
    parts: dict[str, list[Table]] = {
        "synthetic": [_by_setting(by_hand, "bulk", _rate)],
        "recorded": [_recorded(recorded)],
        "synthetic-messages": [_by_setting(by_hand, "messages", _delays)],
        "recorded-messages": [_recorded_messages(recorded)],
        "files": [_files(frame)],
        "outage": [_by_setting(by_hand, "bulk-outage", _outage), _by_setting(by_hand, "messages-outage", _delays)],
        "cost": [_cost(frame)],
    }
    full = {name: [table for table in part if table.rows] for name, part in parts.items()}
    titled: dict[str, list[Block]] = {name: [Paragraph(TITLES[name]), *part] for name, part in full.items() if part}
    short: dict[str, list[Block]] = {"short": [Paragraph(text)]} if (text := _short(_by_section(recorded))) else {}
    return {**short, **titled, "conditions": [Paragraph(conditions(rows, machine))], "failed": [_failed(rows)]}


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


def _by_section(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the goodput of bulk data with a row for each section, and columns for the stacks and the better link."""
    wide = frame[frame["work"] == "bulk"].pivot(index="setting", columns="stack", values="goodput_mbps")
    wide = wide.reindex(columns=_order(frame[frame["work"] == "bulk"]))
    return wide.assign(**{BETTER: wide.filter(like="tcp-").max(axis=1)})


def _ratios(wide: pd.DataFrame, stack: str, other: str) -> list[float]:
    """Returns the ratios of goodputs over the sections that have both."""
    if stack not in wide or other not in wide:
        return []
    return list((wide[stack] / wide[other]).dropna())


def lowest(rows: Sequence[Row], settings: Container[str], other: str, count: int) -> dict[str, float]:
    """Returns the settings in which the subject is lowest beside a stack or `BETTER`, and the ratios, lowest first."""
    frame = judged(rows)
    wide = _by_section(frame[[setting in settings for setting in frame["setting"]]])
    if SUBJECT not in wide or other not in wide:
        return {}
    ratios = (wide[SUBJECT] / wide[other]).dropna()
    return {str(setting): float(ratio) for setting, ratio in ratios.nsmallest(count).items()}


def _recorded(frame: pd.DataFrame) -> Table:
    """Returns the goodput of bulk data over recorded sections, beside that of the better link and that of MPTCP."""
    wide = _by_section(frame)
    rows = []
    for stack in wide.columns.drop(BETTER):
        values = pd.Series(_ratios(wide, stack, BETTER), dtype=float)
        quantiles = [f"{values.quantile(part):.2f}" if len(values) else "" for part in (0.1, 0.9)]
        pairs = _ratios(wide, stack, REFERENCE) if stack != REFERENCE else []
        alone, gain = (str(median_of(each)) if each else "" for each in (list(values), pairs))
        reached = f"{(values >= LEAST).sum()} of {len(values)}" if len(values) else ""
        rows.append([f"`{stack}`", f"{wide[stack].median():.1f}", alone, *quantiles, reached, gain])
    header = ["stack", "Mbit/s", "median", "10 %", "90 %", f"at least {LEAST}", f"over `{REFERENCE}`, median"]
    return Table(header, rows, frozenset(range(1, len(header))))


def _short(wide: pd.DataFrame) -> str:
    """Returns the answer to both goals, or nothing without the stacks that they are about."""
    gains, of_better = _ratios(wide, SUBJECT, REFERENCE), _ratios(wide, SUBJECT, BETTER)
    if not gains or not of_better:
        return ""
    gain, reached = median_of(gains), sum(ratio >= LEAST for ratio in of_better)
    gain_verdict = "met" if gain.value >= GAIN else "missed"
    share_verdict = "met" if reached >= GOAL * len(of_better) else "missed"
    return (
        f"Over {len(gains)} recorded sections, `{SUBJECT}` has {gain} times the goodput of `{REFERENCE}` in the "
        f"median; the goal of {GAIN} is {gain_verdict}. It reaches {LEAST} of the better link in {reached} of "
        f"{len(of_better)} sections; the goal of {GOAL:.0%} is {share_verdict}."
    ).replace("%", " %")


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
    """Returns the time of files over all settings. A file that did not arrive counts as the slowest."""
    files = frame[frame["work"].str.startswith("file-")]
    sizes = list(dict.fromkeys(files["work"]))
    rows = []
    for stack in _order(files):
        own = files[files["stack"] == stack]
        times = [own.loc[own["work"] == size, "seconds"].fillna(float("inf")) for size in sizes]
        rows.append([f"`{stack}`", *(_times(each) for each in times)])
    header = ["stack", *(f"{size.removeprefix('file-')} MB" for size in sizes)]
    return Table(header, rows, frozenset(range(1, len(header))))


def _times(times: pd.Series) -> str:
    """Returns the median and the 90 % quantile of times in seconds, or nothing without times."""
    if times.empty:
        return ""
    late = times.quantile(0.9, interpolation="higher")
    return f"{times.median():.2f} s, {f'{late:.2f} s' if late < float('inf') else 'not in time'}"


def _cost(frame: pd.DataFrame) -> Table:
    """Returns the bytes on the links, in both directions, and the processor time, for the data that arrived."""
    frame = frame[frame["user_bytes"] > 0]
    frame = frame.assign(processor_ms=1e9 * frame["processor_s"] / frame["user_bytes"])
    columns = {
        "bytes, bulk": ("bulk", "bytes_per_user_byte", 2),
        "bytes, messages": ("messages", "bytes_per_user_byte", 2),
        "processor time of both programs, bulk, ms per MB": ("bulk", "processor_ms", 0),
    }
    shown = frame[frame["work"].isin([work for work, _, _ in columns.values()])]
    rows = []
    for stack in _order(shown):
        own = shown[shown["stack"] == stack]
        medians = [(own.loc[own["work"] == work, figure].median(), digits) for work, figure, digits in columns.values()]
        rows.append([f"`{stack}`", *("" if pd.isna(value) else f"{value:.{digits}f}" for value, digits in medians)])
    return Table(["stack", *columns], rows, frozenset({1, 2, 3}))


def conditions(rows: Sequence[Row], machine: Machine) -> str:
    """Returns the number of runs, the machine, versions, and the disturbance by other programs."""
    late = sorted(row["late_mean_us"] for row in rows)
    left_out = sum(each >= LATE_US for each in late)
    loads = sorted(row["load"] for row in rows)
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return (
        f"{len(rows):,} runs on Linux {machine['kernel']} with {machine['processors']} processors, {versions}. The "
        f"load average was {loads[0]:.1f} to {loads[-1]:.1f}. The emulator sent packets late by "
        f"{late[len(late) // 2]:.0f} µs in the median of the runs. Runs with a mean above {LATE_US / 1000:g} ms are "
        f"left out: {left_out}."
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
