"""Coded clips in the user's cache folder, so that a clip is encoded once.

The name of a clip's folder is a digest of everything that its bytes depend on. The folder is written under a temporary
name and then renamed, so that no reader finds an incomplete one.
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
from anabranch.sweeps.files import digest_of
from anabranch.video import ffmpeg
from anabranch.video.clips import SOURCES
from anabranch.video.coded import CodedClip, read_coded, write_coded
from anabranch.video.encoder import Coding
from anabranch.video.packets import DEFAULT_PAYLOAD_BYTES
from anabranch.video.user_clip import ReadOptions

VARIABLE = "ANABRANCH_CLIPS"


def clips_folder() -> Path:
    """Returns the folder of coded clips: `$ANABRANCH_CLIPS`, or one in the user's cache folder."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    return Path(platformdirs.user_cache_dir("anabranch", appauthor=False)) / "clips"


def cached_clip(
    name: str,
    reading: ReadOptions | None = None,
    coding: Coding | None = None,
    payload_bytes: int = DEFAULT_PAYLOAD_BYTES,
) -> CodedClip:
    """Returns the clip `name`, a computed one or a file, from the cache. Encodes it if needed. Raises `VideoError`."""
    reading, coding = reading or ReadOptions(), (coding or Coding()).checked()
    place = clips_folder() / _key(name, reading, coding, payload_bytes)
    # A damaged clip is encoded again.
    with contextlib.suppress(VideoError):
        return read_coded(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            write_coded(name, made, reading=reading, coding=coding, payload_bytes=payload_bytes)
            shutil.rmtree(place, ignore_errors=True)
            # Another process may have been faster. Its clip is the same.
            with contextlib.suppress(OSError):
                made.rename(place)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        raise VideoError(
            f"{place.parent}: coded clips cannot be stored here: {error.strerror}; name another folder with ${VARIABLE}"
        ) from error
    return read_coded(place)


def _key(name: str, reading: ReadOptions, coding: Coding, payload_bytes: int) -> str:
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
    """Returns the version, or an empty text if the package is missing. The code that needs it raises the error."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
