"""A NAT of a test: joins the namespace in which it starts to another one, as a router with one public address.

The arguments are the type of the NAT, the public address, the local address of the host behind it, and the process
whose network namespace has the public address. UDP over IPv4 passes, everything else is dropped.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import socket
import struct
import subprocess
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000


def open_device(local):
    """Creates the interface of the host, over which everything leaves."""
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", b"nat0", IFF_TUN | IFF_NO_PI))
    script = f"ip link set lo up; ip addr add {local}/24 dev nat0; ip link set nat0 up; ip route add default dev nat0"
    subprocess.run(["sh", "-ec", script], check=True)
    return device


def enter_network(process):
    with open(f"/proc/{process}/ns/net", "rb") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def packet(source, target, payload):
    """Returns an IPv4 packet with a UDP datagram without checksum."""
    length = 28 + len(payload)
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    header = struct.pack("!BBHHHBBH", 0x45, 0, length, 0, 0, 64, socket.IPPROTO_UDP, 0) + addresses
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return header + struct.pack("!HHHH", source[1], target[1], length - 20, 0) + payload


class Nat:
    """Mappings from internal sources to sockets at the public address."""

    def __init__(self, kind, public):
        self.kind, self.public = kind, public
        self.mappings, self.inside, self.sent = {}, {}, {}

    def outgoing(self, source, target, payload):
        key = (source, target if self.kind == "symmetric" else None)
        if key not in self.mappings:
            mapped = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            mapped.bind((self.public, 0))
            self.mappings[key] = mapped
            self.inside[mapped], self.sent[mapped] = source, set()
        mapped = self.mappings[key]
        self.sent[mapped].add(target)
        # An error is a missing route, or an ICMP message about an earlier datagram.
        with contextlib.suppress(OSError):
            mapped.sendto(payload, target)

    def admits(self, mapped, source):
        if self.kind == "full-cone":
            return True
        if self.kind == "restricted":
            return source[0] in {address for address, _ in self.sent[mapped]}
        return source in self.sent[mapped]


def main():
    kind, public, local, process = sys.argv[1:]
    device = open_device(local)
    enter_network(process)
    nat = Nat(kind, public)
    print("started", flush=True)
    while True:
        for ready in select.select([device, *nat.inside], [], [])[0]:
            if ready == device:
                data = os.read(device, 65536)
                if data[0] != 0x45 or data[9] != socket.IPPROTO_UDP:
                    continue
                source_port, target_port, length = struct.unpack("!HHH", data[20:26])
                source = (socket.inet_ntoa(data[12:16]), source_port)
                nat.outgoing(source, (socket.inet_ntoa(data[16:20]), target_port), data[28 : 20 + length])
                continue
            try:
                payload, source = ready.recvfrom(65536)
            except OSError:
                continue
            if nat.admits(ready, source):
                os.write(device, packet(source, nat.inside[ready], payload))


main()
