"""Reader of the bytecode of a function: its text, and the names that it refers to."""

from __future__ import annotations

import dis
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType

_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_LOADED_ATTRIBUTES = _ATTRIBUTES | {"LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD"}
_NAMED_ATTRIBUTES = _LOADED_ATTRIBUTES | {"STORE_ATTR", "DELETE_ATTR"}
# Instructions without an effect on the analysis.
_NO_INSTRUCTIONS = frozenset({"EXTENDED_ARG", "CACHE", "PUSH_NULL", "PRECALL"})
_CALLS = frozenset({"CALL", "CALL_FUNCTION", "CALL_METHOD"})
_VARIABLES = frozenset({"LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL"})
_ITERATIONS = frozenset({"GET_ITER", "CONTAINS_OP", "LIST_EXTEND", "UNPACK_SEQUENCE"})
_SETS = frozenset({"BUILD_SET", "SET_ADD", "SET_UPDATE"})
# Methods of a dict whose results make sets with the operators `&`, `|`, `^` and `-`, here and in called functions.
_VIEWS = frozenset({"keys", "items"})
# Built-ins that read a view and make no set of it.
_READER_NAMES = "all any dict enumerate iter len list max min sorted sum tuple"
_READERS_OF_VIEWS = frozenset(_READER_NAMES.split())
_CODEC = "which leads to codecs, and a program may register its own: use text or a list"
_REFUSED = {
    "seed": "which may take randomness from the machine: give an attribute of your own another name",
    "encode": _CODEC,
    "decode": _CODEC,
    "to_bytes": _CODEC,
    "randbytes": _CODEC,
}
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
class Builtin:
    """Name that has to refer to the built-in of this name, since the analysis depends on its behaviour."""

    name: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """Use that the analysis cannot follow, as a phrase that continues the function's name."""

    why: str


@dataclass(frozen=True, slots=True)
class Caught:
    """Name of a global class of exceptions that a function catches."""

    name: str


Reference = Name | Builtin | Caught | Unknown


# Code that was read, with its text and its references. Code objects are immutable, and are read before each run.
_read: dict[int, tuple[CodeType, str, list[Reference]]] = {}
_MAX_READ = 10_000


def read(code: CodeType) -> tuple[str, list[Reference]]:
    """Returns the code as text, and the unique names that it refers to, including those of nested functions."""
    if id(code) not in _read:
        if len(_read) >= _MAX_READ:
            _read.clear()
        _read[id(code)] = (code, text_of(code), list(dict.fromkeys(_references(code))))
    _, text, references = _read[id(code)]
    return text, references


def _references(code: CodeType) -> Iterator[Reference]:
    instructions = dis.get_instructions(code)
    steps = [step for step in instructions if step.opname not in _NO_INSTRUCTIONS or step.is_jump_target]
    for at, step in enumerate(steps):
        yield from _of_step(steps, at, step)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _references(constant)
        else:
            yield from _hidden_names(constant)


def _of_handler(steps: Sequence[dis.Instruction], start: int) -> Iterator[Reference]:
    """Yields the exceptions that the handler at a step catches. Further handlers of the same block follow it."""
    names: list[str] = []
    # The end of `except … as name` deletes the name.
    if [step.opname.partition("_")[0] for step in steps[start : start + 4]] == ["LOAD", "STORE", "DELETE", "RERAISE"]:
        return
    for at, step in enumerate(steps[start:], start):
        if step.opname in ("CHECK_EXC_MATCH", "JUMP_IF_NOT_EXC_MATCH"):
            yield from map(Caught, names)
            jump = steps[at + 1] if step.opname == "CHECK_EXC_MATCH" else step
            following = next(each for each, other in enumerate(steps) if other.offset == jump.argval)
            if steps[following].opname != "RERAISE":
                yield from _of_handler(steps, following)
            return
        if step.opname == "LOAD_GLOBAL":
            names.append(str(step.argval))
        elif step.opname not in ("BUILD_TUPLE", "DUP_TOP"):
            break
    yield Unknown("uses `with`, `finally` or an `except` that does not name its exceptions")


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
    elif step.opname == "PUSH_EXC_INFO":
        yield from _of_handler(steps, at + 1)
    elif step.opname in ("SETUP_FINALLY", "SETUP_WITH"):
        yield from _of_handler(steps, next(each for each, other in enumerate(steps) if other.offset == step.argval))
    elif step.opname == "MATCH_CLASS":
        for attribute in steps[at - 1].argval:
            yield from _of_attribute((), -1, attribute)
    elif step.opname in _LOADED_ATTRIBUTES:
        yield from _of_attribute(steps, at, name)
    elif step.opname in _NAMED_ATTRIBUTES:
        yield from _forbidden(name)


