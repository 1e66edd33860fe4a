"""Sweeps on a Dask cluster: a real scheduler with worker processes, some of which die."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path

import pytest
from sweep_support import AfterEntries, entries, environment, same, write_scenario

from anabranch import _native
from anabranch.command.sweep import main
from anabranch.errors import ExecutorError
from anabranch.results import Results
from anabranch.sweeps import sweep

distributed = pytest.importorskip("distributed")

from anabranch.sweeps.dask import DaskWorkers  # noqa: E402 - it needs what may not be there

OVER = {"path.path-2.loss": [0, 0.01, 0.02]}
SEEDS = 40
RUNS = 3 * 2 * SEEDS


class Cluster:
    """Scheduler and workers, each a process of its own, on the loopback interface only."""

    def __init__(self) -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            self.port: int = listening.getsockname()[1]
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port))
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def client(self) -> distributed.Client:
        # A client that connects before the scheduler listens tries again.
        return distributed.Client(f"tcp://127.0.0.1:{self.port}", timeout=60, set_as_default=False)

    def need(self, workers: int) -> None:
        """Starts the missing workers."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        options = ["--no-nanny", "--nthreads", "1", "--host", "127.0.0.1", "--memory-limit", "0"]
        while len(self.workers) < workers:
            self.workers.append(self._start("dask_worker", f"tcp://127.0.0.1:{self.port}", *options))
        with self.client() as client:
            client.wait_for_workers(workers, timeout=60)
            while len(client.nthreads()) > workers:
                time.sleep(0.05)

    @staticmethod
    def _start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments, "--no-dashboard"]
        return subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    started = Cluster()
    yield started
    started.close()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scenario(tmp_path_factory.mktemp("scenario"), duration="10 s")


@pytest.fixture(scope="module")
def expected(two: Path) -> Results:
    """Returns the results of native threads for the sweep that tests interrupt."""
    return sweep(two, OVER, SEEDS, cache=None)


def test_a_cluster_gives_the_bytes_that_native_threads_give(two: Path, tmp_path: Path, cluster: Cluster) -> None:
    cluster.need(2)
    command = [str(two), "--over", "path.path-2.loss=0,0.01", "--seeds", "20", "--no-cache", "--out"]
    assert main([*command, str(tmp_path / "native")]) == 0
    assert main([*command, str(tmp_path / "dask"), "--executor", cluster.address]) == 0
    for native in (tmp_path / "native").iterdir():
        assert (tmp_path / "dask" / native.name).read_bytes() == native.read_bytes()


def test_clients_and_their_executors_are_taken_as_they_are(two: Path, cluster: Cluster) -> None:
    cluster.need(2)
    native = sweep(two, OVER, 2, cache=None)
    with cluster.client() as client:
        assert same(sweep(two, OVER, 2, executor=client, cache=None), native)
        assert same(sweep(two, OVER, 2, executor=client.get_executor(), cache=None), native)
        assert client.submit(len, "abc").result() == 3, "the caller's client is left open"


