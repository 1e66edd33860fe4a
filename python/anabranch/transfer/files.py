"""Transfer of files and folders, as `anabranch send` and `anabranch recv` do it.

The command runs in a process of its own and reports in lines of JSON. The interpreter therefore stays free, in a
notebook too, and Ctrl-C ends a transfer as it does on a terminal.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from anabranch.errors import TransferError
from anabranch.transfer.checking import time_option

FilePath: TypeAlias = "str | os.PathLike[str]"
ShowProgress: TypeAlias = "bool | Callable[[TransferProgress], object] | None"
OnClash: TypeAlias = Literal["refuse", "rename", "overwrite"]

# Time that the command has after Ctrl-C to end the transfer with its peer.
_GOODBYE_S = 10.0
# Maximum number of files named in an error, and of bytes of the command's standard error.
_MAX_NAMED = 5
_MAX_SAID = 4096
# Sentences that the command writes about its options.
_MORE = "For more information, try '--help'."
_REFUSED = re.compile(r"invalid value '(?P<value>.*?)' for '--(?P<option>[a-z-]+)[^']*'")
# Arguments whose names differ from those of their options.
_ARGUMENTS = {
    "connect-timeout": "connect_timeout_s",
    "retry": "retry_s",
    "on-clash": "on_clash",
    "dir": "folder",
    "path": "paths",
    "to": "remote",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgress:
    """Progress of a transfer."""

    seconds: float
    found_bytes: int
    """Bytes of the files that were offered so far."""
    all_found: bool
    """`True` once `found_bytes` counts all files."""
    all_bytes: int | None
    """Bytes of the whole transfer. `None` until the source has counted its files."""
    all_files: int | None
    """Files of the whole transfer. `None` until the source has counted them."""
    done_files: int
    """Number of complete files."""
    file: str | None
    """Current file. Control characters in its name are escaped."""
    eta_s: float | None
    """Seconds that remain at the current rate. `None` if there is no estimate."""
    held_bytes: int
    """Bytes that the receiver has, including those from before the transfer."""
    reused_bytes: int
    """Bytes that the receiver had before the transfer."""
    rate_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferredFile:
    """File or folder of a transfer."""

    name: str
    """Name, with control characters escaped."""
    size_bytes: int | None
    result: Literal["stored", "identical", "failed"]
    renamed: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferResult:
    """Result of a complete transfer."""

    files: tuple[TransferredFile, ...]
    seconds: float
    moved_bytes: int
    """Bytes that this transfer sent."""
    reused_bytes: int
    """Bytes that the receiver had before the transfer."""
    goodput_bytes_per_s: float


def send(
    files: FilePath | Sequence[FilePath],
    to: str,
    *,
    paths: Sequence[str] = (),
    remote: Sequence[str] = (),
    scheme: str | None = None,
    limit: str | None = None,
    connect_timeout_s: float | None = None,
    retry_s: float | None = None,
    keys: FilePath | None = None,
    insecure: bool = False,
    progress: ShowProgress = None,
) -> TransferResult:
    """Sends files and folders to `anabranch serve` at `to`, a host or `host:port`.

    `paths` are the local addresses or interfaces that paths begin at (default: all usable ones). `remote` are addresses
    that they lead to in place of the host's own. `limit` is a rate such as `"10Mbit"`. `keys` is the folder with this
    user's key and known hosts (default: the user's own folder). `insecure` transfers without encryption and keys; the
    other side has to use it too. Other arguments, and defaults, are those of the command. `progress` shows a bar on
    standard error (default: if that is a terminal), or is called with a `TransferProgress` each second.

    When an interrupted transfer is repeated with the same files, it resumes. Raises `TransferError` if the peer cannot
    be reached, refuses or is lost, and if files were left out. Raises `KeyboardInterrupt` after Ctrl-C, once the
    command has ended.

        anabranch.send(["video.mkv", "photos"], "example.org", paths=["eth0", "wlan0"])
    """
    named = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not named:
        raise TransferError("no files to send: name at least one")
    if "-" in named:
        raise TransferError("`-` is standard input, which the command sends: anabranch send - HOST")
    options = _options(paths, remote, scheme, connect_timeout_s, retry_s) + _protection(keys, insecure)
    if limit is not None:
        options.append(f"--limit={limit}")
    return _transfer(["send", *options, "--", *(os.fspath(file) for file in named), to], progress)


def recv(
    source: str,
    names: str | Sequence[str] | None = None,
    folder: FilePath = ".",
    *,
    paths: Sequence[str] = (),
    remote: Sequence[str] = (),
    scheme: str | None = None,
    on_clash: OnClash = "refuse",
    connect_timeout_s: float | None = None,
    retry_s: float | None = None,
    keys: FilePath | None = None,
    insecure: bool = False,
    progress: ShowProgress = None,
) -> TransferResult:
    """Fetches files and folders from `anabranch serve` at `source` into a folder.

    Without `names`, it fetches all offered names except those that begin with a dot.

    `on_clash` decides what happens if another file of that name exists. Other arguments and errors are those of `send`.

        anabranch.recv("example.org", ["video.mkv"], "inbox")
    """
    wanted = [names] if isinstance(names, str) else list(names or ())
    if names is not None and not wanted:
        raise TransferError("`names` is empty: omit it to fetch all files")
    options = _options(paths, remote, scheme, connect_timeout_s, retry_s) + _protection(keys, insecure)
    options += [f"--dir={os.fspath(folder)}", f"--on-clash={on_clash}", *([] if wanted else ["--all"])]
    return _transfer(["recv", *options, "--", source, *wanted], progress)


def _protection(keys: FilePath | None, insecure: bool) -> list[str]:
    if keys is not None and insecure:
        raise TransferError("`keys` and `insecure` contradict each other: omit one of them")
    named = [] if keys is None else [f"--keys={os.fspath(keys)}"]
    return ["--insecure"] if insecure else named


def _options(
    paths: Sequence[str],
    remote: Sequence[str],
    scheme: str | None,
    connect_timeout_s: float | None,
    retry_s: float | None,
) -> list[str]:
    """Returns the options that both directions have."""
    options = [f"--path={path}" for path in paths] + [f"--to={address}" for address in remote]
    if scheme is not None:
        options.append(f"--scheme={scheme}")
    if connect_timeout_s is not None:
        options.append(f"--connect-timeout={time_option('connect_timeout_s', connect_timeout_s)}")
    if retry_s is not None:
        options.append(f"--retry={time_option('retry_s', retry_s, may_be_zero=True)}")
    return options


def _transfer(arguments: list[str], progress: ShowProgress) -> TransferResult:
    command = [sys.executable, "-m", "anabranch", arguments[0], "--json", *arguments[1:]]
    package = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, *([inherited] if inherited else [])])}
    with tempfile.TemporaryFile() as said, _Display(progress) as show:
        # A session of its own: Ctrl-C on a terminal reaches the command once, from `_stop`.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            encoding="utf-8",
            env=environment,
            start_new_session=True,
        )
        try:
            with process.stdout as lines:  # type: ignore[union-attr]
                files, end = _follow(lines, show)
            status = process.wait()
        except BaseException:
            _stop(process)
            raise
        return _outcome(status, files, end, _text(said))


def _follow(lines: IO[str], show: Callable[[TransferProgress], object]) -> tuple[list[TransferredFile], dict[str, Any]]:
    """Returns the files and the last event. Calls `show` with the progress."""
    files: list[TransferredFile] = []
    end: dict[str, Any] = {}
    for line in lines:
        event = json.loads(line)
        if event["event"] == "file":
            files.append(_file(event))
        elif event["event"] == "progress":
            show(_progress(event))
        elif event["event"] == "end":
            end = event
            show(_progress({**event, "rate_bytes_per_s": 0.0}))
    return files, end


def _file(event: Mapping[str, Any]) -> TransferredFile:
    error = event["error"]
    return TransferredFile(
        name=event["file"],
        size_bytes=event.get("size_bytes"),
        result=event["result"],
        renamed=event.get("renamed"),
        error=None if error is None else f"{error['reason']}: {error['text']}",
    )


def _progress(event: Mapping[str, Any]) -> TransferProgress:
    totals = event["totals"]
    return TransferProgress(
        seconds=event["seconds"],
        found_bytes=totals["found_bytes"],
        all_found=totals["all_found"],
        all_bytes=totals["all_bytes"],
        all_files=totals["all_files"],
        done_files=totals["done_files"],
        file=event.get("file"),
        eta_s=event.get("eta_s"),
        held_bytes=totals["held_bytes"],
        reused_bytes=totals["reused_bytes"],
        rate_bytes_per_s=event["rate_bytes_per_s"],
    )


def _outcome(status: int, files: list[TransferredFile], end: Mapping[str, Any], said: str) -> TransferResult:
    """Returns the result of a complete transfer. Raises `TransferError` with the command's error otherwise."""
    failed = [f"{file.name}: {file.error}" for file in files if file.result == "failed"]
    if failed:
        more = [f"and {len(failed) - _MAX_NAMED} more"] if len(failed) > _MAX_NAMED else []
        raise TransferError("\n".join(["files were omitted:", *failed[:_MAX_NAMED], *more]))
    if status != 0 or not end:
        raise TransferError(end.get("error") or _of_arguments(said) or f"the command ended with status {status}")
    totals = end["totals"]
    return TransferResult(
        files=tuple(files),
        seconds=end["seconds"],
        moved_bytes=totals["moved_bytes"],
        reused_bytes=totals["reused_bytes"],
        goodput_bytes_per_s=end["goodput_bytes_per_s"],
    )


