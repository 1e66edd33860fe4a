"""Detection of methods that `dataclass` generated: they follow from the fields, which are part of the key."""

from __future__ import annotations

import builtins
import dataclasses
import weakref
from types import FunctionType
from typing import Any

from anabranch.policy.bytecode import Name, read, text_of

TABLES = frozenset({"__dataclass_fields__", "__dataclass_params__"})
"""Members that `dataclass` adds. No code of a scheme can use them without a reason to leave its runs uncached."""
_ARGUMENTS = ("init", "repr", "eq", "order", "unsafe_hash", "frozen")

_twins: weakref.WeakKeyDictionary[type, type | None] = weakref.WeakKeyDictionary()


def is_dataclass(of: type) -> bool:
    """Returns `True` if the class itself was decorated, and not one of its bases."""
    return "__dataclass_fields__" in vars(of)


def fields_of(of: type) -> list[tuple[str, object, object]]:
    """Returns the name of each field with its default value and default factory."""
    return [(field.name, _present(field.default), _present(field.default_factory)) for field in dataclasses.fields(of)]


def _present(value: object) -> object:
    return ("nothing",) if value is dataclasses.MISSING else (value,)


def text_if_generated(of: type, name: str, member: object) -> str | None:
    """Returns the text of a member that `dataclass` would generate from the fields of the class; `None` for other
    members.

    The member is compared with that of a second class with the same fields, since names are no proof.
    """
    if not is_dataclass(of) or not isinstance(member, FunctionType):
        return None
    if of not in _twins:
        _twins[of] = _twin(of)
    twin = _twins[of]
    if twin is None or not _is_same(member, vars(twin).get(name), {id(of): twin}):
        return None
    return text_of(member.__code__)


def _is_same(one: object, other: object, twins: dict[int, type]) -> bool:
    """Returns `True` if two values of methods are one, twins, or functions with the same parts and globals."""
    if one is other or twins.get(id(one)) is other:
        return True
    if type(one) is set and type(other) is set:
        # `repr` keeps the objects that it describes in a set, which is empty between calls.
        return not one and not other
    if not isinstance(one, FunctionType) or not isinstance(other, FunctionType):
        return False
    if text_of(one.__code__) != text_of(other.__code__):
        return False
    ours, theirs = _parts(one), _parts(other)
    return ours.keys() == theirs.keys() and all(_is_same(ours[name], theirs[name], twins) for name in ours)


def _parts(function: FunctionType) -> dict[str, object]:
    """Returns defaults, attributes, closure and globals of a function.

    The function's code and texts are compared separately.
    """
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    names = [reference.chain[0] for reference in read(function.__code__)[1] if isinstance(reference, Name)]
    known = {**vars(builtins), **function.__globals__}
    return {
        **{f"default {at}": value for at, value in enumerate(function.__defaults__ or ())},
        **{f"keyword {name}": value for name, value in (function.__kwdefaults__ or {}).items()},
        **{f"attribute {name}": value for name, value in vars(function).items()},
        **{f"cell {name}": cell.cell_contents for name, cell in cells},
        **{f"global {name}": known.get(name) for name in names},
    }


def _twin(of: type) -> type | None:
    """Returns a class with the same fields and no code of its own; `None` if that is impossible."""
    parameters = vars(of)["__dataclass_params__"]
    arguments: dict[str, Any] = {name: getattr(parameters, name) for name in _ARGUMENTS}
    hook = {"__post_init__": lambda self: None} if hasattr(of, "__post_init__") else {}
    fields: list[tuple[str, type, Any]] = [(field.name, object, _copy(field)) for field in dataclasses.fields(of)]
    try:
        return dataclasses.make_dataclass(of.__name__, fields, namespace=hook, **arguments)
    except (TypeError, ValueError):
        return None


def _copy(field: dataclasses.Field[Any]) -> Any:
    settings = {name: getattr(field, name) for name in ("init", "repr", "hash", "compare", "kw_only")}
    if field.default is not dataclasses.MISSING:
        settings["default"] = field.default
    if field.default_factory is not dataclasses.MISSING:
        settings["default_factory"] = field.default_factory
    return dataclasses.field(**settings)
