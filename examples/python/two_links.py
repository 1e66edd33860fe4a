"""Exchanges messages with a peer and sends it a file over two links at the same time, on one machine, without root.

The links are two relays: a fast one, and a slow one with a longer delay and losses. The scheme selects a link for
each packet. The script compares the received file with the sent one.

    python examples/python/two_links.py
    python examples/python/two_links.py --scheme cmt --file film.mkv
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import anabranch
from anabranch.transfer import Association, Listener

# All traffic stays on this machine. Between machines both sides use keys instead.
INSECURE = True
LINKS = ["rate=20Mbit,delay=5ms,queue=50p", "rate=8Mbit,delay=40ms,loss=0.1%,queue=100p"]
CHUNK_BYTES = 64 << 10


@contextlib.asynccontextmanager
async def relays(targets: list[str]) -> AsyncIterator[list[str]]:
    """Starts a relay before each of these addresses, and yields the addresses of the relays."""
    command = [sys.executable, "-m", "anabranch", "relay", "--json"]
    for number, (target, link) in enumerate(zip(targets, LINKS, strict=True), 1):
        command += ["--listen", f"127.0.2.{number}:0", "--to", target, "--link", link]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield [json.loads(await process.stdout.readline())["listen"] for _ in targets]
    finally:
        process.terminate()
        await process.communicate()


def chunks(content: bytes) -> Iterator[memoryview]:
    view = memoryview(content)
    return (view[at : at + CHUNK_BYTES] for at in range(0, len(view), CHUNK_BYTES))


async def serve(listener: Listener) -> str:
    """Sends one message back, receives a file, and returns its hash."""
    async with await listener.accept() as association:
        greeting = await association.recv()
        assert greeting is not None
        await association.send(b"you said: " + greeting.payload)
        received = hashlib.sha256()
        async for message in association:
            received.update(message.payload)
        return received.hexdigest()


async def send(association: Association, content: bytes) -> None:
    await association.send(b"hello over two links")
    answer = await association.recv()
    assert answer is not None
    print(answer.payload.decode())
    for chunk in chunks(content):
        # Waits while the send buffer is full, so that a file of any size needs little memory.
        await association.send(chunk)
    await association.shutdown()
    for path in await association.paths():
        print(
            f"  {path.local} - {path.remote}: {path.sent_bytes / 1e6:.2f} MB sent, "
            f"{path.lost_bytes / 1e3:.0f} kB lost, RTT {path.srtt_ms or 0:.0f} ms, cwnd {path.cwnd_bytes / 1e3:.0f} kB"
        )


async def transfer(content: bytes, scheme: str) -> None:
    async with anabranch.listen(["127.0.0.1:0", "127.0.0.2:0"], insecure=INSECURE) as listener:
        serving = asyncio.create_task(serve(listener))
        try:
            async with (
                relays(listener.addresses) as addresses,
                anabranch.connect(
                    addresses, local=["127.0.1.1", "127.0.1.2"], scheme=scheme, insecure=INSECURE
                ) as association,
            ):
                await send(association, content)
                received = await serving
        finally:
            serving.cancel()
        if received != hashlib.sha256(content).hexdigest():
            sys.exit("The file arrived changed.")
    print(f"{len(content) / 1e6:.2f} MB arrived unchanged with {scheme}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheme", default="braid", help="scheme [default: braid]")
    parser.add_argument("--file", type=Path, help="file to send [default: 2 MB of random bytes]")
    arguments = parser.parse_args()
    try:
        content = arguments.file.read_bytes() if arguments.file else os.urandom(2_000_000)
        asyncio.run(transfer(content, arguments.scheme))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except anabranch.errors.AnabranchError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
