"""Function that an executor calls in its workers."""

from __future__ import annotations

import functools
import json
import os
import socket
import threading
import time
import uuid
import zlib
from pathlib import Path
from typing import Any

from anabranch import _native
from anabranch.errors import AnabranchError
from anabranch.sweeps.files import digest_of
from anabranch.version import engine

# Identifier of this process among all workers.
_PROCESS = uuid.uuid4().hex


def compute(unit: str) -> bytes:
    """Makes the runs of a unit, one after the other in this thread; see `unit.pack`.

    Errors are returned as text, since another version may not be able to decode an exception.
    """
    try:
        texts, seconds = _make(json.loads(unit))
    except AnabranchError as error:
        return _packed({"error": f"{socket.gethostname()}: {error}"}, [])
    return _packed({"slot": f"{_PROCESS}-{threading.get_ident()}", "seconds": seconds}, texts)


def _packed(report: dict[str, Any], texts: list[str]) -> bytes:
    return zlib.compress("\n".join([json.dumps(report), *texts]).encode(), 1)


def _make(unit: dict[str, Any]) -> tuple[list[str], list[float]]:
    _check_engine(unit)
    _check_files(unit)
    prepared = [
        _prepared(unit["scenarios"][scenario], scheme, unit["folder"], unit["file"])
        for scenario, scheme in unit["cells"]
    ]
    jobs = [(prepared[cell], seed) for cell, seed in unit["runs"]]
    texts, seconds = [""] * len(jobs), [0.0] * len(jobs)
    last = time.perf_counter()

    def done(index: int, text: str) -> None:
        nonlocal last
        now = time.perf_counter()
        texts[index], seconds[index] = text, now - last
        last = now

    # One thread: the executor decides how many workers are busy.
    _native.run_batch(jobs, done, threads=1)
    # A file may have been replaced during the runs.
    _check_files(unit)
    return texts, seconds


@functools.lru_cache(maxsize=32)
def _prepared(scenario: str, scheme: str, folder: str, file: str) -> _native.Prepared:
    return _native.Prepared(scenario, scheme, folder, file)


def _check_engine(unit: dict[str, Any]) -> None:
    here = engine()
    if here.fingerprint != unit["fingerprint"]:
        raise AnabranchError(
            f"this worker has anabranch {here.version} with engine {here.fingerprint[:12]}, the sweep was started by "
            f"{unit['version']} with engine {unit['fingerprint'][:12]}: install the same version on all machines"
        )


def _check_files(unit: dict[str, Any]) -> None:
    for path, digest in unit["files"].items():
        full = Path(unit["folder"]) / path
        try:
            state = os.stat(full)
            same = _digest(str(full), state.st_mtime_ns, state.st_size) == digest
        except OSError as error:
            raise AnabranchError(f"{full}: {error.strerror}; {_SHARED}") from error
        if not same:
            raise AnabranchError(f"{full}: differs from the file that the sweep was started with; {_SHARED}")


_SHARED = "files that flows send have to be on every worker under the same path, as on a shared file system"


@functools.lru_cache(maxsize=64)
def _digest(path: str, _modified_ns: int, _size: int) -> str:
    return digest_of(Path(path))