def _of_arguments(said: str) -> str:
    """Returns the command's error text with the arguments of `send` and `recv` in place of its options."""
    said = said.removesuffix(_MORE).rstrip()
    if refused := _REFUSED.match(said):
        option = refused["option"]
        name = _ARGUMENTS.get(option, option)
        return f"{name} is {refused['value']!r}: {said[refused.end() :].lstrip(': ').lstrip()}"
    return said


def _stop(process: subprocess.Popen[str]) -> None:
    """Interrupts the command, which ends the transfer with its peer. The peer keeps the bytes that have arrived."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_GOODBYE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _text(said: IO[bytes]) -> str:
    """Returns the end of the command's standard error."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(size - _MAX_SAID, 0))
    return said.read().decode(errors="replace").strip().removeprefix("error: ")


class _Display:
    """Progress display that the caller selected: a bar, a callback, or none."""

    def __init__(self, progress: ShowProgress) -> None:
        self._call = progress if callable(progress) else None
        self._bar: Any = None
        if self._call is None and (sys.stderr.isatty() if progress is None else progress):
            from tqdm import tqdm

            self._bar = tqdm(total=0, unit="B", unit_scale=True, dynamic_ncols=True)

    def __enter__(self) -> Callable[[TransferProgress], object]:
        return self._call or self._show

    def _show(self, now: TransferProgress) -> None:
        if self._bar is not None:
            # Bytes from before the transfer do not count in the rate.
            self._bar.initial = now.reused_bytes
            self._bar.total = now.all_bytes
            self._bar.n = now.held_bytes
            self._bar.refresh()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
