"""Limits after which packets of a frame are abandoned (RFC 3758, RFC 7496), for all frames or by their type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from anabranch.errors import VideoError
from anabranch.video.frame import FrameType

_MAX_RETRANSMISSIONS = (1 << 16) - 1
_MAX_LIFETIME_MS = 3_600_000.0
_MAX_PRIORITY = (1 << 32) - 1
_TEXT = re.compile(r"(?:([IPB])=)?(?:(full)|(lifetime|retransmissions|priority):(\d{1,10}(?:\.\d{1,6})?) ?(ms|s)?)")
EXPECTED = "full, lifetime:TIME, retransmissions:N or priority:N, with I=, P= or B= before it for one type of frames"


class LimitKind(Enum):
    """Kind of a limit of retransmission."""

    NONE = "full"
    LIFETIME = "lifetime"
    RETRANSMISSIONS = "retransmissions"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True)
class Limit:
    """Limit of retransmission. `value` is in milliseconds for a lifetime, and 0 without a limit."""

    kind: LimitKind
    value: float = 0

    def __str__(self) -> str:
        if self.kind is LimitKind.NONE:
            return "full"
        unit = "ms" if self.kind is LimitKind.LIFETIME else ""
        return f"{self.kind.value}:{self.value:g}{unit}"


Reliability = Mapping[FrameType, Limit]


def until_playout(deadline_ms: float) -> Reliability:
    """Returns the default: every packet is abandoned after the deadline, close to the playout of its frame."""
    return dict.fromkeys(FrameType, Limit(LimitKind.LIFETIME, deadline_ms))


def read_reliability(texts: Iterable[str], deadline_ms: float) -> Reliability:
    """Returns the default with the given limits. Raises `VideoError` for an invalid limit, or one given twice."""
    found: dict[FrameType | None, Limit] = {}
    for text in texts:
        kind, limit = _read(text)
        if kind in found:
            raise VideoError(f"{text[:32]!a}: there is a limit for these frames already: omit one of them")
        found[kind] = limit
    default = found.get(None)
    return {kind: found.get(kind) or default or limit for kind, limit in until_playout(deadline_ms).items()}


def _read(text: str) -> tuple[FrameType | None, Limit]:
    said = _TEXT.fullmatch(text)
    if said is None:
        raise VideoError(f"{text[:32]!a} is not a reliability: give {EXPECTED}")
    letter, full, word, number, unit = said.groups()
    kind = FrameType(letter) if letter else None
    return kind, Limit(LimitKind.NONE) if full else _limit(text, LimitKind(word), float(number), unit)


def _limit(text: str, kind: LimitKind, number: float, unit: str | None) -> Limit:
    if kind is LimitKind.LIFETIME:
        lifetime_ms = number * (1000 if unit == "s" else 1)
        if unit is None or not 0 < lifetime_ms <= _MAX_LIFETIME_MS:
            raise VideoError(f"{text[:32]!a}: a lifetime has a unit and is above 0, as lifetime:150ms, up to 1 h")
        return Limit(kind, lifetime_ms)
    most = _MAX_RETRANSMISSIONS if kind is LimitKind.RETRANSMISSIONS else _MAX_PRIORITY
    if unit is not None or not number.is_integer() or number > most:
        raise VideoError(f"{text[:32]!a}: expected a whole number up to {most}")
    return Limit(kind, number)
