"""Ends of associations, listeners, event loops and processes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
import subprocess
import sys

import pytest
from transfer_rig import (
    SMALL,
    environment,
    everything,
    fill,
    here,
    in_loop,
    leave,
    listening,
    pair,
    run_script,
    script,
    until,
)

import anabranch
from anabranch.transfer import AssociationClosedError, AssociationLostError, ListenError


def port_of(address: str) -> tuple[str, int]:
    host, port = address.rsplit(":", 1)
    return host, int(port)


def can_bind(address: tuple[str, int]) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plain:
        try:
            plain.bind(address)
        except OSError:
            return False
    return True


@in_loop
async def test_leaving_delivers_everything_that_was_accepted():
    async with listening(paths=2, recv_buffer_bytes=64 << 10) as listener:

        async def send():
            async with anabranch.connect(listener.addresses, local=here(2, 1)) as ours:
                for number in range(500):
                    await ours.send(number.to_bytes(1000, "big"))

        sending = asyncio.ensure_future(send())
        async with await listener.accept() as theirs:
            assert [int.from_bytes(message.payload, "big") async for message in theirs] == list(range(500))
        await sending


@in_loop
async def test_two_sides_that_leave_unread_messages_can_both_leave():
    async with pair(**SMALL) as (ours, theirs):
        await asyncio.gather(fill(ours, theirs), fill(theirs, ours))
        # Messages that a peer did not accept before it disconnected are reported.
        for outcome in await asyncio.gather(leave(ours), leave(theirs), return_exceptions=True):
            assert outcome is None or outcome.reason == "undelivered"


@in_loop
async def test_leaving_by_an_exception_aborts_and_lets_the_exception_through():
    async def fail():
        async with anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
            await ours.send(b"half of it")
            raise ZeroDivisionError

    async with listening() as listener:
        with pytest.raises(ZeroDivisionError):
            await fail()
        theirs = await listener.accept()
        with pytest.raises(AssociationLostError, match="aborted by the peer") as lost:
            await theirs.closed()
        with pytest.raises(AssociationLostError):
            await everything(theirs)
        assert lost.value.reason == "aborted-by-peer"
        assert str(lost.value).startswith("127.0.1.1:")


@in_loop
async def test_an_exception_is_not_hidden_by_a_loss():
    async def fail():
        async with anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
            (await listener.accept()).abort()
            await until(lambda: closed(ours))
            raise ZeroDivisionError

    async with listening() as listener:
        with pytest.raises(ZeroDivisionError):
            await fail()


@in_loop
async def test_leaving_by_cancellation_aborts():
    async with listening() as listener:
        entered = asyncio.Event()

        async def use():
            async with anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
                entered.set()
                await ours.recv()

        using = asyncio.ensure_future(use())
        theirs = await listener.accept()
        await entered.wait()
        using.cancel()
        with pytest.raises(asyncio.CancelledError):
            await using
        with pytest.raises(AssociationLostError):
            await theirs.closed()


@in_loop
async def test_a_loss_is_raised_on_leaving_unless_it_is_known():
    async with listening() as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1))
        (await listener.accept()).abort()
        await until(lambda: closed(ours))
        with pytest.raises(AssociationLostError, match="aborted by the peer"):
            await leave(ours)
        async with anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
            (await listener.accept()).abort()
            with pytest.raises(AssociationLostError):
                await ours.recv()


async def closed(association):
    return not association.is_open


@in_loop
async def test_aborting_inside_is_no_error_on_leaving():
    async with listening() as listener, anabranch.connect(listener.addresses, local=here(1, 1)) as ours:
        ours.abort()
        ours.abort()
        with pytest.raises(AssociationClosedError, match="aborted by this application"):
            await ours.closed()


@in_loop
async def test_closed_association_refuses_calls_and_keeps_its_figures():
    # Messages of the key management would count as well.
    async with pair(paths=2, insecure=True) as (ours, _):
        await ours.send(b"four")
    for call in (ours.recv, ours.shutdown, ours.closed, lambda: ours.send(b"x"), lambda: ours.remove_path(0)):
        with pytest.raises(AssociationClosedError, match=f"^{ours.peer}: this side has left the association"):
            await call()
    assert not ours.is_open
    assert "closed" in repr(ours)
    assert len(await ours.paths()) == 2
    assert (await ours.statistics()).chunks_sent == 1
    assert [event async for event in ours.events()] == []
    ours.abort()
    async with ours:
        pass


@in_loop
async def test_sockets_are_closed_when_an_association_was_left_by_an_exception():
    async with listening() as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1))
        theirs = await listener.accept()
        source = port_of((await theirs.paths())[0].remote)
        assert not can_bind(source)
        with pytest.raises(ZeroDivisionError):
            await fail_in(ours)
        assert can_bind(source)


async def fail_in(association):
    async with association:
        raise ZeroDivisionError


@in_loop
async def test_a_peer_that_missed_the_last_packet_is_answered_after_the_end():
    # Not encrypted, so that `Lossy` recognises the SHUTDOWN COMPLETE.
    async with anabranch.listen("127.0.0.1:0", insecure=True) as listener:
        lossy = await Lossy.before(listener.addresses[0])
        with contextlib.closing(lossy):
            ours = await anabranch.connect(lossy.address, local="127.0.1.1", insecure=True)
            theirs = await listener.accept()
            await ours.send(b"the last one")
            assert (await theirs.recv()).payload == b"the last one"
            lossy.loses_ends = 1
            await leave(ours)
            assert await theirs.recv() is None
            assert lossy.loses_ends == 0


class Lossy(asyncio.DatagramProtocol):
    """Relays datagrams between a client and a server, and can drop those with a SHUTDOWN COMPLETE."""

    SHUTDOWN_COMPLETE = 14

    def __init__(self, target):
        self._target = port_of(target)
        self._client = None
        self.loses_ends = 0

    @classmethod
    async def before(cls, target):
        loop = asyncio.get_running_loop()
        _, lossy = await loop.create_datagram_endpoint(lambda: cls(target), local_addr=("127.0.2.1", 0))
        return lossy

    def connection_made(self, transport):
        self._transport = transport
        host, port = transport.get_extra_info("sockname")
        self.address = f"{host}:{port}"

    def datagram_received(self, data, source):
        if source == self._target:
            self._transport.sendto(data, self._client)
            return
        self._client = source
        # The first chunk follows the common header of 12 bytes.
        if self.loses_ends and data[12] == self.SHUTDOWN_COMPLETE:
            self.loses_ends -= 1
        else:
            self._transport.sendto(data, self._target)

    def close(self):
        self._transport.close()


@pytest.mark.skipif(sys.platform != "linux", reason="counts file descriptors as Linux shows them")
@in_loop
async def test_closed_associations_leave_no_open_sockets():
    async def open_files():
        return len(os.listdir("/proc/self/fd"))

    async with listening() as listener:
        for turn in range(12):
            # Without local addresses, the machine's interfaces are watched as well.
            async with anabranch.connect(listener.addresses), await listener.accept():
                pass
            if turn == 1:
                before = await open_files()
        await until(lambda: at_most(open_files, before))


async def at_most(count, limit):
    return await count() <= limit


@in_loop
async def test_an_association_that_is_dropped_is_aborted():
    async with listening() as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1))
        theirs = await listener.accept()
        await ours.send(b"half of it")
        del ours
        gc.collect()
        with pytest.raises(AssociationLostError):
            await theirs.closed()


@in_loop
async def test_messages_accepted_before_the_peers_shutdown_arrive():
    async with listening(**SMALL) as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1), **SMALL)
        theirs = await listener.accept()
        accepted = await fill(ours, theirs)
        ending = asyncio.ensure_future(theirs.shutdown())
        await until(lambda: refused(ours))
        # Now the peer reads, so that the shutdown can complete.
        received = [message async for message in theirs]
        await ending
        await ours.closed()
        assert sum(len(message.payload) for message in received) >= accepted


async def refused(association):
    try:
        await asyncio.wait_for(association.send(b"x"), 0.01)
    except AssociationClosedError:
        return True
    except asyncio.TimeoutError:
        pass
    return False


@in_loop
async def test_a_listener_that_was_left_has_closed_its_sockets():
    for _ in range(3):
        async with listening() as listener:
            address = port_of(listener.addresses[0])
            async with anabranch.connect(listener.addresses, local=here(1, 1)), await listener.accept():
                pass
            assert not can_bind(address)
        assert can_bind(address)


@in_loop
async def test_accepted_associations_outlive_their_listener():
    async with listening() as listener:
        ours = await anabranch.connect(listener.addresses, local=here(1, 1))
        theirs = await listener.accept()
        waits = await anabranch.connect(listener.addresses, local=here(1, 2))
    with pytest.raises(AssociationLostError):
        await waits.closed()
    await ours.send(b"still here")
    assert (await theirs.recv()).payload == b"still here"
    assert (await listener.statistics()).associations == 0
    async with ours, theirs:
        pass


@in_loop
async def test_stopped_listener_returns_waiting_associations_and_ends():
    async with listening() as listener:
        waits = [await anabranch.connect(listener.addresses, local=here(1, node)) for node in (1, 2)]
        while (await listener.statistics()).associations < len(waits):
            await asyncio.sleep(0.002)
        listener.stop()
        assert len([association async for association in listener]) == 2
        with pytest.raises(AssociationClosedError, match=f"^{listener.addresses[0]}: the listener was stopped"):
            await listener.accept()


@in_loop
async def test_closing_a_listener_ends_a_task_that_waits_for_associations():
    listener = await anabranch.listen("127.0.0.1:0")

    async def serve():
        return [association async for association in listener]

    serving = asyncio.ensure_future(serve())
    await asyncio.sleep(0.01)
    await listener.close()
    assert await serving == []


@in_loop
async def test_a_port_that_another_one_has_is_named():
    async with listening() as listener:
        with pytest.raises(
            ListenError, match=rf"^cannot bind {listener.addresses[0]}: .*no other program has the port"
        ):
            await anabranch.listen(listener.addresses)


def test_an_association_serves_one_event_loop_after_another():
    loop = asyncio.new_event_loop()
    listener = loop.run_until_complete(asyncio.wait_for(anabranch.listen("127.0.0.1:0"), 60))
    loop.run_until_complete(listener.close())
    loop.close()
    for _ in range(3):
        in_loop(test_sockets_are_closed_when_an_association_was_left_by_an_exception.__wrapped__)()


OPEN_ENDED = """
import asyncio, sys, anabranch

