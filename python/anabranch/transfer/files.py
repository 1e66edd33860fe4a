"""Files and folders sent and fetched, as `anabranch send` and `anabranch recv` do it.

The command does the work in a process of its own, and tells of it in lines of JSON. So the interpreter is free
meanwhile, in a notebook too, and Ctrl-C ends a transfer as it does on a terminal.
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

# How long the command may take to say goodbye to its peer after Ctrl-C.
_GOODBYE_S = 10.0
# Files named in an error, and bytes of what the command wrote to standard error.
_MOST_NAMED = 5
_MOST_SAID = 4096
# Sentences of the command about its options.
_MORE = "For more information, try '--help'."
_REFUSED = re.compile(r"invalid value '(?P<value>.*?)' for '--(?P<option>[a-z-]+)[^']*'")
# Arguments that are not named like the options that they become.
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
    """How far a transfer is."""

    seconds: float
    found_bytes: int
    """Bytes of the files that were offered so far."""
    all_found: bool
    """`True` once these are all."""
    all_bytes: int | None
    """Bytes of the whole transfer. `None` until the source has counted its files."""
    all_files: int | None
    """Files of the whole transfer. `None` until the source has counted them."""
    done_files: int
    """Files that are complete."""
    file: str | None
    """The file that is transferred, escaped where its name has characters that a terminal obeys."""
    eta_s: float | None
    """Seconds that remain at the current rate. `None` if they cannot be estimated."""
    held_bytes: int
    """Bytes that the receiver holds, with what it had before."""
    reused_bytes: int
    """Bytes that it had before."""
    rate_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferredFile:
    """A file or folder of a transfer."""

    name: str
    """Escaped where it has characters that a terminal obeys."""
    size_bytes: int | None
    result: Literal["stored", "identical", "failed"]
    renamed: str | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """A transfer that is complete."""

    files: tuple[TransferredFile, ...]
    seconds: float
    moved_bytes: int
    """Bytes that were sent in this transfer."""
    reused_bytes: int
    """Bytes that the receiver had before."""
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
) -> Transferred:
    """Sends files and folders to `anabranch serve` at `to`, a host or `host:port`.

    `paths` are local addresses or interfaces that paths begin at (those that are usable if not given), and `remote`
    addresses that they lead to in place of the host's own. `limit` is a rate such as `"10Mbit"`. `keys` is the folder
    with this user's key and the hosts that it knows (that of the user if not given); `insecure` goes without encryption
    and keys, as the other side has to as well. Other arguments, and what is left out, are as with the command.
    `progress` shows a bar on standard error (if not given, when that is a terminal), or is called with a
    `TransferProgress` each second.

    What was interrupted goes on where it was when the same is sent again. Raises `TransferError` if the peer cannot be
    reached, refuses or is lost, and if files were left out; `KeyboardInterrupt` after Ctrl-C, when the peer knows.

        anabranch.send(["video.mkv", "photos"], "example.org", paths=["eth0", "wlan0"])
    """
    named = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    if not named:
        raise TransferError("there are no files to send: name one at least")
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
) -> Transferred:
    """Fetches files and folders from `anabranch serve` at `source` into a folder; everything that it offers if no names
    are given.

    `on_clash` says what to do where there is another file of that name. Other arguments, and what is raised, are as in
    `send`.

        anabranch.recv("example.org", ["video.mkv"], "inbox")
    """
    wanted = [names] if isinstance(names, str) else list(names or ())
    if names is not None and not wanted:
        raise TransferError("`names` is empty: leave it out to take everything")
    options = _options(paths, remote, scheme, connect_timeout_s, retry_s) + _protection(keys, insecure)
    options += [f"--dir={os.fspath(folder)}", f"--on-clash={on_clash}", *([] if wanted else ["--all"])]
    return _transfer(["recv", *options, "--", source, *wanted], progress)


def _protection(keys: FilePath | None, insecure: bool) -> list[str]:
    if keys is not None and insecure:
        raise TransferError("`keys` and `insecure` contradict each other: leave one of them out")
    named = [] if keys is None else [f"--keys={os.fspath(keys)}"]
    return ["--insecure"] if insecure else named


def _options(
    paths: Sequence[str],
    remote: Sequence[str],
    scheme: str | None,
    connect_timeout_s: float | None,
    retry_s: float | None,
) -> list[str]:
    """Options that both directions have."""
    options = [f"--path={path}" for path in paths] + [f"--to={address}" for address in remote]
    if scheme is not None:
        options.append(f"--scheme={scheme}")
    if connect_timeout_s is not None:
        options.append(f"--connect-timeout={time_option('connect_timeout_s', connect_timeout_s)}")
    if retry_s is not None:
        options.append(f"--retry={time_option('retry_s', retry_s, may_be_zero=True)}")
    return options


def _transfer(arguments: list[str], progress: ShowProgress) -> Transferred:
    command = [sys.executable, "-m", "anabranch", arguments[0], "--json", *arguments[1:]]
    package = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, *([inherited] if inherited else [])])}
    with tempfile.TemporaryFile() as said, _Display(progress) as show:
        # In a session of its own, so that Ctrl-C on a terminal reaches it once, from here.
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
    """The files, and what the last line says."""
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


def _outcome(status: int, files: list[TransferredFile], end: Mapping[str, Any], said: str) -> Transferred:
    """The transfer if it is complete. Raises `TransferError` with what the command says if it is not."""
    failed = [f"{file.name}: {file.error}" for file in files if file.result == "failed"]
    if failed:
        more = [f"and {len(failed) - _MOST_NAMED} more"] if len(failed) > _MOST_NAMED else []
        raise TransferError("\n".join(["files were left out:", *failed[:_MOST_NAMED], *more]))
    if status != 0 or not end:
        raise TransferError(end.get("error") or _of_arguments(said) or f"the command ended with status {status}")
    totals = end["totals"]
    return Transferred(
        files=tuple(files),
        seconds=end["seconds"],
        moved_bytes=totals["moved_bytes"],
        reused_bytes=totals["reused_bytes"],
        goodput_bytes_per_s=end["goodput_bytes_per_s"],
    )


def _of_arguments(said: str) -> str:
    """Returns what the command wrote, with the arguments of `send` and `recv` in place of its options."""
    said = said.removesuffix(_MORE).rstrip()
    if refused := _REFUSED.match(said):
        option = refused["option"]
        name = _ARGUMENTS.get(option, option)
        return f"{name} is {refused['value']!r}: {said[refused.end() :].lstrip(': ').lstrip()}"
    return said


def _stop(process: subprocess.Popen[str]) -> None:
    """Lets the command take leave of its peer, which keeps what has arrived."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_GOODBYE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _text(said: IO[bytes]) -> str:
    """The end of what the command wrote to standard error."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(size - _MOST_SAID, 0))
    return said.read().decode(errors="replace").strip().removeprefix("error: ")


class _Display:
    """Shows progress as it was asked for, and tidies up."""

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
            # What was there before is no work of this transfer, so that it has no part in the rate.
            self._bar.initial = now.reused_bytes
            self._bar.total = now.all_bytes
            self._bar.n = now.held_bytes
            self._bar.refresh()

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()
