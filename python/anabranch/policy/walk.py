"""Traversal of all that an object's methods can reach: code, values, and the state of referenced objects.

The result is a tree of lists and texts that differs if any of these differ. An unreadable object adds a reason and
leaves a gap in the tree.
"""

from __future__ import annotations

import collections
import copyreg
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, TypeAlias

from anabranch.policy import bytecode, generated
from anabranch.policy.allowed_objects import ALLOWED_OBJECTS, SLOTS
from anabranch.policy.randomness import Randomness
from anabranch.policy.slots import Policy

Tree: TypeAlias = list[Any]

# Members of classes that no method can reach without naming them as an attribute.
_IGNORED_NAMES = """
    __module__ __qualname__ __doc__ __dict__ __weakref__ __annotations__ __firstlineno__ __static_attributes__
    __annotate_func__ __annotations_cache__ __slots__ __slotnames__
"""
_IGNORED = frozenset(_IGNORED_NAMES.split())
# Objects without references, whose content never changes. Bytes are excluded: registered codecs may decode them.
_PLAIN = (type(None), bool, float, complex, str, range, type(...), type(NotImplemented))
_COMPILED = (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
# Built-in exceptions that follow from the code and its values. A class of the application is raised by its code only.
_CATCHABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    StopIteration,
    TypeError,
    ValueError,
)
# Classes whose instances have no content except their attributes.
_ROOTS = (object, *SLOTS)
_MAX_VALUES = 200_000
_MAX_REASONS = 20
_ABSENT = object()


