"""Calls of ffmpeg, by default the one in the package imageio-ffmpeg."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Literal

from anabranch.errors import VideoError

INSTALL = "pip install 'anabranch[video]'"

# The end of ffmpeg's errors, which has the cause.
_TAIL_BYTES = 4096
_TAIL_LINES = 3
_ASK_LIMIT_S = 60.0
# One thread: the same input gives the same output, and the time limit is that of one core.
_COMMON = ("-hide_banner", "-nostdin", "-y", "-loglevel", "error")
SINGLE_THREAD = ("-threads", "1", "-filter_threads", "1", "-filter_complex_threads", "1")

Kind = Literal["encoders", "decoders", "filters"]


@lru_cache(maxsize=1)
def executable() -> str:
    """Returns the path of ffmpeg. Raises `VideoError` with the command that installs it."""
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise VideoError(f"video needs the package imageio-ffmpeg, which is not installed: {INSTALL}") from error
    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as error:
        raise VideoError("imageio-ffmpeg finds no ffmpeg for this machine: name one in IMAGEIO_FFMPEG_EXE") from error


@lru_cache(maxsize=1)
def version() -> str:
    """Returns the first line of `ffmpeg -version`, which identifies the build."""
    return _asked("version").splitlines()[0].strip()


def require(kind: Kind, *names: str) -> None:
    """Raises `VideoError` unless ffmpeg has these encoders, decoders or filters."""
    there = _names(kind)
    for name in names:
        if name not in there:
            raise VideoError(
                f"{executable()}: this ffmpeg has no {kind[:-1]} `{name}`: unset IMAGEIO_FFMPEG_EXE and use the one of "
                f"imageio-ffmpeg: {INSTALL}"
            )


@lru_cache(maxsize=3)
def _names(kind: Kind) -> frozenset[str]:
    # Each line has flags, a name, and a description.
    return frozenset(words[1] for line in _asked(kind).splitlines() if len(words := line.split()) > 1)


def _asked(what: str) -> str:
    command = [executable(), "-hide_banner", f"-{what}"]
    try:
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VideoError(f"{executable()}: does not run ({error}): {INSTALL}") from error
    if ended.returncode != 0 or not ended.stdout.strip():
        raise VideoError(f"{executable()}: does not run (exit status {ended.returncode}): {INSTALL}")
    return ended.stdout.decode("utf-8", "replace")


def run(
    arguments: Sequence[str], name: str, limit_s: float, *, folder: Path | None = None, silent: bool = False
) -> None:
    """Runs ffmpeg in `folder`. Raises `VideoError` about `name` if it fails, or takes longer than `limit_s`.

    With `silent`, an error that ffmpeg reports and then conceals counts as a failure.
    """
    with tempfile.TemporaryFile() as errors:
        try:
            ended = subprocess.run(
                [executable(), *_COMMON, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                timeout=limit_s,
                cwd=folder,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise VideoError(
                f"{name}: ffmpeg did not end within {limit_s:g} s and was stopped: give a shorter or smaller clip"
            ) from error
        except OSError as error:
            raise VideoError(f"{executable()}: does not run ({error}): {INSTALL}") from error
        if ended.returncode != 0 or (silent and errors.seek(0, 2) > 0):
            raise VideoError(f"{name}: ffmpeg failed (exit status {ended.returncode}): {_tail(errors)}")


def _tail(errors: IO[bytes]) -> str:
    """Returns the last lines that ffmpeg wrote, on one line. A file may control their content, so they are escaped."""
    errors.seek(0, 2)
    errors.seek(max(errors.tell() - _TAIL_BYTES, 0))
    lines = errors.read().decode("utf-8", "replace").splitlines()
    last = [line.strip() for line in lines if line.strip()][-_TAIL_LINES:]
    return escaped("; ".join(last)) or "without a message"


def escaped(text: str) -> str:
    """Returns the text with characters that are not printable replaced by escape sequences."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def file_url(path: Path) -> str:
    """Returns a path that ffmpeg takes neither for an option nor for another protocol."""
    return f"file:{path.absolute()}"
