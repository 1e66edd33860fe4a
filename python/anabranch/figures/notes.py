"""Notes on intervals in figures."""

from __future__ import annotations

import pandas as pd


def note_of(table: pd.DataFrame, shown_as: str = "band", what: str = "mean", each: str = "run") -> str:
    """Describes the rows of `summary` or `paired_difference`: confidence, n, and the reasons for missing intervals."""
    lines = []
    with_interval = table[table["kind"] == "interval"]
    if not with_interval.empty:
        first = with_interval.iloc[0]
        name = "t-interval" if first["interval"] == "t" else "normal interval"
        lines.append(f"{what}, {shown_as}: {100 * first['confidence']:g} % {name}, {_n(with_interval['n'])}")
    same = table[table["kind"] == "deterministic"]
    if not same.empty:
        lines.append(f"no {shown_as}: all {each}s the same, {_n(same['n'])}")
    if (table["kind"] == "single").any():
        lines.append(f"no {shown_as}: a single {each}, n = 1")
    if left_out := int(table.get("left_out", pd.Series(dtype=int)).sum()):
        lines.append(f"{left_out} {'run' if left_out == 1 else 'runs'} without a value left out")
    return "\n".join(lines)


def name_of(scheme: str, rows: pd.DataFrame) -> str:
    """Returns the label of a line, with the reason if it has no interval anywhere."""
    kinds = set(rows["kind"]) - {"none"}
    if kinds == {"deterministic"}:
        return f"{scheme} (deterministic)"
    return f"{scheme} (n = 1)" if kinds == {"single"} else scheme


def _n(counts: pd.Series[int]) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"n = {low}" if low == high else f"n = {low} to {high}"
