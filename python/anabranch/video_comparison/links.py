"""Parser of paths in the syntax of links of `anabranch relay`: `rate=2Mbit,delay=20ms,loss=2%,queue=50p`.

A link applies to both directions, as with `--link` of the relay, so that the same text has the same meaning. The
scenario checks values that have the format of scenario files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from anabranch.errors import VideoError

EXAMPLE = "rate=2Mbit,delay=20ms,loss=2%,queue=50p"
MAX_PATHS = 8

_KEYS = ("rate", "delay", "loss", "queue", "where", "name")
_MAX_CHARACTERS = 4096
_OUTSIDE_PARENTHESES = re.compile(r",(?![^()]*\))")
_MODEL = re.compile(r"(bernoulli|gilbert-elliott|trace)\(([^()]*)\)")
_SHARE = re.compile(r"\d{1,9}(?:\.\d{1,9})?\s*%?")
_PACKETS = re.compile(r"(\d{1,9})p")


def read_path(text: str, number: int) -> dict[str, Any]:
    """Returns the table of a scenario's path, named `path-NUMBER` by default. Raises `VideoError` about the key."""
    given = _items(text, number)
    for key in ("rate", "delay"):
        if key not in given:
            raise VideoError(f"--paths: path {number}: `{key}` is missing; write a path such as `{EXAMPLE}`")
    table: dict[str, Any] = {
        "name": given.get("name", f"path-{number}"),
        "rate": _rate(given["rate"]),
        "delay": given["delay"],
    }
    if "queue" in given:
        table["queue"] = _PACKETS.sub(r"\1 packets", given["queue"])
    if (loss := _loss(given, number)) is not None:
        table["loss"] = loss
    return table


def _items(text: str, number: int) -> Mapping[str, str]:
    if len(text) > _MAX_CHARACTERS:
        raise VideoError(f"--paths: path {number}: more than {_MAX_CHARACTERS} characters; write it as `{EXAMPLE}`")
    given: dict[str, str] = {}
    for item in _OUTSIDE_PARENTHESES.split(text):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value:
            raise VideoError(
                f"--paths: path {number}: {item.strip()[:64]!a} is no KEY=VALUE; write a path such as `{EXAMPLE}`"
            )
        if key not in _KEYS:
            raise VideoError(f"--paths: path {number} has no {key[:64]!a}; a path has {', '.join(_KEYS)}")
        if key in given:
            raise VideoError(f"--paths: path {number}: `{key}` is there twice in {text[:64]!a}: leave one of them out")
        given[key] = value
    return given


def _rate(text: str) -> str:
    """Returns a rate of scenario files, or one in the short form of tc."""
    return f"{text}/s" if text.endswith("bit") else text


def _loss(given: Mapping[str, str], number: int) -> dict[str, Any] | None:
    if "loss" not in given:
        return None
    text = given["loss"]
    both = {"direction": "both", **({"where": given["where"]} if "where" in given else {})}
    if model := _MODEL.fullmatch(text):
        return {"model": model[1], **_arguments(model[1], model[2], number), **both}
    if not _SHARE.fullmatch(text):
        raise VideoError(
            f"--paths: path {number}: `loss`: expected a share such as 2% or 0.02, or a model such as "
            f"gilbert-elliott(p=0.01,r=0.25), found {text[:64]!a}"
        )
    return None if float(text.rstrip("% ")) == 0 else {"model": "bernoulli", "rate": _share(text), **both}


def _arguments(model: str, inside: str, number: int) -> dict[str, Any]:
    items = [item.strip() for item in inside.split(",") if item.strip()]
    if model == "trace":
        if not all(item.isascii() and item.isdecimal() and len(item) < 10 for item in items):
            raise VideoError(f"--paths: path {number}: `loss`: trace(...) has numbers of packets, as trace(3,17)")
        return {"lost": [int(item) for item in items]}
    found: dict[str, Any] = {}
    for item in items:
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not _SHARE.fullmatch(value):
            raise VideoError(f"--paths: path {number}: `loss`: {item[:64]!a} is no KEY=SHARE, as p=0.01")
        found[key] = _share(value)
    return found


def _share(text: str) -> str | float:
    return text.replace("%", " %").replace("  ", " ") if text.endswith("%") else float(text)
