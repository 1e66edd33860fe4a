"""Measures transfers from Python to Python beside `anabranch bench` over the same two loopback addresses.

Both take turns, so that other load affects both. Each is two processes: one that listens and one that sends. The time
is from the first message until the receiver has everything. The processor time is that of both processes, less that of
a transfer of one message. It hardly depends on other load.

    python python/benches/transfers.py --rounds 7 --mib 256 --lengths 65536 4096 512
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import anabranch

LISTEN = ["127.0.0.1", "127.0.0.2"]
LOCAL = ["127.0.1.1", "127.0.1.2"]


async def serve() -> None:
    """Receives from one peer, and prints the number of messages and bytes."""
    async with anabranch.listen([f"{address}:0" for address in LISTEN]) as listener:
        print(" ".join(listener.addresses), flush=True)
        async with await listener.accept() as association:
            messages = received_bytes = 0
            async for message in association:
                messages += 1
                received_bytes += len(message.payload)
    print(messages, received_bytes, flush=True)


async def send(addresses: list[str], total_bytes: int, length_bytes: int) -> None:
    """Sends, and prints the time in seconds."""
    payload = bytes(range(256)) * (length_bytes // 256 + 1)
    payload = payload[:length_bytes]
    async with anabranch.connect(addresses, local=LOCAL) as association:
        begun = time.perf_counter()
        for _ in range(total_bytes // length_bytes):
            await association.send(payload)
        await association.shutdown()
        print(time.perf_counter() - begun)


def python_rate(total_bytes: int, length_bytes: int) -> float:
    """Returns MB/s from Python to Python."""
    me = [sys.executable, __file__]
    with subprocess.Popen([*me, "--role", "serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        addresses = server.stdout.readline().split()
        size = ["--bytes", str(total_bytes), "--length", str(length_bytes)]
        client = subprocess.run(
            [*me, "--role", "send", *size, *addresses], stdout=subprocess.PIPE, text=True, check=True
        )
        messages, received_bytes = map(int, server.stdout.readline().split())
    assert (messages, received_bytes) == (total_bytes // length_bytes, total_bytes // length_bytes * length_bytes)
    return received_bytes / float(client.stdout) / 1e6


def native_rate(total_bytes: int, length_bytes: int) -> float:
    """Returns MB/s of `anabranch bench`."""
    bench = [sys.executable, "-m", "anabranch", "bench"]
    listen = [word for address in LISTEN for word in ("--listen", f"{address}:0")]
    serve = [*bench, "-s", "-1", "--json-stream", "--insecure", "--from", "127.0.0.0/8", *listen]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        listening = server.stdout.readline()
        paths = [word for local in LOCAL for word in ("--path", local)]
        ends = re.findall(r"127\.0\.0\.\d:\d+", listening)
        to = [word for end in ends for word in ("--to", end)]
        size = ["-n", str(total_bytes), "-l", str(length_bytes), "-i", "0", "-J"]
        client = subprocess.run(
            [*bench, "-c", ends[0], "--insecure", *paths, *to, *size],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    sender = json.loads(client.stdout)["end"]["forward"]["sender"]
    return float(sender["bytes"]) / float(sender["seconds"]) / 1e6


def measured(rate: Callable[[int, int], float], total_bytes: int, length_bytes: int) -> tuple[float, float]:
    """Returns MB/s, and the processor time of both processes in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    rate_mb_s = rate(total_bytes, length_bytes)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return rate_mb_s, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def compare(rounds: int, total_bytes: int, length_bytes: int) -> None:
    rates, costs = [], []
    start_s = {one: measured(one, length_bytes, length_bytes)[1] for one in (python_rate, native_rate)}
    for turn in range(rounds):
        # The order alternates, too.
        order = [python_rate, native_rate] if turn % 2 else [native_rate, python_rate]
        figures = {}
        for one in order:
            rate_mb_s, spent_s = measured(one, total_bytes, length_bytes)
            figures[one] = (rate_mb_s, (spent_s - start_s[one]) * 1e9 / total_bytes)
        (python, python_ms), (native, native_ms) = figures[python_rate], figures[native_rate]
        rates.append(python / native)
        costs.append(python_ms / native_ms)
        print(
            f"{length_bytes:>8} B  Python {python:6.1f} MB/s {python_ms:5.1f} ms/MB"
            f"  native {native:6.1f} MB/s {native_ms:5.1f} ms/MB"
        )
    print(
        f"{length_bytes:>8} B  median ratios: rate {statistics.median(rates):.2f}, "
        f"processor time {statistics.median(costs):.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=256, help="what is sent in each turn")
    parser.add_argument("--lengths", type=int, nargs="+", default=[65536], help="bytes of a message")
    parser.add_argument("--role", choices=["serve", "send"], help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    parser.add_argument("addresses", nargs="*", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role == "serve":
        asyncio.run(serve())
    elif arguments.role == "send":
        asyncio.run(send(arguments.addresses, arguments.bytes, arguments.length))
    else:
        for length_bytes in arguments.lengths:
            compare(arguments.rounds, arguments.mib << 20, length_bytes)


if __name__ == "__main__":
    main()
