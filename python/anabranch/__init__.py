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
    from anabranch.engine import Engine as Engine
    from anabranch.engine import engine as engine

    __version__: str

# Where each public name is defined. What type checkers see is above; a test holds the two together.
_HOMES = {
    "Engine": "anabranch.engine",
    "engine": "anabranch.engine",
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