def _of_attribute(steps: Sequence[dis.Instruction], at: int, name: str) -> Iterator[Reference]:
    """Yields the uses of an attribute that is read.

    If `steps` is empty, the analysis does not know how the attribute is read.
    """
    if name == "format" and not _is_plain_format(steps, at):
        yield Unknown("uses `format`, which may read any attribute: use an f-string")
    elif name in _VIEWS and not _is_iterated(steps, at):
        reader = _reader_of_view(steps, at)
        if reader is None:
            yield Unknown(f"uses `{name}`, which can make a set, except in a loop or as `list(table.{name}())`")
        else:
            yield Builtin(reader)
    elif name == "__init__":
        yield _of_init(steps, at)
    elif name in _REFUSED:
        yield Unknown(f"uses `{name}`, {_REFUSED[name]}")
    yield from _forbidden(name)


def _has_two_origins(steps: Sequence[dis.Instruction], first: int, last: int) -> bool:
    """Returns `True` if a jump between two steps can replace the value of the first."""
    return any(step.is_jump_target for step in steps[first + 1 : last + 1])


def _is_iterated(steps: Sequence[dis.Instruction], at: int) -> bool:
    """Returns `True` if an attribute is called, and the result used in a loop or a test of membership only."""
    after = [step.opname for step in steps[at + 1 : at + 3]]
    return len(after) == 2 and after[0] in _CALLS and after[1] in _ITERATIONS


def _reader_of_view(steps: Sequence[dis.Instruction], at: int) -> str | None:
    """Returns the name of the built-in whose only argument is the called attribute of a variable, or `None`."""
    calls = [step.argval for step in steps[at + 1 : at + 3] if step.opname in _CALLS]
    if at < 0 or calls != [0, 1]:
        return None
    start = at - 1
    while start > 0 and steps[start].opname in _ATTRIBUTES:
        start -= 1
    if start < 1 or steps[start].opname not in _VARIABLES or steps[start - 1].opname != "LOAD_GLOBAL":
        return None
    name = str(steps[start - 1].argval)
    return name if name in _READERS_OF_VIEWS and not _has_two_origins(steps, start - 1, at + 2) else None


def _of_init(steps: Sequence[dis.Instruction], at: int) -> Reference:
    """Returns the use of `__init__`, which would take randomness from the machine if the object were `self.random`."""
    before = [(step.opname, step.argval) for step in steps[max(at - 2, 0) : max(at, 0)]]
    is_of_method = at >= 0 and steps[at].opname.startswith("LOAD_SUPER") and not (steps[at].arg or 0) & 2
    is_call = before[:1] == [("LOAD_GLOBAL", "super")] and before[1:] in [[(name, 0)] for name in _CALLS]
    if is_of_method or (is_call and not _has_two_origins(steps, at - 2, at)):
        return Builtin("super")
    if before and before[-1][0] == "LOAD_GLOBAL" and not _has_two_origins(steps, at - 1, at):
        return Name((str(before[-1][1]), "__init__"))
    return Unknown("uses `__init__` of an object: call it as `super().__init__()`")


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
    before = steps[at - 1] if at > 0 and not _has_two_origins(steps, at - 1, at) else None
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
    elif isinstance(constant, bytes):
        yield Unknown(f"uses bytes, {_CODEC}")


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
