"""Cache: valid and damaged entries, and independence of the results from it."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from sweep_support import entries, environment, same, write_scenario

from anabranch.errors import CacheError
from anabranch.results import Results
from anabranch.sweeps import CacheWarning, sweep
from anabranch.sweeps.cache import Cache, default_folder


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write_scenario(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def counts(results: Results) -> tuple[int, int]:
    assert results.effort is not None
    return results.effort.computed, results.effort.cached


def test_each_run_has_one_entry_under_its_key(two: Path, folder: Path) -> None:
    results = sweep(two, cache=folder)
    keys = sorted(results.runs["run"].to_pylist())
    assert [path.relative_to(folder).as_posix() for path in entries(folder)] == [f"{key[:2]}/{key}" for key in keys]


def test_the_second_sweep_computes_nothing_and_gives_the_same(two: Path, folder: Path) -> None:
    first = sweep(two, cache=folder)
    second = sweep(two, cache=folder)
    assert counts(first) == (6, 0)
    assert counts(second) == (0, 6)
    assert same(first, second)


def test_a_larger_sweep_computes_the_holes_only(two: Path, folder: Path) -> None:
    sweep(two, {"path.path-2.loss": [0.01], "scheme": ["cmt"]}, [2, 5], cache=folder)
    larger = sweep(two, {"path.path-2.loss": [0, 0.01], "scheme": ["cmt", "sctp"]}, 5, cache=folder)
    assert counts(larger) == (18, 2)
    assert same(larger, sweep(two, {"path.path-2.loss": [0, 0.01], "scheme": ["cmt", "sctp"]}, 5, cache=None))


def damage(path: Path, how: str) -> None:
    whole = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(whole[:-7])
    elif how == "flipped":
        # The entry remains valid except for the figure.
        path.write_bytes(re.sub(rb'(?<="goodput_kbps":)\d', lambda digit: b"%d" % ((int(digit[0]) + 1) % 10), whole))
    elif how == "foreign":
        path.write_bytes(b"anabranch-run-9 " + whole.split(b" ", 1)[1])
    elif how == "garbage":
        path.write_bytes(os.urandom(3000))
    elif how == "other":
        path.write_bytes(next(entry for entry in entries(path.parent.parent) if entry != path).read_bytes())
    else:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("how", ["empty", "cut", "flipped", "foreign", "garbage", "other"])
def test_damaged_entry_is_reported_recomputed_and_replaced(two: Path, folder: Path, how: str) -> None:
    expected = sweep(two, cache=folder)
    path = entries(folder)[2]
    whole = path.read_bytes()
    damage(path, how)
    assert path.read_bytes() != whole
    with pytest.warns(CacheWarning, match=rf"1 entry of the cache cannot be used, to be computed again: {path}: it"):
        again = sweep(two, cache=folder)
    assert counts(again) == (1, 5)
    assert again.effort is not None
    assert again.effort.damaged == 1
    assert same(again, expected)
    assert counts(sweep(two, cache=folder)) == (0, 6)


def test_many_damaged_entries_are_reported_once(two: Path, folder: Path) -> None:
    sweep(two, cache=folder)
    for path in entries(folder)[:4]:
        damage(path, "cut")
    with pytest.warns(CacheWarning, match="4 entries of the cache") as warned:
        sweep(two, cache=folder)
    assert len(warned) == 1


def test_an_entry_with_a_sound_checksum_and_other_content_is_damaged_too(two: Path, folder: Path) -> None:
    expected = sweep(two, cache=folder)
    keys = expected.runs["run"].to_pylist()
    cache = Cache(folder)
    figures = cache.get(keys[0])
    assert figures is not None
    for key, content in ((keys[1], figures), (keys[2], "{}"), (keys[3], "not JSON"), (keys[4], "[1]")):
        cache.put(key, content)
    with pytest.warns(CacheWarning, match=r"4 entries .* it has the figures of something else"):
        again = sweep(two, cache=folder)
    assert counts(again) == (4, 2)
    assert same(again, expected)


def test_an_entry_that_cannot_be_read_or_replaced_costs_its_run_only(two: Path, folder: Path) -> None:
    expected = sweep(two, cache=folder)
    path = entries(folder)[0]
    damage(path, "folder")
    with pytest.warns(CacheWarning) as warned:
        again = sweep(two, cache=folder)
    messages = [str(warning.message) for warning in warned]
    assert f"{path}: Is a directory" in messages[0]
    assert "the sweep continues and keeps finished runs in memory" in messages[1]
    assert counts(again) == (1, 5)
    assert again.effort is not None
    assert again.effort.unstored == 1
    assert same(again, expected)


def test_full_disk_loses_no_result_and_is_reported_once(
    two: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = sweep(two, cache=None)
    write = os.write
    written = []

    def full(descriptor: int, content: bytes) -> int:
        if content.startswith(b"anabranch-run-") and len(written) >= 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(content)
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", full)
    with pytest.warns(CacheWarning, match="No space left on device: the sweep continues") as warned:
        results = sweep(two, cache=folder)
    assert len(warned) == 1
    assert same(results, expected)
    assert results.effort is not None
    assert results.effort.unstored == 4
    assert len(entries(folder)) == 2, "nothing half written is left behind"


def test_an_entry_that_is_written_in_part_only_is_no_entry(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache.open(folder)
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: write(descriptor, content[:100]))
    assert cache.put("ab" * 32, "x" * 500) is False
    assert "only 100 of" in cache.first_failure
    assert entries(folder) == []


def test_a_folder_that_cannot_be_made_is_an_error_before_the_first_run(two: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match=rf"{tmp_path}/file/x: finished runs cannot be kept here.*--no-cache"):
        sweep(two, cache=tmp_path / "file" / "x")
    with pytest.raises(CacheError, match=rf"{tmp_path}/file: finished runs cannot be kept here"):
        sweep(two, cache=tmp_path / "file")


def test_a_folder_that_is_read_only_serves_what_it_has(
    two: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(two, seeds=2, cache=folder)
    opened = os.open

    def read_only(path: Path, flags: int, *more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return opened(path, flags, *more)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.warns(CacheWarning, match="Read-only file system: the sweep continues"):
        results = sweep(two, seeds=[1, 2, 30], cache=folder)
    assert counts(results) == (2, 4)


def test_two_sweeps_at_once_share_a_folder(two: Path, tmp_path: Path, folder: Path) -> None:
    program = (
        "import sys\n"
        "from anabranch.sweeps import sweep\n"
        "sweep(sys.argv[1], {'path.path-2.loss': [0, 0.01, 0.02]}, 40, cache=sys.argv[2]).write(sys.argv[3])\n"
    )
    command = [sys.executable, "-W", "error", "-c", program, str(two), str(folder)]
    outs = [tmp_path / "one", tmp_path / "other"]
    processes = [subprocess.Popen([*command, str(out)], env=environment()) for out in outs]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert same(Results.read(outs[0]), Results.read(outs[1]))
    assert len(entries(folder)) == 3 * 2 * 40, "no entry is missing, and nothing else is left behind"
    assert counts(sweep(two, {"path.path-2.loss": [0, 0.01, 0.02]}, 40, cache=folder)) == (0, 240)


def test_the_environment_names_the_folder(two: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(folder))
    assert default_folder() == folder
    assert counts(sweep(two)) == (6, 0)
    assert len(entries(folder)) == 6
    monkeypatch.setenv("ANABRANCH_CACHE", "")
    assert default_folder().parts[-2:] == ("anabranch", "runs")
