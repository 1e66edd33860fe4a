"""Error messages of transfers."""

from __future__ import annotations

import asyncio
import math
import pickle
import socket

import numpy as np
import pytest
from transfer_rig import here, in_loop, listening, pair

import anabranch
from anabranch.errors import AnabranchError, SchemeError
from anabranch.transfer import (
    ArgumentError,
    AssociationLostError,
    ConnectError,
    ConnectRefusedError,
    ConnectTimeoutError,
    ListenError,
    TransferError,
)


@in_loop
@pytest.mark.parametrize(
    ("remote", "local", "says"),
    [
        ([], None, "remote: name at least one address of the peer"),
        ("", None, "remote `` is not a host"),
        ("127.0.0.1:0", None, "remote `127.0.0.1:0`: `0` is not a valid destination port; choose one from 1 to 65535"),
        ("127.0.0.1:65536", None, "`65536` is not a valid destination port"),
        ("127.0.0.1:http", None, "`http` is not a valid destination port"),
        ("sctp://host", None, "is not a valid destination port"),
        (
            ["127.0.0.1:7", "127.0.0.2:7"],
            ["127.0.1.1"],
            "2 times remote for 1 times local: give one for all, or one for",
        ),
        (
            "127.0.0.1:7",
            "no-such-card",
            "local no-such-card: neither an address nor an interface with one; there are lo",
        ),
        ("127.0.0.1:7", "192.0.2.1", "local 192.0.2.1: no path can begin at this address"),
        ("127.0.0.1:7", "::1", "local ::1: it has IPv6 only and 127.0.0.1:7 has IPv4 only"),
        ("127.0.0.1:7", [f"127.0.1.{last}" for last in range(1, 10)], "local: 9 paths are more than the 8"),
        ([("127.0.1.1", "127.0.0.1:7"), "127.0.0.2:7"], None, "give (local, remote) pairs for all paths"),
        ([("127.0.1.1", "127.0.0.1:7")], "127.0.1.1", "give (local, remote) pairs for all paths"),
        ([("127.0.1.1", "127.0.0.1:7", "x")], None, "a path is a pair of a local and a remote address"),
    ],
)
async def test_addresses_that_cannot_be_used_are_named(remote, local, says):
    with pytest.raises(ArgumentError) as wrong:
        await anabranch.connect(remote, local=local)
    assert says in str(wrong.value)


@in_loop
async def test_unknown_host_is_named():
    name = "x" * 300
    with pytest.raises(ConnectError, match=f"remote {name}: no address is known for this name"):
        await anabranch.connect(name)


@in_loop
@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("streams", 0, "streams is 0; give a number from 1 to 65535"),
        ("streams", 65536, "streams is 65536"),
        ("recv_buffer_bytes", 100, "recv_buffer_bytes is 100; give a number from 4096 to 4294967296"),
        ("send_buffer_bytes", -1, "send_buffer_bytes is -1"),
        ("peer_silence_s", 0.0, "peer_silence_s is out of range"),
        ("peer_silence_s", math.nan, "peer_silence_s is out of range"),
        ("failover_ms", -5, "failover_ms is out of range"),
        ("largest_message_bytes", 0, "largest_message_bytes is 0; give a number from 1"),
        ("connect_timeout_s", math.inf, "connect_timeout_s is out of range; give a time that is more than 0"),
        ("sctp_port", 0, "sctp_port is 0; give a number from 1 to 65535"),
    ],
)
async def test_invalid_settings_are_named(setting, value, says):
    with pytest.raises(ArgumentError) as wrong:
        await anabranch.connect("127.0.0.1:7", **{setting: value})
    assert says in str(wrong.value)
    if setting != "connect_timeout_s":
        with pytest.raises(ArgumentError, match=setting):
            await anabranch.listen("127.0.0.1:0", **{setting: value})


@in_loop
async def test_a_setting_of_the_wrong_type_is_a_type_error():
    with pytest.raises(TypeError, match="streams"):
        await anabranch.connect("127.0.0.1:7", streams="many")


WHOLE = {"streams": 4, "sctp_port": 9899, "send_buffer_bytes": 1 << 20, "recv_buffer_bytes": 1 << 20}
REAL = {"peer_silence_s": 30, "failover_ms": 400}


