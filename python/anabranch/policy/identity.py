"""Names what the runs of a scheme in Python depend on: its code, that of what it calls, and its parameters.

The code is that which was compiled from the source: a file may have changed since it was imported. A run is only kept
if all that its scheme depends on is proven to be in its key. What the analysis does not follow leaves the runs out of
the cache, unless the scheme declares a version.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from anabranch import _native
from anabranch.policy.slots import Policy
from anabranch.policy.walk import Walk


@dataclass(frozen=True, slots=True)
class Identity:
    """Hash of all that could be read of a scheme, and the reasons why that is not all that its runs depend on."""

    digest: str
    reasons: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Returns `True` if two schemes with this digest make the same runs."""
        return not self.reasons


def identity_of(policy: Policy) -> Identity:
    """Reads a policy as it is now.

    A version in the class answers for what its methods refer to. One that the object has itself answers for its
    attributes too.
    """
    walk = Walk(follows=policy.version is None)
    try:
        tree = walk.of_policy(policy)
        content = json.dumps([_interface(), policy.base, policy.version, _place(policy), tree])
    except RecursionError:
        return Identity("", ("it is nested too deeply",))
    if policy.version is None:
        reasons = (*walk.code_reasons, *walk.value_reasons)
    else:
        reasons = () if "version" in getattr(policy, "__dict__", {}) else tuple(walk.value_reasons)
    return Identity(hashlib.sha256(content.encode()).hexdigest(), reasons)


def _place(policy: Policy) -> str:
    """Returns where the class is defined, which tells classes with a version apart."""
    return "" if policy.version is None else f"{type(policy).__module__}.{type(policy).__qualname__}"


@functools.cache
def _interface() -> str:
    """Returns a hash of what lies between a policy in Python and the engine, and of the Python that executes it."""
    sources = [path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py"))]
    content = json.dumps([sys.version, _native.policy_sources(), sources])
    return hashlib.sha256(content.encode()).hexdigest()
