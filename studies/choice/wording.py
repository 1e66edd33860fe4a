"""How schemes, conditions and numbers are written in maps and tables."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_SHORT = {
    "cmt+min-rtt-var": "+rtt-var",
    "mptcp-ns2(shared-window=true)": "ns2-sw",
    "cmt+round-robin": "+rrobin",
    "cmt+opportunistic": "+opport",
    "cmt+rescheduling": "+resched",
    "cmt+redundant": "+redund",
    "cmt+weighted": "+weight",
}


def short(scheme: str) -> str:
    """A scheme's name as it fits into a cell: `cmt+` is `+`, and `mptcp-` is `mp-`."""
    if scheme in _SHORT:
        return _SHORT[scheme]
    return scheme.replace("cmt+", "+", 1).replace("mptcp-", "mp-", 1)


def signed_percent(part: float) -> str:
    """`+23 %`, `-4 %`, `0 %`; twice and more is written as such: `x2.1`."""
    if part >= 1:
        return f"x{1 + part:.1f}"
    text = f"{100 * part:+.0f} %"
    return "0 %" if text in ("+0 %", "-0 %") else text


def percent(part: float, decimals: int = 0) -> str:
    """`79 %`."""
    return f"{100 * part:.{decimals}f} %"


def with_half_width(part: float, half_width: float) -> str:
    """`+23.1 ± 0.4 %`, or without an interval where there is none."""
    text = f"{round(100 * part, 1) + 0.0:+.1f}"
    return f"{text} %" if math.isnan(half_width) else f"{text} ± {100 * half_width:.1f} %"


def buffer_text(kib: float) -> str:
    """`32 KiB`, `1 MiB`."""
    return f"{kib / 1024:g} MiB" if kib >= 1024 else f"{kib:g} KiB"


def ratio_text(ratio: float) -> str:
    """`1/4`, `4`."""
    return str(Fraction(ratio).limit_denominator(100))


def file_name(scheme: str) -> str:
    """A scheme's name without what file systems and links do not like.

    >>> file_name("mptcp-ns2(shared-window=true)")
    'mptcp-ns2-shared-window-true'
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "-", scheme).strip("-")
