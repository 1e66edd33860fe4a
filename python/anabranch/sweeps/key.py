"""Keys of runs: a hash of all inputs of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_FORMAT = "anabranch run 1"


class CellKey:
    """Common part of the keys of one scenario and scheme, hashed once for all of their seeds."""

    __slots__ = ("_hash",)

    def __init__(self, *, fingerprint: str, scenario: str, scheme: str, files: Mapping[str, str]) -> None:
        """Hashes the canonical `scenario`, without schemes and seeds, and `files`, the SHA-256 of each sent file."""
        content = [_FORMAT, fingerprint, scenario, scheme, sorted(files.items())]
        self._hash = hashlib.sha256(json.dumps(content).encode() + b"\n")

    def of(self, seed: int) -> str:
        """Returns the key of the run with this seed: 64 hexadecimal digits."""
        run = self._hash.copy()
        run.update(b"%d" % seed)
        return run.hexdigest()
