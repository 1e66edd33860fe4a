"""Detection of methods that `dataclass` generated: they follow from the fields, which are part of the key."""

from __future__ import annotations

import dataclasses
import weakref
from types import FunctionType
from typing import Any

from anabranch.policy.bytecode import text_of

_TABLES = frozenset({"__dataclass_fields__", "__dataclass_params__", "__match_args__"})
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


def is_generated(of: type, name: str, member: object) -> bool:
    """Returns `True` if `dataclass` would generate this member from the fields of the class.

    The member is compared with that of a second class with the same fields, since names are no proof.
    """
    if not is_dataclass(of):
        return False
    if name in _TABLES:
        return True
    if of not in _twins:
        _twins[of] = _twin(of)
    other = vars(_twins[of]).get(name) if _twins[of] is not None else None
    return isinstance(member, FunctionType) and isinstance(other, FunctionType) and _same(member, other)


def _same(one: FunctionType, other: FunctionType) -> bool:
    """Returns `True` if two functions, and those that they wrap, are equal."""
    if text_of(one.__code__) != text_of(other.__code__):
        return False
    inner, of_other = vars(one).get("__wrapped__"), vars(other).get("__wrapped__")
    if isinstance(inner, FunctionType) and isinstance(of_other, FunctionType):
        return _same(inner, of_other)
    return inner is None and of_other is None


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
