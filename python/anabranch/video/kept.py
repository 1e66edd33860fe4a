"""Coded clips that are kept in the user's folder of caches, so that a clip is encoded once.

A clip stands in a folder that is called after everything that its bytes depend on. It is written beside its place and
moved there, so that nobody reads half of one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from importlib import metadata
from pathlib import Path

import platformdirs

from anabranch.errors import VideoError
from anabranch.sweep.files import digest_of
from anabranch.video import ffmpeg
from anabranch.video.clips import SOURCES
from anabranch.video.coded import CodedClip, read_coded, write_coded
from anabranch.video.encoder import Coding
from anabranch.video.packets import DEFAULT_PAYLOAD_BYTES
from anabranch.video.user_clip import Reading

VARIABLE = "ANABRANCH_CLIPS"


def clips_folder() -> Path:
    """Where coded clips are kept: `$ANABRANCH_CLIPS`, or the user's folder of caches."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    return Path(platformdirs.user_cache_dir("anabranch", appauthor=False)) / "clips"


def kept_clip(
    name: str,
    reading: Reading | None = None,
    coding: Coding | None = None,
    payload_bytes: int = DEFAULT_PAYLOAD_BYTES,
) -> CodedClip:
    """The clip `name`, a computed one or a file, as it was kept, or encoded now. Raises `VideoError`."""
    reading, coding = reading or Reading(), (coding or Coding()).checked()
    place = clips_folder() / _key(name, reading, coding, payload_bytes)
    # One that is damaged is made anew.
    with contextlib.suppress(VideoError):
        return read_coded(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            write_coded(name, made, reading=reading, coding=coding, payload_bytes=payload_bytes)
            shutil.rmtree(place, ignore_errors=True)
            # Another process may have been faster; its clip is the same.
            with contextlib.suppress(OSError):
                made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise VideoError(
            f"{place.parent}: coded clips cannot be kept here: {error.strerror}; name another folder with ${VARIABLE}"
        ) from error
    return read_coded(place)


def _key(name: str, reading: Reading, coding: Coding, payload_bytes: int) -> str:
    if name in SOURCES:
        content = [name, _version("scikit-image"), _version("numpy")]
    else:
        try:
            # Size and rate may come from the file's name.
            content = [Path(name).name, digest_of(Path(name)), ""]
        except OSError as error:
            raise VideoError(f"{name}: cannot be read: {error.strerror}") from error
    key = [*content, ffmpeg.version(), str(asdict(reading)), asdict(coding), payload_bytes]
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


def _version(package: str) -> str:
    """Empty for one that is missing: what needs it says so."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
