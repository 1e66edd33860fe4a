"""Given schemes: a name or expression, or an object with policies in Python."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from anabranch import _native
from anabranch._native import SchemeError
from anabranch.policy.identity import Identity, identity_of
from anabranch.policy.randomness import Random
from anabranch.policy.slots import CongestionControl, Policy, Retransmit, Scheduler

SchemeLike: TypeAlias = "str | Policy"

_SLOTS: Mapping[type[Policy], tuple[str, ...]] = {
    Scheduler: ("pick",),
    CongestionControl: ("grow", "cut", "pace"),
    Retransmit: ("route",),
}
_NAME_LENGTH = 100
# Attributes of an object that are no parameters.
_NO_PARAMETERS = ("name", "version")
_NAME = re.compile(rf"(?=.{{1,{_NAME_LENGTH}}}\Z)[^\W\d][\w.+-]*(\([\w.+=,-]*\))?")


class CachePermission:
    """Decides whether runs of a scheme may be cached: all their dependencies are known, and no run has changed them."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.reasons = identity.reasons

    @property
    def is_allowed(self) -> bool:
        """`True` while runs may be cached."""
        return not self.reasons

    def check(self, policy: Policy) -> None:
        """Compares the scheme with its original state. Call before each run, which uses the current state."""
        if self.is_allowed and policy.version is None and identity_of(policy) != self.identity:
            self.reasons = (
                "a run changed state that later runs depend on, such as a global or an attribute of a class",
            )


@dataclass(frozen=True, slots=True)
class PythonScheme:
    """Scheme with policies in Python."""

    name: str
    base: str
    policy: Policy
    hooks: tuple[str, ...]
    cache_permission: CachePermission

    def native(self) -> tuple[str, Any, list[str]]:
        """Returns the scheme in the form of the native module."""
        return self.name, self._object, list(self.hooks)

    def _object(self, seed: int, association: int) -> Policy:
        """Returns the object for one association of a run."""
        self.cache_permission.check(self.policy)
        policy = copy.deepcopy(self.policy)
        object.__setattr__(policy, "random", Random(f"{seed}/{association}"))
        return policy


def resolve_scheme(scheme: object) -> str | PythonScheme:
    """Returns a scheme that is given by name or as an object. Raises `SchemeError` for anything else."""
    if isinstance(scheme, str):
        return scheme
    if isinstance(scheme, type) and issubclass(scheme, Policy):
        raise SchemeError(f"{scheme.__name__} is a class: give an object of it, {scheme.__name__}()")
    if not isinstance(scheme, Policy):
        raise SchemeError(
            f'{scheme!r} is not a scheme: give a name such as "cmt", or an object of a class that descends from '
            "anabranch.Scheduler, CongestionControl or Retransmit"
        )
    hooks = _hooks(scheme)
    name = _name(scheme)
    _check_version(scheme)
    return PythonScheme(name, scheme.base, scheme, hooks, CachePermission(identity_of(scheme)))


def _hooks(policy: Policy) -> tuple[str, ...]:
    """Returns the methods that the object's class overrides."""
    of = type(policy)
    slots = [slot for slot in _SLOTS if isinstance(policy, slot)]
    hooks: list[str] = []
    for slot in slots:
        own = [hook for hook in _SLOTS[slot] if getattr(of, hook) is not getattr(slot, hook)]
        if not own:
            needed = " or ".join(f"`{hook}`" for hook in _SLOTS[slot])
            raise SchemeError(f"{of.__name__} is a {slot.__name__} without a method {needed}: define one")
        hooks += own
    if not hooks:
        raise SchemeError(
            f"{of.__name__} fills no slot: let it descend from anabranch.Scheduler, CongestionControl or Retransmit"
        )
    if of.on_event is not Policy.on_event:
        hooks.append("on_event")
    return tuple(hooks)


def _name(policy: Policy) -> str:
    name = policy.name if policy.name is not None else _described(policy)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SchemeError(
            f"`name` of {type(policy).__name__} is {name!r}: a name has letters, digits and any of _.+-, begins with a "
            f"letter, may end with parameters in brackets, and is at most {_NAME_LENGTH} characters long"
        )
    if _is_known(name):
        raise SchemeError(f"{name} is a scheme that there is already: give {type(policy).__name__} another `name`")
    return name


def _check_version(policy: Policy) -> None:
    version: object = policy.version
    if version is not None and not (isinstance(version, str) and 1 <= len(version) <= _NAME_LENGTH):
        raise SchemeError(
            f"`version` of {type(policy).__name__} is {version!r}: a version is a text of 1 to {_NAME_LENGTH} "
            'characters, such as "1"; give an attribute that means something else another name'
        )


def _described(policy: Policy) -> str:
    """Returns the class with the object's public attributes, if they are allowed in a name."""
    public = [(key, value) for key, value in getattr(policy, "__dict__", {}).items() if not key.startswith("_")]
    plain = [(key, value) for key, value in public if isinstance(value, (bool, int, float, str))]
    words = [f"{key}={_word(value)}" for key, value in plain if key not in _NO_PARAMETERS]
    name = type(policy).__name__
    described = f"{name}({','.join(words)})" if words else name
    return described if _NAME.fullmatch(described) else name


def _word(value: bool | int | float | str) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _is_known(name: str) -> bool:
    """Returns `True` if the name is an expression of the registry."""
    try:
        _native.schemes_of('[[path]]\nrate = "1 Mbit/s"\ndelay = "1 ms"\n[run]\nduration = "1 s"\n', "scheme", name)
    except SchemeError:
        return False
    return True
