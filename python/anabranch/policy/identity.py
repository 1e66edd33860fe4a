"""What the runs of a scheme in Python depend on: its code, that of what it calls, and its parameters, as one hash.

The code is that which was compiled from the source: a file may have changed since it was imported. A scheme that uses
something whose content cannot be known has no identity, and its runs are not kept.
"""

from __future__ import annotations

import dataclasses
import dis
import functools
import hashlib
import json
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from anabranch import _native
from anabranch.policy.slots import CongestionControl, Policy, Retransmit, Scheduler

_OURS = (Policy, Scheduler, CongestionControl, Retransmit, object)
# Modules whose functions may give something else each time.
_UNSTEADY = {"random", "time", "datetime", "os", "secrets", "uuid", "threading", "socket", "subprocess"}
# What every class has, and what has no part in what its methods do.
_IGNORED = {"__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__"}
_IGNORED |= {"__static_attributes__", "__abstractmethods__", "__parameters__", "__orig_bases__", "__annotate_func__"}

_OF_DATACLASSES = {"__dataclass_fields__", "__dataclass_params__", "__match_args__", "__replace__"}


class _UnknownError(Exception):
    """Something has a content that cannot be known."""


def identity_of(policy: Policy) -> str | None:
    """The hash; `None` if the scheme depends on something that cannot be known."""
    try:
        parts = _Parts()
        parts.value(getattr(policy, "__dict__", {}))
        parts.of_class(type(policy))
    except _UnknownError:
        return None
    content = json.dumps([_interface(), policy.base, parts.found])
    return hashlib.sha256(content.encode()).hexdigest()


@functools.cache
def _interface() -> str:
    """What lies between a policy in Python and the engine, and the Python that executes it."""
    content = f"{sys.version_info[:2]}\n{_native.policy_sources()}"
    return hashlib.sha256(content.encode()).hexdigest()


class _Parts:
    """Collects what a class depends on."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._seen: set[int] = set()

    def value(self, value: object) -> None:
        """A value that is written in full."""
        self.found.append(_written(value))

    def of_class(self, of: type) -> None:
        """A class and those that it descends from."""
        for each in of.__mro__:
            if each in _OURS or id(each) in self._seen:
                continue
            self._seen.add(id(each))
            if each.__module__.split(".")[0] in sys.stdlib_module_names and each.__module__ != "__main__":
                raise _UnknownError
            if type(each) is not type or hasattr(each, "__slots__"):
                raise _UnknownError
            self.found.append(each.__name__)
            if "__dataclass_fields__" in vars(each):
                self.value([field.name for field in dataclasses.fields(each)])
            for name, member in vars(each).items():
                if name not in _IGNORED and not _is_generated(each, name, member):
                    self.found.append(name)
                    self._member(member)

    def _member(self, member: object) -> None:
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, property):
            for function in (member.fget, member.fset, member.fdel):
                if function is not None:
                    self._member(function)
        elif isinstance(member, FunctionType):
            self._function(member)
        else:
            self.value(member)

    def _function(self, function: FunctionType) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        self.found.append(_code(function.__code__))
        self.value([function.__defaults__ or (), function.__kwdefaults__ or {}])
        for cell in function.__closure__ or ():
            # `__class__`, which `super()` refers to, is what is being looked at.
            self._used(_content(cell))
        for name in sorted(set(_globals_of(function.__code__))):
            if name.partition(".")[0] in _UNSTEADY:
                raise _UnknownError
            if name in function.__globals__:
                self._used(function.__globals__[name])

    def _used(self, value: Any) -> None:
        """What a function refers to."""
        if isinstance(value, ModuleType):
            first = value.__name__.split(".")[0]
            if first in _UNSTEADY or not (first in sys.stdlib_module_names or first == "anabranch"):
                raise _UnknownError
        elif isinstance(value, type):
            if value.__module__.split(".")[0] != "anabranch" and not _is_builtin(value):
                self.of_class(value)
        elif isinstance(value, FunctionType):
            if value.__module__.split(".")[0] != "anabranch":
                self._function(value)
        elif callable(value) and _is_builtin(value):
            self.found.append(str(value.__name__))
        else:
            self.value(value)


def _is_builtin(value: Any) -> bool:
    return getattr(value, "__module__", None) in ("builtins", "math")


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError as error:
        raise _UnknownError from error


def _is_generated(of: type, name: str, member: object) -> bool:
    """Whether `dataclass` made it of what the source of the class says."""
    if "__dataclass_fields__" not in vars(of):
        return False
    code = getattr(member, "__code__", None)
    made_there = code is not None and code.co_filename in ("<string>", dataclasses.__file__)
    return name in _OF_DATACLASSES or (name.startswith("__") and made_there)


def _globals_of(code: CodeType) -> Iterator[str]:
    """The names that a function looks up or imports, those in functions inside it too."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _code(code: CodeType) -> str:
    """What a function does: its instructions with the names and constants that they refer to."""
    constants = [_constant(constant) for constant in code.co_consts]
    parts = [code.co_name, code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount]
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    return repr([*parts, names, constants, code.co_code, getattr(code, "co_exceptiontable", b"")])


def _constant(constant: object) -> str:
    """A constant of a function."""
    if isinstance(constant, CodeType):
        return _code(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_constant, constant))})"
    if isinstance(constant, frozenset):
        return f"frozenset({', '.join(sorted(map(_constant, constant)))})"
    return repr(constant)


def _written(value: object) -> str:
    """A value of Python's own types, in which nothing else is hidden."""
    if value is None or type(value) in (bool, int, float, str, bytes):
        return repr(value)
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({', '.join(_written(item) for item in value)})"  # type: ignore[attr-defined]
    if type(value) is dict:
        return f"dict({', '.join(f'{_written(key)}: {_written(item)}' for key, item in value.items())})"
    raise _UnknownError