def test_a_worker_with_another_engine_is_refused_with_both_versions(
    two: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.need(2)
    theirs = _native.engine()
    ours = {**theirs, "version": "9.9.9", "fingerprint": "0123456789abcdef"}
    monkeypatch.setattr(_native, "engine", lambda: ours)
    with pytest.raises(ExecutorError) as caught:
        sweep(two, OVER, 4, executor=cluster.address, cache=None)
    message = str(caught.value)
    assert f"has anabranch {theirs['version']} with engine {theirs['fingerprint'][:12]}" in message
    assert "started by 9.9.9 with engine 0123456789ab: install the same version on all machines" in message


class Client:
    """Client with one worker or none, reduced to the methods that the code under test uses."""

    def __init__(self, workers: int) -> None:
        self.scheduler = self
        self.address = "tcp://head:8786"
        self._workers = workers

    def get_executor(self, **_: object) -> None:
        return None

    def ncores(self) -> None:
        return None

    def sync(self, *_: object, **__: object) -> dict[str, int]:
        return {f"worker-{number}": 3 for number in range(self._workers)}


def test_workers_that_are_busy_for_long_are_not_taken_for_none() -> None:
    busy = DaskWorkers(Client(2), timeout_s=0.0)
    assert busy.count() == 6
    busy.check(idle=True)
    none = DaskWorkers(Client(0), timeout_s=0.0)
    none.check(idle=False)
    with pytest.raises(ExecutorError, match="has had no workers for 0 s"):
        none.check(idle=True)


def test_a_worker_killed_in_the_middle_changes_nothing(
    two: Path, tmp_path: Path, cluster: Cluster, expected: Results
) -> None:
    cluster.need(2)
    kill = AfterEntries(tmp_path / "cache", 20, cluster.workers[0].kill)
    results = sweep(two, OVER, SEEDS, executor=cluster.address, cache=tmp_path / "cache")
    kill.join(10)
    assert 20 <= kill.found < RUNS, "the worker was killed when all was done"
    assert cluster.workers[0].wait(10) == -9
    assert same(results, expected)
    assert results.effort is not None
    assert results.effort.computed == RUNS


class LostTask:
    """Task whose worker is lost as soon as its result exists."""

    status = "lost"

    def __init__(self, outcome: bytes | BaseException) -> None:
        self._outcome = outcome

    async def _result(self) -> bytes:
        if isinstance(self._outcome, BaseException):
            raise self._outcome
        return self._outcome


def test_finished_result_counts_after_its_worker_is_lost() -> None:
    settle = import_module("anabranch.sweeps.dask")._settle
    futures: list[Future[bytes]] = [Future() for _ in range(4)]
    done, failed, withdrawn, late = futures
    asyncio.run(settle(LostTask(b"result"), done))
    assert done.result(0) == b"result"
    asyncio.run(settle(LostTask(OSError("no memory")), failed))
    assert isinstance(failed.exception(0), OSError)
    asyncio.run(settle(LostTask(distributed.client.CancelledError("gone")), withdrawn))
    assert withdrawn.cancelled()
    late.cancel()
    asyncio.run(settle(LostTask(b"result"), late))
    assert late.cancelled()


def test_loss_of_all_workers_keeps_finished_runs(
    two: Path, tmp_path: Path, cluster: Cluster, expected: Results
) -> None:
    cluster.need(1)
    cache = tmp_path / "cache"
    kill = AfterEntries(cache, 20, lambda: [worker.kill() for worker in cluster.workers])
    with pytest.raises(ExecutorError) as caught:
        sweep(two, OVER, SEEDS, executor=cluster.address, cache=cache, worker_timeout_s=0.5)
    message = str(caught.value)
    assert f"tcp://127.0.0.1:{cluster.port}: has had no workers for 0.5 s: start some with `dask worker" in message
    kept = len(entries(cache))
    assert f"{kept} of {RUNS} runs are finished and kept in {cache}" in message
    assert kill.found <= kept < RUNS
    assert caught.value.results.runs.num_rows == kept  # type: ignore[attr-defined]
    again = sweep(two, OVER, SEEDS, cache=cache)
    assert again.effort is not None
    assert again.effort.cached == kept
    assert same(again, expected)


def test_lost_scheduler_ends_the_sweep_with_a_message(
    two: Path, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.need(1)
    cache = tmp_path / "cache"
    kill = AfterEntries(cache, 20, cluster.scheduler.kill)
    with pytest.raises(ExecutorError, match=rf"the scheduler has ended.*\n\d+ of {RUNS} runs are finished and kept"):
        sweep(two, OVER, SEEDS, executor=cluster.address, cache=cache)
    kill.join(10)
    assert 20 <= kill.found < RUNS
    monkeypatch.setattr(import_module("anabranch.sweeps.dask"), "_ANSWER_S", 0.5)
    with pytest.raises(ExecutorError, match=rf"{cluster.address}: no Dask scheduler answers there"):
        sweep(two, OVER, SEEDS, executor=cluster.address, cache=cache)