class Walk:
    """Reader of objects, each once: its number replaces further occurrences.

    `code_reasons` lists the unreadable parts of code and of its references, `value_reasons` those of the attributes of
    the object. If `follows` is `False`, functions are read without the globals and modules that they refer to.
    """

    def __init__(self, *, follows: bool = True) -> None:
        self._follows = follows
        self.code_reasons: list[str] = []
        self.value_reasons: list[str] = []
        self._depth = 0
        self._count = 0
        self._numbers: dict[int, int] = {}
        # The identity of a removed object may be reused for another one.
        self._held: list[object] = []
        self._readers: dict[type, Callable[[Any, str], Tree]] = {
            FunctionType: self._function,
            MethodType: lambda value, place: self._items([value.__func__, value.__self__], place),
            functools.partial: self._partial,
            list: self._items,
            tuple: self._items,
            dict: self._pairs,
            collections.OrderedDict: self._pairs,
            collections.defaultdict: lambda value, place: [
                self.of(value.default_factory, place),
                *self._pairs(value, place),
            ],
            collections.deque: lambda value, place: [value.maxlen, *self._items(value, place)],
        }

    def of_policy(self, policy: Policy) -> Tree:
        """Reads a policy: its class, its attributes, its randomness, and the classes of the package that it meets."""
        for changed in ALLOWED_OBJECTS.changed():
            self._unknown(f"`{changed}` of anabranch was changed")
        randomness = Randomness()
        for unreadable in randomness.unreadable:
            self._unknown(f"`{unreadable}` of Python's `random` was changed")
        return [randomness.tree, self.of(policy, f"`{type(policy).__name__}`")]

    def of(self, value: Any, place: str) -> Tree:
        """Reads a value that `place` refers to."""
        self._count += 1
        if self._count > _MAX_VALUES:
            return self._unknown(f"it has more than {_MAX_VALUES} values")
        kind = type(value)
        if kind in _PLAIN:
            return [kind.__name__, repr(value)]
        if kind is int:
            # Long numbers have no decimal text.
            return ["int", f"{value:x}"]
        if kind is object:
            return self._unknown(f"{place}, an object of `object` whose content cannot be read")
        if name := ALLOWED_OBJECTS.name_of(value):
            return ["allowed", name]
        if id(value) in self._numbers:
            return ["again", self._numbers[id(value)]]
        self._numbers[id(value)] = len(self._numbers)
        self._held.append(value)
        if reader := self._readers.get(kind):
            return [kind.__name__, *reader(value, place)]
        if isinstance(value, type):
            return ["class", *self._class(value, place)]
        return ["object", *self._instance(value, place)]

    def _unknown(self, reason: str) -> Tree:
        reasons = self.code_reasons if self._depth else self.value_reasons
        if reason not in reasons and len(reasons) < _MAX_REASONS:
            reasons.append(reason)
        return ["unknown"]

    @contextmanager
    def _in_code(self) -> Iterator[None]:
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def _items(self, values: Iterable[object], place: str) -> Tree:
        return [self.of(value, place) for value in values]

    def _pairs(self, values: Mapping[Any, object], place: str) -> Tree:
        return [[self.of(key, place), self.of(value, place)] for key, value in values.items()]

    def _partial(self, value: functools.partial[Any], place: str) -> Tree:
        return [*self._items([value.func, value.args, value.keywords], place), *self._pairs(vars(value), place)]

    def _function(self, function: FunctionType, place: str) -> Tree:
        if _is_of_library(function):
            return self._unknown(f"{place}, which may give different results in each run")
        called = f"`{function.__qualname__}`"
        code = function.__code__
        text, references = bytecode.read(code)
        with self._in_code() if self._follows else nullcontext():
            cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
            return [
                text,
                self._items(function.__defaults__ or (), f"{called} has a default value"),
                self._pairs(function.__kwdefaults__ or {}, f"{called} has a default value"),
                self._pairs(vars(function), f"{called} has an attribute"),
                [self._cell(cell, f"{called} uses `{name}`") for name, cell in cells],
                [self._reference(function, each, called) for each in references if self._follows],
            ]

    def _cell(self, cell: Any, place: str) -> Tree:
        try:
            return self.of(cell.cell_contents, place)
        except ValueError:
            return self._unknown(f"{place}, which has no value yet")

    def _reference(self, function: FunctionType, reference: bytecode.Reference, called: str) -> Tree:
        if isinstance(reference, bytecode.Name):
            return self._global(function, reference.chain, called)
        if isinstance(reference, bytecode.Unknown):
            return self._unknown(f"{called} {reference.why}")
        if isinstance(reference, bytecode.Caught):
            return self._caught(function, reference.name, called)
        if reference.name in function.__globals__:
            return self._unknown(f"{called} uses a `{reference.name}` that is not the built-in")
        return []

    def _caught(self, function: FunctionType, name: str, called: str) -> Tree:
        """Checks a caught exception. Others than these may depend on the machine, the caller or filters of warnings."""
        of = function.__globals__.get(name, _builtins_of(function).get(name))
        if type(of) is type and (issubclass(of, _CATCHABLE) or ALLOWED_OBJECTS.name_of(of) is None):
            return []
        return self._unknown(f"{called} catches `{name}`, which may depend on the machine: name other exceptions")

    def _global(self, function: FunctionType, chain: tuple[str, ...], called: str) -> Tree:
        """Reads a global, or an attribute of a global module."""
        read, rest = chain[0], list(chain[1:])
        value = function.__globals__.get(read, _ABSENT)
        if value is _ABSENT:
            value = _builtins_of(function).get(read, _ABSENT)
            if value is not _ABSENT and ALLOWED_OBJECTS.name_of(value) is None:
                return self._unknown(f"{called} uses the built-in `{read}`")
        while isinstance(value, ModuleType) and rest:
            read, value = f"{read}.{rest[0]}", _of_module(value, rest.pop(0))
        if value is _ABSENT:
            return self._unknown(f"{called} uses `{read}`, which is not there")
        if isinstance(value, ModuleType):
            return self._unknown(f"{called} uses the module `{read}` as a value")
        return [read, self.of(value, f"{called} uses `{read}`")]

    def _class(self, of: type, place: str) -> Tree:
        if of in SLOTS:
            return [of.__name__]
        with self._in_code():
            if type(of) is not type:
                self._unknown(f"{place}, a class with the metaclass `{type(of).__name__}`")
            if _is_of_library(of) or _is_compiled(of):
                return self._unknown(f"{place}, a class that is not known to do the same in every run")
            fields = generated.fields_of(of) if generated.is_dataclass(of) else []
            members = [
                [name, generated.text_if_generated(of, name, member) or self._member(of, name, member)]
                for name, member in vars(of).items()
                if name not in _IGNORED and name not in generated.TABLES
            ]
            named = f"`{of.__name__}`"
            bases = self._items(of.__mro__[1:], f"{named} has a base")
            return [of.__name__, bases, self.of(fields, f"{named} has a field"), members]

    def _member(self, of: type, name: str, member: Any) -> Tree:
        place = f"`{of.__name__}.{name}`"
        kind = type(member)
        if kind in (staticmethod, classmethod):
            return [kind.__name__, self.of(member.__func__, place)]
        if kind is property:
            return ["property", *self._items([member.fget, member.fset, member.fdel], place)]
        if kind is functools.cached_property:
            return ["cached", self.of(member.func, place)]
        if kind is functools.partialmethod:
            return ["partial", *self._items([member.func, member.args, member.keywords], place)]
        if kind is MemberDescriptorType and member.__objclass__ is of:
            return ["slot"]
        return self.of(member, place)

    def _instance(self, value: Any, place: str) -> Tree:
        of = type(value)
        if isinstance(value, _COMPILED):
            return self._unknown(f"{place}, which may give different results in each run")
        if of in copyreg.dispatch_table or any(_is_compiled(each) for each in of.__mro__ if each not in _ROOTS):
            return self._unknown(f"{place}, an object of `{of.__qualname__}` whose content cannot be read")
        attributes = [*getattr(value, "__dict__", {}).items(), *_slots(value)]
        return [
            self.of(of, place),
            [[name, self.of(each, f"{place} has the attribute `{name}`")] for name, each in attributes],
        ]


def _builtins_of(function: Any) -> dict[str, Any]:
    """Returns the built-ins of the module in which a function was defined."""
    known: dict[str, Any] = function.__builtins__
    return known


def _of_module(module: ModuleType, name: str) -> Any:
    """Returns an attribute of a module without running code, except that of this package, which loads its own on first
    use."""
    if module.__name__ == "anabranch":
        return getattr(module, name, _ABSENT)
    return vars(module).get(name, _ABSENT) if type(module) is ModuleType else _ABSENT


def _is_of_library(value: Any) -> bool:
    """Returns `True` for objects of Python's library or of this package, of which only the allowed ones are known."""
    return str(value.__module__).partition(".")[0] in (*sys.stdlib_module_names, "anabranch")


def _is_compiled(of: type) -> bool:
    """Returns `True` for a class that is not written in Python."""
    in_python = of.__flags__ & (1 << 9)
    given = (member for name, member in vars(of).items() if name not in _IGNORED)
    return not in_python or any(isinstance(member, _COMPILED) for member in given)


def _slots(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the attributes in slots of the object's classes."""
    for of in type(value).__mro__:
        for name, member in vars(of).items():
            if isinstance(member, MemberDescriptorType):
                try:
                    yield name, member.__get__(value, type(value))
                except AttributeError:
                    continue
