"""Sends 20 MB over two links by TCP, by the kernel's MPTCP and by Anabranch, in network namespaces.

    unshare -n python3 docs/figures/beside_mptcp.py --anabranch target/release/anabranch

Needs root on Linux with MPTCP (`net.mptcp.enabled`), `ip` and `tc` with tbf. The links have 20 and 8 Mbit/s, queues
of 90 kB in a router, and no delay of their own. In the second table the first link is down from 2 to 6 s after the
start. Prints the median time until the receiver had everything, and the range over --rounds.
"""

import argparse
import contextlib
import hashlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

IPPROTO_MPTCP = 262
LENGTH = 20_000_000
LINKS = (("one", "10.91", "20mbit"), ("two", "10.92", "8mbit"))
PORT = 9797
GIVE_UP_S = 60


def sh(command):
    subprocess.run(command, shell=True, check=True, capture_output=True)


def build(peer, router):
    """Two links from this namespace to that of the process `peer`, through that of `router`, which has the queues."""
    here, middle, there = "", f"nsenter -t {router} -n ", f"nsenter -t {peer} -n "
    for side in (here, middle, there):
        sh(f"{side} ip link set lo up")
    sh(f"{middle} sysctl -qw net.ipv4.ip_forward=1")
    for name, net, rate in LINKS:
        ends = ((here, 0, "1.1"), (middle, 1, "1.2"), (middle, 2, "2.1"), (there, 3, "2.2"))
        sh(f"ip link add {name}0 type veth peer name {name}1 netns {router}")
        sh(f"{middle} ip link add {name}2 type veth peer name {name}3 netns {peer}")
        for side, device, address in ends:
            sh(f"{side} ip addr add {net}.{address}/24 dev {name}{device}; {side} ip link set {name}{device} up")
        for device in (f"{name}1", f"{name}2"):
            sh(f"{middle} tc qdisc add dev {device} root tbf rate {rate} burst 16kb limit 90kb")
        sh(f"ip route add {net}.2.0/24 via {net}.1.2; {there} ip route add {net}.1.0/24 via {net}.2.1")
    # The server announces its second address, and the client opens one subflow to it.
    for side in (here, there):
        sh(f"{side} ip mptcp limits set subflow 2 add_addr_accepted 2")
    sh(f"{there} ip mptcp endpoint add {LINKS[1][1]}.2.2 dev two3 signal")


@contextlib.contextmanager
def cut(router, wanted):
    """Takes the first link down from 2 to 6 s from now."""
    command = f"nsenter -t {router} -n ip link set one2 "
    timers = [threading.Timer(2, sh, [command + "down"]), threading.Timer(6, sh, [command + "up"])] if wanted else []
    for timer in timers:
        timer.start()
    yield
    for timer in timers:
        timer.join()
    if wanted:
        time.sleep(2)


RECEIVER = f"""
import hashlib, socket, sys
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, int(sys.argv[1]))
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("0.0.0.0", {PORT}))
listener.listen(1)
print("listening", flush=True)
peer, _ = listener.accept()
sums = hashlib.sha256()
while part := peer.recv(1 << 16):
    sums.update(part)
peer.sendall(sums.digest())
"""


def by_socket(peer, router, protocol, payload, with_cut):
    command = ["nsenter", "-t", str(peer), "-n", sys.executable, "-c", RECEIVER, str(protocol)]
    receiver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    receiver.stdout.readline()
    data = payload.read_bytes()
    try:
        with cut(router, with_cut), socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as connection:
            connection.settimeout(GIVE_UP_S)
            began = time.monotonic()
            connection.connect(("10.91.2.2", PORT))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            arrived = connection.recv(32, socket.MSG_WAITALL) == hashlib.sha256(data).digest()
            return time.monotonic() - began if arrived else None
    finally:
        receiver.kill()
        receiver.wait()


def by_anabranch(anabranch, peer, router, payload, with_cut):
    with tempfile.TemporaryDirectory() as inbox:
        listen = [word for _, net, _ in LINKS for word in ("--listen", f"{net}.2.2")]
        serve = ["serve", "--json", "--dir", inbox, "--insecure", "--from", "10.0.0.0/8", *listen]
        command = ["nsenter", "-t", str(peer), "-n", anabranch, *serve]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        paths = [word for _, net, _ in LINKS for word in ("--path", f"{net}.1.1", "--to", f"{net}.2.2:9899")]
        try:
            with cut(router, with_cut):
                began = time.monotonic()
                command = [anabranch, "send", "--insecure", "--quiet", str(payload), "10.91.2.2", *paths]
                ended = subprocess.run(command, check=False, timeout=GIVE_UP_S, capture_output=True)
                return time.monotonic() - began if ended.returncode == 0 else None
        finally:
            server.terminate()
            server.wait()


def shown(times):
    good = [each for each in times if each is not None]
    if not good:
        return "did not arrive"
    text = f"{statistics.median(good):.1f} s ({min(good):.1f} to {max(good):.1f})"
    return text if len(good) == len(times) else f"{text}, {len(times) - len(good)} of {len(times)} did not arrive"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", default="anabranch")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    anabranch = str(Path(options.anabranch).resolve())
    others = [subprocess.Popen(["unshare", "-n", "sleep", "infinity"]) for _ in range(2)]
    peer, router = (each.pid for each in others)
    # Their namespaces are there when they are others than ours.
    while any(os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net") for pid in (peer, router)):
        time.sleep(0.01)
    try:
        build(peer, router)
        with tempfile.TemporaryDirectory() as folder:
            payload = Path(folder) / "payload.bin"
            payload.write_bytes(os.urandom(LENGTH))
            ways = {
                "TCP over the first link": lambda cut: by_socket(peer, router, socket.IPPROTO_TCP, payload, cut),
                "MPTCP over both": lambda cut: by_socket(peer, router, IPPROTO_MPTCP, payload, cut),
                "anabranch send over both": lambda cut: by_anabranch(anabranch, peer, router, payload, cut),
            }
            for with_cut in (False, True):
                print("first link down from 2 to 6 s" if with_cut else "both links up")
                for name, way in ways.items():
                    print(f"  {name:26} {shown([way(with_cut) for _ in range(options.rounds)])}", flush=True)
    finally:
        for each in others:
            each.kill()
            each.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