async def main():
    global ours
    ours = await anabranch.connect(sys.argv[1], local="127.0.1.1")
    await ours.send(b"x" * 1000)
    await ours.recv()
    waiting.append(asyncio.ensure_future(ours.recv()))
    waiting.append(await anabranch.listen("127.0.1.1:0"))
    {last}

waiting = []
{run}
"""


@pytest.mark.parametrize(
    ("run", "last", "status", "says"),
    [
        ("asyncio.run(main())", "pass", 0, ""),
        (
            "loop = asyncio.new_event_loop(); loop.run_until_complete(main()); loop.close()",
            "waiting.pop(0).cancel()",
            0,
            "",
        ),
        ("asyncio.run(main())", "sys.exit(3)", 3, ""),
        ("asyncio.run(main())", "raise ZeroDivisionError('on purpose')", 1, "ZeroDivisionError: on purpose"),
        (
            "asyncio.run(main())",
            "import os, signal; os.kill(os.getpid(), signal.SIGINT); await ours.recv()",
            -2,
            "KeyboardInterrupt",
        ),
    ],
    ids=["end", "closed loop", "exit", "exception", "Ctrl-C"],
)
@in_loop
async def test_exit_with_open_associations_aborts_them(run, last, status, says):
    async with listening() as listener:
        command = script(OPEN_ENDED.format(run=run, last=last), listener.addresses[0])
        process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
        async with await listener.accept() as theirs:
            assert len((await theirs.recv()).payload) == 1000
            # The association ends only now, since an abort may overtake unread messages.
            await theirs.send(b"go on")
            with pytest.raises(AssociationLostError, match="aborted by the peer"):
                await theirs.recv()
        _, errors = await asyncio.get_running_loop().run_in_executor(None, process.communicate)
        assert process.returncode == status, errors
        assert errors.strip().split("\n")[-1] == says, errors
        assert ("Traceback" in errors) == bool(says)


@in_loop
async def test_killed_peer_is_detected():
    async with listening(peer_silence_s=0.5) as listener:
        forever = OPEN_ENDED.format(run="asyncio.run(main())", last="await asyncio.sleep(3600)")
        process = subprocess.Popen(script(forever, listener.addresses[0]), env=environment())
        theirs = await listener.accept()
        assert len((await theirs.recv()).payload) == 1000
        process.kill()
        await asyncio.get_running_loop().run_in_executor(None, process.wait)
        await theirs.send(b"is anybody there?")
        with pytest.raises(AssociationLostError, match="the peer stopped answering on every path") as lost:
            await theirs.recv()
        assert lost.value.reason == "peer-unreachable"


THREADS = """
import asyncio, sys, threading, anabranch

