"""Text of schemes, conditions and numbers in maps and tables."""

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
    """Returns a scheme's short name for a cell: `cmt+` is `+`, and `mptcp-` is `mp-`."""
    if scheme in _SHORT:
        return _SHORT[scheme]
    return scheme.replace("cmt+", "+", 1).replace("mptcp-", "mp-", 1)


def signed_percent(part: float) -> str:
    """Returns `+23 %`, `-4 %` or `0 %`, and from twice on a factor: `x2.1`."""
    if part >= 1:
        return f"x{1 + part:.1f}"
    text = f"{100 * part:+.0f} %"
    return "0 %" if text in ("+0 %", "-0 %") else text


def percent(part: float, decimals: int = 0) -> str:
    """Returns a percentage such as `79 %`."""
    return f"{100 * part:.{decimals}f} %"


def with_half_width(part: float, half_width: float) -> str:
    """Returns `+23.1 ± 0.4 %`, or the value alone without an interval."""
    text = f"{round(100 * part, 1) + 0.0:+.1f}"
    return f"{text} %" if math.isnan(half_width) else f"{text} ± {100 * half_width:.1f} %"


def buffer_text(kib: float) -> str:
    """Returns `32 KiB` or `1 MiB`."""
    return f"{kib / 1024:g} MiB" if kib >= 1024 else f"{kib:g} KiB"


def ratio_text(ratio: float) -> str:
    """Returns `1/4` or `4`."""
    return str(Fraction(ratio).limit_denominator(100))


def file_name(scheme: str) -> str:
    """Returns a scheme's name without characters that file systems and links do not allow.

    >>> file_name("mptcp-ns2(shared-window=true)")
    'mptcp-ns2-shared-window-true'
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "-", scheme).strip("-")
