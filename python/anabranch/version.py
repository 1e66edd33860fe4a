"""Version, commit and fingerprint of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch import _native


@dataclass(frozen=True, slots=True)
class Engine:
    """Identity of the engine inside this package.

    `version` is the version of the package. `commit` is the commit from which the engine was built, or "unknown" if it
    was built outside a checkout. The suffix "-dirty" marks sources that differ from the commit. `fingerprint` is the
    SHA-256 of the engine's sources, in hexadecimal. Two engines with the same fingerprint give the same runs.
    """

    version: str
    commit: str
    fingerprint: str


def engine() -> Engine:
    """Returns the engine inside this package, for manifests and for the keys of cached runs.

    >>> len(engine().fingerprint)
    64
    """
    return Engine(**_native.engine())