def use(name):
    async def main():
        async with anabranch.listen("127.0.0.1:0") as listener:
            async with anabranch.connect(listener.addresses, local="127.0.1.1") as ours:
                async with await listener.accept() as theirs:
                    for number in range(200):
                        await ours.send(b"%d %d" % (name, number))
                        assert (await theirs.recv()).payload == b"%d %d" % (name, number)
    asyncio.run(main())

threads = [threading.Thread(target=use, args=[name]) for name in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("all done")
"""


def test_each_thread_may_have_an_event_loop_with_associations():
    done = run_script(THREADS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "all done\n", "")


FORK = """
import asyncio, os, warnings, anabranch

async def talk():
    async with anabranch.listen("127.0.0.1:0") as listener:
        async with anabranch.connect(listener.addresses, local="127.0.1.1") as ours, await listener.accept() as theirs:
            await ours.send(b"hello")
            assert (await theirs.recv()).payload == b"hello"

async def main():
    await talk()
    listener = await anabranch.listen("127.0.0.1:0")
    ours = await anabranch.connect(listener.addresses, local="127.0.1.1")
    return listener, ours

kept = asyncio.run(main())
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    asyncio.run(talk())
    print("the child is done", flush=True)
else:
    assert os.waitpid(child, 0)[1] == 0
    print("the parent is done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_a_forked_process_opens_associations_of_its_own():
    done = run_script(FORK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "the child is done\nthe parent is done\n"


def test_importing_the_package_loads_nothing_of_transfers():
    done = run_script("import sys, anabranch; assert not {'asyncio', 'anabranch.transfer'} & set(sys.modules)")
    assert (done.returncode, done.stderr) == (0, "")
