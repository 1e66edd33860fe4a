"""Version, commit and fingerprint of the engine."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch import _native


@dataclass(frozen=True, slots=True)
class Engine:
    """The engine inside this package.

    `version` is that of the package. `commit` is the one it was built from: "unknown" outside a checkout, with "-dirty"
    behind it if the engine's sources were others than the commit's. `fingerprint` is a SHA-256 in hexadecimal over
    those sources: two engines that share it give the same runs.
    """

    version: str
    commit: str
    fingerprint: str


def engine() -> Engine:
    """The engine inside this package, for manifests and as part of the key under which runs are kept.

    >>> len(engine().fingerprint)
    64
    """
    return Engine(**_native.engine())
