"""Reader of the bytecode of a function: its text, and the names that it refers to."""

from __future__ import annotations

import dis
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_NAMED_ATTRIBUTES = _ATTRIBUTES | {"STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"}
_NO_INSTRUCTIONS = frozenset({"EXTENDED_ARG", "CACHE"})
_SETS = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})
# Instructions that access a namespace outside the analysis.
_NAMESPACES = {
    "STORE_GLOBAL": "assigns the global",
    "DELETE_GLOBAL": "deletes the global",
    "LOAD_NAME": "defines a class, whose body uses",
    "STORE_NAME": "defines a class, whose body assigns",
    "LOAD_CLASSDEREF": "defines a class, whose body uses",
    "LOAD_FROM_DICT_OR_GLOBALS": "defines a class, whose body uses",
    "LOAD_FROM_DICT_OR_DEREF": "defines a class, whose body uses",
}
# Special methods of objects. The analysis reads the classes that define them.
_PROTOCOLS = """
    abs add and bool call contains delitem divmod enter eq exit float floordiv ge getitem gt iadd imul index init int
    invert isub iter itruediv le len lt matmul mod mul ne neg next or pos post_init pow radd reversed rmul round rsub
    rtruediv setitem sub truediv xor
"""
_ALLOWED_DUNDERS = frozenset(f"__{name}__" for name in _PROTOCOLS.split())
# Attributes that lead from an object of a run to frames and namespaces of the interpreter.
_FRAME_NAMES = """
    gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await cr_origin ag_frame ag_code ag_await f_back f_builtins
    f_code f_globals f_locals f_trace tb_frame tb_next mro format_map func_globals
"""
_FRAMES = frozenset(_FRAME_NAMES.split())


@dataclass(frozen=True, slots=True)
class Name:
    """Global name that a function reads, with the attributes that it reads of its value at once."""

    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attribute:
    """Attribute that a function reads or writes, of any object."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Use that the analysis cannot follow, as a phrase that continues the function's name."""

    why: str


Reference = Name | Attribute | Unknown


# Code that was read, with its text and its references. Code objects are immutable, and are read before each run.
_read: dict[int, tuple[CodeType, str, list[Reference]]] = {}
_MOST_READ = 10_000


def read(code: CodeType) -> tuple[str, list[Reference]]:
    """Returns the code as text, and the unique names that it refers to, including those of nested functions."""
    if id(code) not in _read:
        if len(_read) >= _MOST_READ:
            _read.clear()
        _read[id(code)] = (code, text_of(code), list(dict.fromkeys(_references(code))))
    _, text, references = _read[id(code)]
    return text, references


def _references(code: CodeType) -> Iterator[Reference]:
    steps = [step for step in dis.get_instructions(code) if step.opname not in _NO_INSTRUCTIONS]
    for at, step in enumerate(steps):
        yield from _of_step(steps, at, step)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _references(constant)
        else:
            yield from _hidden_names(constant)


def _of_step(steps: Sequence[dis.Instruction], at: int, step: dis.Instruction) -> Iterator[Reference]:
    name = str(step.argval)
    if step.opname == "LOAD_GLOBAL":
        yield Name((name, *_attributes_after(steps, at)))
    elif step.opname == "IMPORT_NAME":
        yield Unknown(f"imports `{name}`: import it where the module begins")
    elif step.opname == "LOAD_BUILD_CLASS":
        yield Unknown("defines a class: define it where the module begins")
    elif step.opname in _NAMESPACES:
        yield Unknown(f"{_NAMESPACES[step.opname]} `{name}`")
    elif step.opname in _SETS or _is_iterated_set(steps, at):
        yield Unknown("uses a set, whose order may differ in each process: use a list or a dict")
    elif step.opname in _NAMED_ATTRIBUTES:
        if name == "format" and not _is_plain_format(steps, at):
            yield Unknown("uses `format`, which may read any attribute: use an f-string")
        yield from _forbidden(name)
        yield Attribute(name)


def _attributes_after(steps: Sequence[dis.Instruction], at: int) -> Iterator[str]:
    for step in steps[at + 1 :]:
        if step.opname not in _ATTRIBUTES:
            return
        yield str(step.argval)


def _is_iterated_set(steps: Sequence[dis.Instruction], at: int) -> bool:
    """Returns `True` if a constant set is used for more than a test of membership."""
    if steps[at].opname != "LOAD_CONST" or not isinstance(steps[at].argval, frozenset):
        return False
    return steps[at + 1].opname != "CONTAINS_OP"


def _is_plain_format(steps: Sequence[dis.Instruction], at: int) -> bool:
    """Returns `True` if `format` belongs to a constant text that reads no attributes."""
    before = steps[at - 1] if at else None
    if before is None or before.opname != "LOAD_CONST" or not isinstance(before.argval, str):
        return False
    try:
        fields = [(field or "") + (spec or "") for _, field, spec, _ in string.Formatter().parse(before.argval)]
    except ValueError:
        return False
    return not any(mark in field for field in fields for mark in ("[", "{", "._")) and "__" not in before.argval


def _hidden_names(constant: object) -> Iterator[Reference]:
    """Yields forbidden attributes that a constant names, for example for `getattr` and patterns of `match`."""
    if isinstance(constant, (tuple, frozenset)):
        for item in constant:
            yield from _hidden_names(item)
    elif isinstance(constant, str):
        yield from _forbidden(constant)


def _forbidden(name: str) -> Iterator[Unknown]:
    is_dunder = name.startswith("__") and name.endswith("__") and name.isidentifier()
    if name in _FRAMES or (is_dunder and name not in _ALLOWED_DUNDERS):
        yield Unknown(f"uses the attribute `{name}`")


def text_of(code: CodeType) -> str:
    """Returns the code as text: its instructions with their names and constants."""
    constants = [_constant(constant) for constant in code.co_consts]
    parts = [code.co_name, code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount]
    names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    return repr([*parts, names, constants, code.co_code, getattr(code, "co_exceptiontable", b"")])


def _constant(constant: object) -> str:
    if isinstance(constant, CodeType):
        return text_of(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_constant, constant))})"
    if isinstance(constant, frozenset):
        # The order of a set differs in each process.
        return f"frozenset({', '.join(sorted(map(_constant, constant)))})"
    if type(constant) is int:
        # Long numbers have no decimal text.
        return f"int({constant:x})"
    return repr(constant)
