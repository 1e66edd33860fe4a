"""Folder with the traces of a run: its manifest, and the complete part of its files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import tomli

from anabranch.errors import TraceError
from anabranch.text_file import ENCODING

Answer = TypeVar("Answer")

FORMAT = 2
"""Format of traces that is supported."""

RUN_FILE = "run.toml"
RESULT_FILE = "result.json"
PACKET_FILE = "packets.csv"
QUEUE_FILE = "queues.csv"

TAIL_BYTES = 1 << 16
"""Size of the end of a file that contains the last complete row. The longest row is far shorter."""


@dataclass(frozen=True, slots=True)
class Sender:
    """End of a flow that sends data, and so has traces of its own."""

    name: str
    """Prefix of the names of its files."""
    flow: str
    direction: str
    """`forward` or `reverse`."""
    paths: tuple[str, ...]

    @property
    def path_file(self) -> str:
        return f"{self.name}-paths.csv"

    @property
    def decision_file(self) -> str:
        return f"{self.name}-decisions.csv"


@dataclass(frozen=True, slots=True)
class TraceFolder:
    """Folder that contains the traces of one run."""

    path: Path
    manifest: dict[str, Any]
    """Content of `run.toml`."""
    senders: tuple[Sender, ...]
    result: dict[str, Any] | None
    """Content of `result.json`; `None` if the run did not end."""

    @property
    def is_host(self) -> bool:
        """`True` if the run was recorded at one host with real sockets."""
        return self.manifest.get("vantage") == "host"

    def files(self) -> list[str]:
        """Returns the names of the traces, by the manifest."""
        own = [file for sender in self.senders for file in (sender.path_file, sender.decision_file)]
        return [*own, PACKET_FILE, *([] if self.is_host else [QUEUE_FILE])]

    def notes(self) -> list[str]:
        """Returns reasons why the traces are incomplete or changed; empty if they are complete."""
        missing = [file for file in self.files() if not (self.path / file).is_file()]
        notes = [f"missing: {', '.join(missing)}"] if missing else []
        if self.result is None:
            return [f"the run did not end: {RESULT_FILE} is missing", *notes]
        cut = [file for file in self.files() if file not in missing and not self.is_whole(file)]
        return [*notes, f"not as the run wrote it, being cut short or changed: {', '.join(cut)}"] if cut else notes

    def is_whole(self, file: str) -> bool:
        """Returns `True` if a file has its original length. Raises `TraceError` if it is missing."""
        written = (self.result or {}).get("file_bytes", {}).get(file)
        return written is not None and self.length_bytes(file) == written

    def length_bytes(self, file: str) -> int:
        """Returns the size of a file in bytes."""
        return attempt(self.path / file, lambda: (self.path / file).stat().st_size)

    def readable_bytes(self, file: str) -> int:
        """Returns the size of a file up to the end of its last complete row, in bytes."""
        length = self.length_bytes(file)
        if self.is_whole(file):
            return length
        begin = max(0, length - TAIL_BYTES)
        return begin + tail(self.path / file, begin).rfind(b"\n") + 1


def open_folder(folder: str | os.PathLike[str]) -> TraceFolder:
    """Opens the traces of a run: a run's own folder, or one that contains only one run.

    Raises `TraceError`, which names the missing or invalid file.
    """
    path = find_run(Path(folder))
    manifest = read_manifest(path / RUN_FILE)
    senders = tuple(read_sender(path / RUN_FILE, sender) for sender in manifest.get("sender", []))
    return TraceFolder(path, manifest, senders, read_result(path / RESULT_FILE))


def find_run(folder: Path) -> Path:
    """Returns the folder of the run."""
    if (folder / RUN_FILE).is_file():
        return folder
    if not folder.is_dir():
        raise TraceError(f"{folder}: no such folder")
    runs = sorted(path.parent for path in folder.glob(f"*/{RUN_FILE}"))
    if len(runs) == 1:
        return runs[0]
    if runs:
        names = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise TraceError(f"{folder}: has the traces of {len(runs)} runs; open one of its folders: {names}")
    if (folder / PACKET_FILE).is_file():
        raise TraceError(f"{folder}: traces without {RUN_FILE}, as earlier versions wrote them; trace the run again")
    raise TraceError(
        f"{folder}: not a run's trace, as it has no {RUN_FILE} and none of its folders has one; "
        "`run(..., trace=DIR)` writes a folder for each run into DIR, and so does `anabranch run --trace DIR`"
    )


def read_manifest(file: Path) -> dict[str, Any]:
    """Returns the content of `run.toml`, in the supported format."""
    manifest = document(file, tomli.loads)
    if manifest.get("format") != FORMAT:
        found = f"of format {manifest['format']}" if "format" in manifest else "of no format"
        version = manifest.get("version", "unknown")
        raise TraceError(
            f"{file}: traces {found}, written by version {version}; format {FORMAT} is read here: "
            "trace the run again with this version"
        )
    if not isinstance(manifest.get("sender", []), list):
        raise TraceError(f"{file}: `sender` is not a list of tables; trace the run again")
    return manifest


def read_sender(file: Path, sender: Any) -> Sender:
    """Returns a `[[sender]]` of `run.toml`."""
    try:
        read = Sender(sender["name"], sender["flow"], sender["direction"], tuple(sender["paths"]))
    except (KeyError, TypeError) as error:
        raise TraceError(f"{file}: a [[sender]] lacks {error}; trace the run again") from error
    if read.direction not in ("forward", "reverse") or not all(map(is_text, (read.name, read.flow, *read.paths))):
        raise TraceError(f"{file}: not what a run writes about the sender {read.name!r}; trace the run again")
    return read


def is_text(value: object) -> bool:
    return isinstance(value, str)


def read_result(file: Path) -> dict[str, Any] | None:
    """Returns the content of `result.json`, or `None` if it is missing."""
    if not file.is_file():
        return None
    result = document(file, json.loads)
    if type(result.get("ended_s")) not in (int, float) or not isinstance(result.get("file_bytes"), dict):
        raise TraceError(f"{file}: lacks `ended_s` or `file_bytes`, which a run writes; trace the run again")
    return result


def document(file: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Returns the content of a file in TOML or JSON."""
    text = attempt(file, file.read_bytes)
    try:
        read = parse(text.decode(ENCODING))
    except ValueError as error:
        raise TraceError(f"{file}: {error}; trace the run again") from error
    if not isinstance(read, dict):
        raise TraceError(f"{file}: not what a run writes; trace the run again")
    return read


def tail(file: Path, begin: int) -> bytes:
    """Returns the content of a file from a place on."""

    def read() -> bytes:
        with file.open("rb") as opened:
            opened.seek(begin)
            return opened.read()

    return attempt(file, read)


def attempt(file: Path, what: Callable[[], Answer]) -> Answer:
    """Runs an operation on a file. Raises `TraceError` if the file is missing or cannot be read."""
    try:
        return what()
    except OSError as error:
        reason = error.strerror or error
        raise TraceError(f"{file}: {reason}; a trace is whole with all of its files: trace the run again") from error
