"""Client and server in network namespaces, joined by links that the kernel limits.

The links of `studies.arena.network` emulate delays, and take too much processor time at hundreds of Mbit/s.
"""

from __future__ import annotations

from collections.abc import Sequence

from studies.kernel.links import Namespace

BURST = "64kb"
"""Bytes that `tbf` sends at once. The kernel needs some at rates at which a timer would run for each packet."""
QUEUE_MS = 30
"""Time that the queue of a link takes to empty."""


class ShapedNetwork:
    """Namespaces of a client and a server, and a router between them that limits each link in both directions."""

    def __init__(self, rates_mbps: Sequence[float]) -> None:
        self.client, self.server, self._router = Namespace(), Namespace(), Namespace()
        self.numbers = range(1, len(rates_mbps) + 1)
        """Numbers of the links, from 1."""
        try:
            for side in (self.client, self.server, self._router):
                side.run("ip link set lo up")
            self._router.run("sysctl -q -w net.ipv4.ip_forward=1")
            for number, rate_mbps in zip(self.numbers, rates_mbps, strict=True):
                self._attach(self.client, f"c{number}", self.client_address(number), rate_mbps)
                self._attach(self.server, f"s{number}", self.server_address(number), rate_mbps)
        except BaseException:
            self.close()
            raise

    def client_address(self, number: int) -> str:
        return f"10.91.{number}.1"

    def server_address(self, number: int) -> str:
        return f"10.91.{number}.2"

    def late_us(self) -> float:
        """Returns 0: the kernel does not report how late its timers are."""
        return 0.0

    def _attach(self, side: Namespace, device: str, address: str, rate_mbps: float) -> None:
        """Joins a side to the router, which answers for the other side of the link and limits the rate to this one."""
        near = f"r{device}"
        side.run(f"ip link add {device} type veth peer name {near} netns {self._router.pid}")
        side.run(f"ip addr add {address}/24 dev {device}")
        # Packets as on a wire: none longer than the MTU, and all with a checksum.
        side.run(f"ethtool -K {device} tx off sg off tso off gso off")
        side.run(f"ip link set {device} up")
        self._router.run(f"ip link set {near} up")
        self._router.run(f"sysctl -q -w net.ipv4.conf.{near}.proxy_arp=1")
        self._router.run(f"ip route add {address} dev {near}")
        limit_bytes = round(rate_mbps * 125 * QUEUE_MS)
        shape = f"rate {rate_mbps:g}mbit burst {BURST} limit {limit_bytes}"
        self._router.run(f"tc qdisc add dev {near} root tbf {shape}")

    def close(self) -> None:
        for side in (self.client, self.server, self._router):
            side.close()