@in_loop
async def test_numpy_numbers_are_accepted_as_settings_and_limits():
    settings = {name: np.int64(value) for name, value in WHOLE.items()} | {
        name: np.float32(value) for name, value in REAL.items()
    }
    messages = {"stream": np.uint8(3), "ppid": np.int32(7), "context": np.int64(9), "lifetime_s": np.float32(5)}
    size = np.int64(1 << 20)
    async with anabranch.listen(
        "127.0.0.1:0", **settings, backlog=np.int16(4), largest_message_bytes=size, insecure=True
    ) as listener:
        opening = anabranch.connect(
            listener.addresses, **settings, connect_timeout_s=np.float32(10), largest_message_bytes=size, insecure=True
        )
        async with opening as ours:
            theirs = await listener.accept()
            await ours.send(b"a", **messages)
            await ours.send(b"b", max_retransmissions=np.int64(3))
            received = await theirs.recv()
            assert (received.stream, received.ppid) == (3, 7)


@in_loop
@pytest.mark.parametrize("value", [True, np.True_, "3", np.array([1, 2])])
@pytest.mark.parametrize("setting", [*WHOLE, *REAL, "largest_message_bytes"])
async def test_truth_values_and_text_are_refused_as_numbers(setting, value):
    for opening in (anabranch.connect("127.0.0.1:7", **{setting: value}), anabranch.listen(**{setting: value})):
        with pytest.raises(TypeError, match=f"{setting}: expected a (whole )?number"):
            await opening


@in_loop
async def test_fractions_and_nan_are_refused_where_they_mean_nothing():
    with pytest.raises(TypeError, match=r"streams: expected a whole number, found 1\.5"):
        await anabranch.connect("127.0.0.1:7", streams=1.5)
    with pytest.raises(ArgumentError, match="failover_ms is out of range"):
        await anabranch.connect("127.0.0.1:7", failover_ms=np.float64("nan"))
    with pytest.raises(TypeError, match="connect_timeout_s: expected a number, found True"):
        await anabranch.connect("127.0.0.1:7", connect_timeout_s=True)
    async with pair() as (ours, _):
        for wrong in ({"stream": True}, {"lifetime_s": True}, {"max_retransmissions": np.True_}, {"ppid": 1.5}):
            with pytest.raises(TypeError, match=next(iter(wrong))):
                await ours.send(b"x", **wrong)


@in_loop
async def test_a_scheme_that_does_not_exist_is_named_with_the_nearest():
    for opening in (anabranch.connect("127.0.0.1:7", scheme="cmtt"), anabranch.listen("127.0.0.1:0", scheme="cmtt")):
        with pytest.raises(SchemeError, match=r'scheme "cmtt": .*did you mean `cmt`'):
            await opening


@in_loop
async def test_closed_port_is_a_refusal_that_is_named():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectRefusedError, match=f"port {port} of 127.0.0.1 is closed"):
        await anabranch.connect(f"127.0.0.1:{port}", local="127.0.1.2", connect_timeout_s=600)


@in_loop
async def test_silence_is_reported_with_peer_and_attempts():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        target = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectTimeoutError) as silence:
            await anabranch.connect(target, local=here(2, 1), connect_timeout_s=0.2)
    assert str(silence.value) == (
        f"{target}: no answer arrived within 0.2 s (127.0.1.1 to {target}, 127.0.1.2 to {target}); "
        "check that the peer is listening and accepts this machine, its port, and firewalls"
    )


@in_loop
async def test_a_refusal_is_named_with_the_peer():
    async with listening() as listener:
        target = listener.addresses[0]
        listener.stop()
        with pytest.raises(ConnectRefusedError, match=f"^{target}: the peer refuses associations; check its SCTP port"):
            await anabranch.connect(target)


def checksum(packet: bytes) -> bytes:
    """Returns the CRC32c of a packet whose checksum is zero (RFC 9260 appendix A)."""
    crc = 0xFFFFFFFF
    for byte in packet:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return (crc ^ 0xFFFFFFFF).to_bytes(4, "little")


def forged_abort(init: bytes) -> bytes:
    """Returns an ABORT with the tag of an INIT, as an attacker on the path can send it."""
    header, chunk = init[2:4] + init[:2] + init[16:20], bytes([6, 0, 0, 4])
    return header + checksum(header + bytes(4) + chunk) + chunk


