"""Identity of a scheme in Python: a hash of its code, of the code that it calls, and of its parameters.

The code is the compiled code, since a file may have changed after it was imported. A run is cached only if all
dependencies of its scheme are proven to be in its key. A dependency outside the analysis excludes the runs from the
cache, unless the scheme declares a version.
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
    """Hash of all that could be read of a scheme, and reasons why its runs may depend on more."""

    digest: str
    reasons: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """`True` if two schemes with this digest make the same runs."""
        return not self.reasons


def identity_of(policy: Policy) -> Identity:
    """Reads the current state of a policy.

    A version in the class covers globals and modules that its methods use. A version of the object covers its
    attributes too.
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
    """Returns the place of the class definition, which distinguishes classes with a version."""
    if policy.version is None:
        return []
    of = type(policy)
    file = getattr(sys.modules.get(of.__module__), "__file__", None)
    return [of.__module__, of.__qualname__, str(Path(file).resolve()) if isinstance(file, str) else ""]


def _settings() -> list[object]:
    """Returns settings of the process that affect conversions between numbers and text."""
    digits = getattr(sys, "get_int_max_str_digits", int)()
    return [digits, sorted(locale.localeconv().items())]


@functools.cache
def _interface() -> str:
    """Returns a hash of the code between a policy in Python and the engine, and of the version of Python."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    content = json.dumps([sys.version, _native.policy_sources(), sources])
    return hashlib.sha256(content.encode()).hexdigest()
