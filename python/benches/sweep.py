"""Cost of sweeps beside the runs themselves: overhead per run, use of the processors, memory, executors.

    PYTHONPATH=python python python/benches/sweep.py

It has no limits. Each measurement is made in a process of its own, several times, and the best is shown, since other
load can only increase it. The load average and the time in which threads waited for a processor show such load.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

SCENARIO = """\
[run]
duration = "{duration}"
schemes = ["cmt", "cmt-pf"]

[[path]]
rate = "10 Mbit/s"
delay = "45 ms"
loss = 0.01

[[path]]
rate = "2 Mbit/s"
delay = "90 ms"
loss = 0.01
"""
LOSSES = [0, 0.005, 0.01, 0.02, 0.05]
# Schemes times losses.
CELLS = 2 * len(LOSSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=5, help="how often each measurement is made [default: 5]")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(json.loads(options.one))))
        return
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the beginning")
    _overhead(options.repeat)
    _processors(options.repeat)
    _memory()
    _executors(options.repeat)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


def _overhead(repeat: int) -> None:
    runs = 4000
    alone = _best(repeat, "cpu_s", how="native", runs=runs, duration="1 s")
    cold = _best(repeat, "cpu_s", how="cold", runs=runs, duration="1 s")
    uncached = _best(repeat, "cpu_s", how="uncached", runs=runs, duration="1 s")
    warm = _best(repeat, "wall_s", how="warm", runs=runs, duration="1 s")
    print(f"\nOverhead per run, {runs} runs of 1 s ({1e3 * alone['cpu_s'] / runs:.2f} ms of processor time each)")
    print(f"  tables                       {1e3 * (uncached['cpu_s'] - alone['cpu_s']) / runs:6.3f} ms")
    print(
        f"  tables and cache             {1e3 * (cold['cpu_s'] - alone['cpu_s']) / runs:6.3f} ms   (goal: under 1 ms)"
    )
    print(f"  taken from the cache instead {1e3 * warm['wall_s'] / runs:6.3f} ms")


def _processors(repeat: int) -> None:
    print("\nUse of the processors by a sweep of 2000 runs (goal: 90 % or more where nothing else runs)")
    for duration in ("2 s", "10 s"):
        best = _best(repeat, "used", lowest=False, how="cold", runs=2000, duration=duration)
        print(
            f"  runs of {duration:4}  {best['used']:6.1%} of {os.cpu_count()} processors in {best['wall_s']:.2f} s; "
            f"its threads ran or waited for a processor in {best['wanted']:.1%} of the time; load {best['load']:.1f}"
        )


def _memory() -> None:
    print("\nMost memory of the process (resident)")
    for runs in (2000, 20_000, 100_000):
        peak = _one(how="cold", runs=runs, duration="0.2 s")["peak_mib"]
        print(f"  {runs:7} runs  {peak:6.1f} MiB")


def _executors(repeat: int) -> None:
    print("\nOverhead of units of work, 2000 runs of 10 s (goal: under 5 %)")
    for how in ("processes", "dask"):
        best = _best(min(repeat, 3), "overhead", how=how, runs=2000, duration="10 s")
        print(f"  {how:10} {best['overhead']:6.2%} over {best['units']} units, {best['wall_s']:.1f} s")


def _best(repeat: int, by: str, *, lowest: bool = True, **what: object) -> dict[str, float]:
    choose: Callable[..., dict[str, float]] = min if lowest else max
    return choose((_one(**what) for _ in range(repeat)), key=lambda measured: measured[by])


def _one(**what: object) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", json.dumps(what)]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return measured


def _measure(what: dict[str, object]) -> dict[str, float]:
    """Returns one measurement, made in this process."""
    from anabranch.sweeps import sweep
    from anabranch.sweeps.steps import read_grid

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenario = folder / "bench.toml"
        scenario.write_text(SCENARIO.format(duration=what["duration"]))
        seeds = int(str(what["runs"])) // CELLS
        over = {"path.path-2.loss": LOSSES}
        grid = read_grid(scenario, over, seeds, None, None)
        cache = None if what["how"] == "uncached" else folder / "cache"
        # Loading modules on first use is no cost of a run.
        sweep(scenario, seeds=1, cache=None)
        if what["how"] == "native":
            return _timed(lambda: _native_runs(grid))
        if what["how"] == "warm":
            sweep(scenario, over, seeds, cache=cache)
        executor = {"processes": f"processes:{os.cpu_count()}", "dask": "dask"}.get(str(what["how"]))
        if executor == "dask":
            from distributed import Client, LocalCluster

            options = {"n_workers": os.cpu_count(), "threads_per_worker": 1, "dashboard_address": None}
            with LocalCluster(host="127.0.0.1", **options) as cluster, Client(cluster) as client:
                return _timed(lambda: sweep(scenario, over, seeds, cache=cache, executor=client).effort)
        return _timed(lambda: sweep(scenario, over, seeds, cache=cache, executor=executor).effort)


def _native_runs(grid: object) -> None:
    from anabranch import _native
    from anabranch.sweeps.native import _jobs

    _native.run_batch(_jobs(grid, range(len(grid))), {}.__setitem__)  # type: ignore[arg-type]


def _timed(work: Callable[[], object]) -> dict[str, float]:
    import resource

    used, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    with _Demand() as demand:
        effort = work()
    wall_s = time.perf_counter() - began
    now = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = now.ru_utime - used.ru_utime + now.ru_stime - used.ru_stime
    return {
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "used": cpu_s / wall_s / (os.cpu_count() or 1),
        "wanted": demand.share(wall_s),
        "load": os.getloadavg()[0],
        "peak_mib": now.ru_maxrss / 1024,
        "overhead": getattr(effort, "overhead", None) or 0.0,
        "units": getattr(effort, "units", 0),
    }


class _Demand:
    """Time in which the threads of this process ran or were ready to run; Linux only.

    On an idle machine this is their use of the processors.
    """

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> _Demand:
        self._look()
        self._before = dict(self._seen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._look()
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        # The last look at a thread that ends is shortly before its end.
        while not self._ended.wait(0.02):
            self._look()

    def _look(self) -> None:
        for task in Path("/proc/self/task").glob("*"):
            with contextlib.suppress(OSError):
                ran, waited, _ = (task / "schedstat").read_text().split()
                self._seen[task.name] = int(ran) + int(waited)

    def share(self, wall_s: float) -> float:
        """Returns the share of the busiest threads, as many as there are processors."""
        spans = sorted((ns - self._before.get(name, 0) for name, ns in self._seen.items()), reverse=True)
        processors = os.cpu_count() or 1
        return sum(spans[:processors]) / 1e9 / processors / wall_s


if __name__ == "__main__":
    main()
