"""Objects that code of a scheme may use without being read, since they do the same in every run.

They are compiled, have no state between runs, and belong to this Python or to the engine, which are both in the key of
a run. All other objects are read, or exclude the runs from the cache.

The package loads this module with the classes of the slots, before an application can change them.
"""

from __future__ import annotations

import _operator
import bisect
import builtins
import cmath
import collections
import functools
import heapq
import itertools
import math
from types import BuiltinFunctionType, FunctionType, ModuleType

from anabranch import _native
from anabranch.policy.slots import CongestionControl, Policy, Retransmit, Scheduler

SLOTS: tuple[type, ...] = (Policy, Scheduler, CongestionControl, Retransmit)

_OF_ENGINE = """
    Acknowledged AssociationFacts Bind Copies Decision DeliverySample HeadOfLine LostChunk PaceAsk Pacing PathFacts
    PathLoss PolicyEvent SendAsk View Wait Window
"""
# Excluded: `set`, `hash` and `id` differ between processes, `print` and `open` reach outside, `getattr` and `type`
# evade the analysis, `bytes` uses codecs that a program may register.
_BUILTINS = """
    abs all any bin bool callable chr complex dict divmod enumerate filter float int isinstance
    issubclass iter len list map max min next object oct ord pow range reversed round slice sorted str sum super tuple
    zip
"""
_COMPILED: dict[ModuleType, tuple[str, ...]] = {
    bisect: ("bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"),
    collections: ("OrderedDict", "defaultdict", "deque"),
    functools: ("reduce",),
    heapq: ("heapify", "heappop", "heappush", "heappushpop", "heapreplace"),
}
_OF_OPERATOR = """
    abs add and_ eq floordiv ge getitem gt index le lt mod mul ne neg not_ or_ pos pow sub truediv
"""


class AllowedObjects:
    """Set of allowed objects by their identity, and of classes whose members have to be unchanged."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, object]] = {}
        for name in _BUILTINS.split():
            self._allow("builtins", name, getattr(builtins, name))
        for name, value in vars(builtins).items():
            if isinstance(value, type) and issubclass(value, BaseException):
                self._allow("builtins", name, value)
        for module in (math, cmath, itertools):
            for name, value in vars(module).items():
                if not name.startswith("_"):
                    self._allow(module.__name__, name, value)
        for name in _OF_OPERATOR.split():
            self._allow("operator", name, getattr(_operator, name))
        for module, names in _COMPILED.items():
            for name in names:
                self._allow(module.__name__, name, getattr(module, name))
        for name in _OF_ENGINE.split():
            self._names[id(getattr(_native, name))] = (f"anabranch.{name}", getattr(_native, name))
        self._members = {of: _state(of) for of in (*SLOTS, *(getattr(_native, name) for name in _OF_ENGINE.split()))}

    def _allow(self, module: str, name: str, value: object) -> None:
        """Allows an object, unless a program has replaced it. Another allowed object keeps its own name."""
        if _is_immutable(value) and getattr(value, "__name__", None) == name:
            self._names[id(value)] = (f"{module}.{name}", value)

    def name_of(self, value: object) -> str | None:
        """Returns the name of an allowed object, and `None` for any other."""
        name, known = self._names.get(id(value), (None, None))
        return name if known is value else None

    def changed(self) -> list[str]:
        """Returns the names of classes of the package whose members have changed since they were loaded."""
        return [of.__name__ for of, then in self._members.items() if not _equal(_state(of), then)]


def _is_immutable(value: object) -> bool:
    """Returns `True` for a compiled function, and for a class whose members cannot be replaced."""
    return isinstance(value, BuiltinFunctionType) or (isinstance(value, type) and bool(value.__flags__ & 1 << 8))


def _state(of: type) -> dict[str, object]:
    """Returns the bases and members of a class, and the parts of its methods."""
    # `copy` stores the slots of a class in the class.
    state: dict[str, object] = {name: member for name, member in vars(of).items() if name != "__slotnames__"}
    for name, member in vars(of).items():
        if isinstance(member, FunctionType):
            attributes = {**vars(member), **(member.__kwdefaults__ or {})}
            state |= {f"{name} {attribute}": value for attribute, value in attributes.items()}
            state |= {f"code of {name}": member.__code__, f"defaults of {name}": member.__defaults__}
    return {**state, "its class": type(of), "its bases": of.__bases__}


def _equal(now: dict[str, object], then: dict[str, object]) -> bool:
    return now.keys() == then.keys() and all(now[name] is then[name] for name in then)


ALLOWED_OBJECTS = AllowedObjects()
