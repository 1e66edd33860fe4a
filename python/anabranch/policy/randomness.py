"""Description of the class of `self.random`, which is part of the key of a run.

The class belongs to Python's library. A program can replace its methods and the names that they use.
"""

from __future__ import annotations

import builtins
from random import Random as Random
from types import BuiltinFunctionType, CellType, FunctionType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any, TypeAlias

from anabranch.policy import bytecode

Tree: TypeAlias = list[Any]

_PLAIN = (type(None), bool, int, float, str)
_DESCRIPTORS = (MethodDescriptorType, WrapperDescriptorType)
# Members without an effect on the numbers.
_IGNORED = frozenset({"__doc__", "__dict__", "__weakref__", "__annotations__"})
_ABSENT = object()


class Randomness:
    """Tree of the class, its bases, and the functions and values that their methods use.

    `unreadable` lists the names whose values are of another kind than in Python's library.
    """

    def __init__(self) -> None:
        self.unreadable: list[str] = []
        self._seen: dict[int, int] = {}
        bases = [of for of in Random.__mro__ if of is not object]
        self.tree: Tree = [[of.__name__, self._members(of)] for of in bases]

    def _members(self, of: type) -> Tree:
        members = [(name, member) for name, member in vars(of).items() if name not in _IGNORED]
        return [[name, self._value(member, f"{of.__name__}.{name}")] for name, member in members]

    def _value(self, value: Any, place: str) -> Tree:
        if isinstance(value, (staticmethod, classmethod)):
            return [type(value).__name__, self._value(value.__func__, place)]
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, (BuiltinFunctionType, type)):
            return [str(value.__module__), value.__qualname__]
        if isinstance(value, _DESCRIPTORS):
            return [value.__objclass__.__qualname__, value.__name__]
        if type(value) in _PLAIN:
            return [repr(value)]
        if type(value) is tuple:
            return [self._value(each, place) for each in value]
        self.unreadable.append(place)
        return []

    def _function(self, function: FunctionType) -> Tree:
        if id(function) in self._seen:
            return ["again", self._seen[id(function)]]
        self._seen[id(function)] = len(self._seen)
        text, references = bytecode.read(function.__code__)
        chains = [reference.chain for reference in references if isinstance(reference, bytecode.Name)]
        place = function.__qualname__
        keywords = sorted((function.__kwdefaults__ or {}).items())
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        return [
            text,
            self._value(function.__defaults__, place),
            [[name, self._value(value, f"{place}.{name}")] for name, value in keywords],
            [self._value(_content(cell), f"{place}.{name}") for name, cell in cells if name != "__class__"],
            [self._name(function, chain) for chain in chains],
        ]

    def _name(self, function: FunctionType, chain: tuple[str, ...]) -> Tree:
        """Describes a global, or an attribute of a global module."""
        value = function.__globals__.get(chain[0], vars(builtins).get(chain[0], _ABSENT))
        for name in chain[1:]:
            if not isinstance(value, ModuleType):
                break
            value = getattr(value, name, _ABSENT)
        return [list(chain), self._value(value, ".".join(chain))]


def _content(cell: CellType) -> object:
    """Returns the content of a cell; `None` if it is empty."""
    return None if cell == CellType() else cell.cell_contents
