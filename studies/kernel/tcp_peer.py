"""Sender or receiver of a TCP or MPTCP connection.

    python3 tcp_peer.py receive --port 9797 --omit-s 5
    python3 tcp_peer.py send 10.91.1.2 --port 9797 --control cubic --seconds 30
    python3 tcp_peer.py send 10.91.1.2 --port 9797 --control bbr --mptcp --file clip.bin

The receiver prints the number of bytes that arrived in the counted time, and answers with the SHA-256 of all data. The
sender of a file exits with 0 if that is the hash of the file.
"""

from __future__ import annotations

import argparse
import hashlib
import socket
import sys
import time
from pathlib import Path

IPPROTO_MPTCP = 262
GIVE_UP_S = 120
BLOCK_BYTES = 1 << 16


def opened(options: argparse.Namespace) -> socket.socket:
    protocol = IPPROTO_MPTCP if options.mptcp else socket.IPPROTO_TCP
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)


def receive(options: argparse.Namespace) -> int:
    # The listener stays open: it also takes the subflows that join an MPTCP connection later.
    with opened(options) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("0.0.0.0", options.port))
        listener.listen(8)
        print("listening", flush=True)
        peer, _ = listener.accept()
        with peer:
            print(read_all(peer, options.omit_s, options.seconds), flush=True)
    return 0


def read_all(peer: socket.socket, omit_s: float, seconds: float) -> int:
    """Reads to the end, answers with the hash of all data, and returns the bytes that arrived in the counted time."""
    sums, counted = hashlib.sha256(), 0
    counts_from = time.monotonic() + omit_s
    while part := peer.recv(BLOCK_BYTES):
        sums.update(part)
        if counts_from <= time.monotonic() < counts_from + seconds:
            counted += len(part)
    peer.sendall(sums.digest())
    return counted


def send_for(connection: socket.socket, seconds: float) -> None:
    until = time.monotonic() + seconds
    connection.settimeout(0.2)
    block = bytes(BLOCK_BYTES)
    while time.monotonic() < until:
        try:
            connection.send(block)
        except TimeoutError:
            continue


def send(options: argparse.Namespace) -> int:
    with opened(options) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, options.control.encode())
        connection.settimeout(GIVE_UP_S)
        connection.connect((options.host, options.port))
        if options.file is None:
            send_for(connection, options.seconds)
            return 0
        data = options.file.read_bytes()
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(32, socket.MSG_WAITALL)
    return 0 if answer == hashlib.sha256(data).digest() else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("role", choices=["receive", "send"])
    parser.add_argument("host", nargs="?")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mptcp", action="store_true")
    parser.add_argument("--control", default="cubic")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="to send, or to count")
    parser.add_argument("--omit-s", type=float, default=0.0)
    options = parser.parse_args()
    return receive(options) if options.role == "receive" else send(options)


if __name__ == "__main__":
    sys.exit(main())
