"""Identity of a scheme in Python: a hash of its code, of the code that it calls, and of its parameters.

The hash covers the compiled code, because a source file may change after its import. The runs of a scheme are cached
only if the hash covers everything that they depend on. If the analysis cannot read a dependency, the runs are not
cached, unless the scheme declares a version.
"""

from __future__ import annotations

import functools
import hashlib
import json
import locale
import sys
from dataclasses import dataclass
from pathlib import Path

from anabranch import _native
from anabranch.policy.slots import Policy
from anabranch.policy.walk import Walk


@dataclass(frozen=True, slots=True)
class Identity:
    """Hash of the readable state of a scheme, and the reasons why its runs may depend on state outside the hash."""

    digest: str
    reasons: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """`True` if schemes with equal digests produce equal runs."""
        return not self.reasons


def identity_of(policy: Policy) -> Identity:
    """Returns the identity of a policy in its current state.

    A `version` of the class stands for the globals and modules that its methods use, which are then not read. A
    `version` of the object stands for its attributes too.
    """
    walk = Walk(follows=policy.version is None)
    try:
        tree = walk.of_policy(policy)
        content = json.dumps([_interface(), _settings(), policy.base, policy.version, _place(policy), tree])
    except RecursionError:
        return Identity("", ("it is nested too deeply",))
    if policy.version is None:
        reasons = (*walk.code_reasons, *walk.value_reasons)
    else:
        reasons = () if "version" in getattr(policy, "__dict__", {}) else tuple(walk.value_reasons)
    return Identity(hashlib.sha256(content.encode()).hexdigest(), reasons)


def _place(policy: Policy) -> list[str]:
    """Returns module, name and file of the class. Two classes with the same version then have different identities."""
    if policy.version is None:
        return []
    of = type(policy)
    file = getattr(sys.modules.get(of.__module__), "__file__", None)
    return [of.__module__, of.__qualname__, str(Path(file).resolve()) if isinstance(file, str) else ""]


def _settings() -> list[object]:
    """Returns the settings of the process that affect conversions between numbers and text."""
    digits = getattr(sys, "get_int_max_str_digits", int)()
    return [digits, sorted(locale.localeconv().items())]


@functools.cache
def _interface() -> str:
    """Returns a hash of the code that connects policies in Python with the engine, and of the version of Python."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    content = json.dumps([sys.version, _native.policy_sources(), sources])
    return hashlib.sha256(content.encode()).hexdigest()
