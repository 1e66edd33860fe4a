"""Multipath SCTP: simulate it, measure it, compare its schemes, and use it.

The names below are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch import errors as errors
    from anabranch.catalogue import Card as Card
    from anabranch.catalogue import Catalogue as Catalogue
    from anabranch.catalogue import schemes as schemes
    from anabranch.engine import Engine as Engine
    from anabranch.engine import engine as engine
    from anabranch.run import Run as Run
    from anabranch.run import run as run
    from anabranch.scenario import Association as Association
    from anabranch.scenario import Background as Background
    from anabranch.scenario import Event as Event
    from anabranch.scenario import Flow as Flow
    from anabranch.scenario import Link as Link
    from anabranch.scenario import Loss as Loss
    from anabranch.scenario import Path as Path
    from anabranch.scenario import Reverse as Reverse
    from anabranch.scenario import RunSettings as RunSettings
    from anabranch.scenario import Scenario as Scenario
    from anabranch.scenario import Scheme as Scheme
    from anabranch.series import Series as Series
    from anabranch.series import read_trace as read_trace

    __version__: str

# Where each public name is defined. What type checkers see is above; a test holds the two together.
_HOMES = {
    "Association": "anabranch.scenario",
    "Background": "anabranch.scenario",
    "Card": "anabranch.catalogue",
    "Catalogue": "anabranch.catalogue",
    "Engine": "anabranch.engine",
    "Event": "anabranch.scenario",
    "Flow": "anabranch.scenario",
    "Link": "anabranch.scenario",
    "Loss": "anabranch.scenario",
    "Path": "anabranch.scenario",
    "Reverse": "anabranch.scenario",
    "Run": "anabranch.run",
    "RunSettings": "anabranch.scenario",
    "Scenario": "anabranch.scenario",
    "Scheme": "anabranch.scenario",
    "Series": "anabranch.series",
    "engine": "anabranch.engine",
    "read_trace": "anabranch.series",
    "run": "anabranch.run",
    "schemes": "anabranch.catalogue",
}


if not TYPE_CHECKING:  # With it in sight, a type checker would take any name for one of the package's.

    def __getattr__(name: str) -> object:
        if name == "errors":
            value = importlib.import_module("anabranch.errors")
        elif name == "__version__":
            value = importlib.import_module("anabranch.engine").engine().version
        elif name in _HOMES:
            value = getattr(importlib.import_module(_HOMES[name]), name)
        else:
            raise AttributeError(f"module 'anabranch' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*_HOMES, "__version__", "errors"])


class _Package(ModuleType):
    """Keeps `anabranch.engine` the function when the module of that name is loaded.

    The import system binds a module to its package once it is loaded. The function in it has to win, in any order.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and _HOMES.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