@in_loop
async def test_refusal_in_the_clear_is_believed_after_three_attempts():
    class Refusing(asyncio.DatagramProtocol):
        def __init__(self) -> None:
            self.callers: set[tuple[str, int]] = set()

        def connection_made(self, transport: asyncio.DatagramTransport) -> None:
            self.transport = transport

        def datagram_received(self, packet: bytes, caller: tuple[str, int]) -> None:
            self.callers.add(caller)
            self.transport.sendto(forged_abort(packet), caller)

    transport, refusing = await asyncio.get_running_loop().create_datagram_endpoint(
        Refusing, local_addr=("127.0.0.1", 0)
    )
    try:
        with pytest.raises(ConnectRefusedError):
            await anabranch.connect("{}:{}".format(*transport.get_extra_info("sockname")))
    finally:
        transport.close()
    assert len(refusing.callers) == 3


@in_loop
async def test_a_second_listener_at_an_sctp_port_of_its_own_can_be_reached():
    async with listening(sctp_port=7) as listener, anabranch.connect(listener.addresses, sctp_port=7) as ours:
        assert ours.is_open


@in_loop
@pytest.mark.parametrize(
    ("addresses", "error", "says"),
    [
        ("localhost:0", ArgumentError, 'addresses "localhost:0": expected an address with or without a port'),
        (["127.0.0.1:0", "127.0.0.1:0"], ArgumentError, "addresses: 127.0.0.1 was given twice"),
        ("192.0.2.1:0", ListenError, "cannot bind 192.0.2.1:0: "),
    ],
)
async def test_addresses_that_cannot_be_listened_on_are_named(addresses, error, says):
    with pytest.raises(error) as wrong:
        await anabranch.listen(addresses)
    assert says in str(wrong.value)


@in_loop
@pytest.mark.parametrize(
    ("networks", "says"),
    [
        ("10.0.0.0/33", 'accept_from "10.0.0.0/33": the prefix length has to be a number from 1 to 32'),
        (["::1", "host"], 'accept_from "host": expected an IP address with or without a prefix length'),
        ("0.0.0.0/0", 'accept_from "0.0.0.0/0": this network contains every address; None is for everyone'),
        ([], "accept_from: name at least one network; None is for everyone"),
    ],
)
async def test_networks_that_cannot_be_accepted_from_are_named(networks, says):
    with pytest.raises(ArgumentError) as wrong:
        await anabranch.listen("127.0.0.1:0", accept_from=networks)
    assert says in str(wrong.value)


@in_loop
async def test_peers_are_accepted_from_the_networks_that_were_named_only():
    async with anabranch.listen("127.0.0.1:0", accept_from=["127.0.1.2", "127.0.1.4/31"]) as listener:
        with pytest.raises(ConnectTimeoutError):
            await anabranch.connect(listener.addresses, local="127.0.1.3", connect_timeout_s=0.4)
        for admitted in ("127.0.1.2", "127.0.1.5"):
            async with anabranch.connect(listener.addresses, local=admitted) as ours:
                theirs = await listener.accept()
                await ours.send(b"from an admitted address")
                assert (await theirs.recv()).payload == b"from an admitted address"


@in_loop
async def test_invalid_backlog_is_named():
    with pytest.raises(ArgumentError, match="backlog is 0; give a number from 1 to 65536"):
        await anabranch.listen("127.0.0.1:0", backlog=0)


def test_all_errors_are_the_packages_and_survive_a_pickle():
    for error in (ArgumentError("a"), ConnectTimeoutError("b"), AssociationLostError("c", "undelivered")):
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, TransferError)
        assert isinstance(again, AnabranchError)
        assert str(again) == str(error)
    assert isinstance(ArgumentError("a"), ValueError)
    assert pickle.loads(pickle.dumps(AssociationLostError("c", "undelivered"))).reason == "undelivered"


def test_event_loop_without_pipe_support_is_reported():
    class Loop(asyncio.SelectorEventLoop):
        def add_reader(self, fd, callback, *args):
            raise NotImplementedError

    loop = Loop()
    try:
        with pytest.raises(TransferError, match="Loop cannot watch a pipe; use an event loop that can"):
            loop.run_until_complete(opened(anabranch.connect("127.0.0.1:7")))
    finally:
        loop.close()


async def opened(opening):
    return await opening
