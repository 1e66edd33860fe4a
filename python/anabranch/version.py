"""Version, commit and fingerprint of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch import _native


@dataclass(frozen=True, slots=True)
class Engine:
    """Identity of the engine inside this package.

    `version` is that of the package. `commit` is the one it was built from: "unknown" outside a checkout, with the
    suffix "-dirty" if the engine's sources differed from the commit's. `fingerprint` is a SHA-256 in hexadecimal over
    those sources: two engines with the same fingerprint give the same runs.
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
