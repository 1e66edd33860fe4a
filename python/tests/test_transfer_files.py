"""Transfers of files from Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anabranch as ab
from anabranch.transfer.files import TransferProgress, _outcome

HERE = "127.0.0.1"


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inbox")


COMMAND = [sys.executable, "-c", "import sys; from anabranch.command import main; sys.exit(main(sys.argv[1:]))"]


@pytest.fixture(scope="module", autouse=True)
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """User whose key may connect to this user's servers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANABRANCH_HOME", str(tmp_path_factory.mktemp("keys")))
        patch.setenv("PYTHONPATH", str(Path(ab.__file__).parents[1]))
        shown = subprocess.run([*COMMAND, "keys", "show"], stdout=subprocess.PIPE, text=True, check=True)
        subprocess.run([*COMMAND, "keys", "add", shown.stdout.split()[0]], stdout=subprocess.DEVNULL, check=True)
        yield


@pytest.fixture(scope="module")
def server(inbox: Path, keys: None) -> Iterator[str]:
    """Address of a server in a process of its own."""
    options = ["serve", "--dir", str(inbox), "--allow", "both", "--json", "--listen", f"{HERE}:0"]
    environment = {**os.environ, "HOME": str(inbox.parent)}
    process = subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["addresses"][0]
    threading.Thread(target=process.stdout.read, daemon=True).start()
    yield address
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.stdout.close()


def test_a_file_and_a_folder_go_there_and_back(server: str, inbox: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "one.bin").write_bytes(bytes(range(256)) * 400)
    (tmp_path / "video.bin").write_bytes(b"video" * 50_000)
    seen: list[TransferProgress] = []
    sent = ab.send([tmp_path / "photos", tmp_path / "video.bin"], server, paths=[HERE], progress=seen.append)
    assert {file.name: file.result for file in sent.files}["photos/one.bin"] == "stored"
    assert (inbox / "photos" / "one.bin").read_bytes() == bytes(range(256)) * 400
    assert (seen[-1].held_bytes, seen[-1].all_found) == (102_400 + 250_000, True)
    assert (seen[-1].all_bytes, seen[-1].all_files, seen[-1].done_files) == (102_400 + 250_000, 2, 2)
    assert sent.moved_bytes >= 352_400
    (tmp_path / "back").mkdir()
    fetched = ab.recv(server, "video.bin", tmp_path / "back", paths=[HERE])
    assert (tmp_path / "back" / "video.bin").read_bytes() == b"video" * 50_000
    assert [(file.name, file.size_bytes) for file in fetched.files] == [("video.bin", 250_000)]


def test_existing_file_is_not_sent_again(server: str, tmp_path: Path) -> None:
    (tmp_path / "twice.bin").write_bytes(b"2" * 100_000)
    first, second = (ab.send(tmp_path / "twice.bin", server, paths=[HERE], progress=False) for _ in range(2))
    assert [transfer.files[0].result for transfer in (first, second)] == ["stored", "identical"]


def test_omitted_file_is_an_error_that_names_it(server: str, tmp_path: Path) -> None:
    with pytest.raises(ab.errors.TransferError, match=r"(?s)missing\.bin"):
        ab.recv(server, ["missing.bin"], tmp_path, paths=[HERE])
    with pytest.raises(ab.errors.TransferError, match="nowhere"):
        ab.send(tmp_path / "nowhere", server, paths=[HERE])


def test_missing_peer_is_an_error_with_the_remedy_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    with pytest.raises(ab.errors.TransferError, match=f"port 9 of {HERE} is closed"):
        ab.send(tmp_path / "a", f"{HERE}:9", paths=[HERE], connect_timeout_s=1)


def test_invalid_arguments_are_refused_before_sending(tmp_path: Path) -> None:
    with pytest.raises(ab.errors.TransferError, match="no files to send"):
        ab.send([], "example.org")
    with pytest.raises(ab.errors.TransferError, match="standard input"):
        ab.send("-", "example.org")
    with pytest.raises(ab.errors.TransferError, match="`names` is empty"):
        ab.recv("example.org", [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"limit": "fast"}, "limit is 'fast': `fast` is not a rate"),
        ({"limit": "-1M"}, "limit is '-1M': `-1M` is not a rate"),
        ({"connect_timeout_s": -1}, "connect_timeout_s is -1; give seconds, more than 0"),
        ({"connect_timeout_s": float("nan")}, "connect_timeout_s is nan; give seconds, more than 0"),
        ({"connect_timeout_s": 1e-9}, "connect_timeout_s is '0.000000001': `0.000000001` is not between 1ms and 24h"),
        ({"retry_s": -0.5}, "retry_s is -0.5; give seconds, 0 or more"),
        ({"retry_s": float("inf")}, "retry_s is inf; give seconds, 0 or more"),
    ],
)
def test_number_out_of_range_names_its_argument(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ab.errors.TransferError) as refused:
        ab.send(tmp_path, "127.0.0.1:9", insecure=True, **given)
    assert said in str(refused.value)
    assert "--" not in str(refused.value)


@pytest.mark.parametrize("time", [True, "5s"])
def test_time_that_is_no_number_is_refused(tmp_path: Path, time: Any) -> None:
    with pytest.raises(TypeError, match="retry_s: expected a number"):
        ab.recv("example.org", folder=tmp_path, retry_s=time)


def test_clash_that_is_unknown_names_its_argument(tmp_path: Path) -> None:
    with pytest.raises(ab.errors.TransferError, match="on_clash is 'ask'"):
        ab.recv("127.0.0.1:9", folder=tmp_path, insecure=True, on_clash="ask")  # type: ignore[arg-type]


def test_a_name_that_looks_like_an_option_is_a_name(server: str, inbox: Path, tmp_path: Path) -> None:
    (tmp_path / "--help").write_bytes(b"help")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        ab.send("--help", server, paths=[HERE])
    assert (inbox / "--help").read_bytes() == b"help"


def test_ctrl_c_ends_a_transfer_and_the_command(server: str, tmp_path: Path) -> None:
    (tmp_path / "slow.bin").write_bytes(b"s" * 4_000_000)
    made: list[subprocess.Popen[str]] = []

    class Recorded(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: object, **keywords: object) -> None:
            super().__init__(*arguments, **keywords)  # type: ignore[call-overload]
            made.append(self)

    def interrupt(_: TransferProgress) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Recorded)
        with pytest.raises(KeyboardInterrupt):
            ab.send(tmp_path / "slow.bin", server, paths=[HERE], limit="1Mbit", progress=interrupt)
    assert [process.returncode for process in made] == [130]


def test_many_failures_are_counted() -> None:
    from anabranch.transfer.files import TransferredFile

    files = [
        TransferredFile(name=f"f{at}", size_bytes=1, result="failed", renamed=None, error="Clash: it is there")
        for at in range(9)
    ]
    with pytest.raises(ab.errors.TransferError) as caught:
        _outcome(3, files, {}, "")
    assert str(caught.value).splitlines()[-2:] == ["f4: Clash: it is there", "and 4 more"]
