//! UDP socket that sends and receives several datagrams per call if the system supports it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::task::{Context, Poll};

use anabranch_core::time::Time;
use anabranch_core::{LocalEnd, PacketBuffer, QuotedInit, Refusal};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::error_queue;
use crate::fragmentation;
use crate::interface::{bind_to_device, interface_index};
use crate::observer::DatagramOutcome;
use crate::observer_slot::ObserverSlot;

/// Maximum number of bytes per call: the largest UDP payload over IPv4; over IPv6 it is slightly larger.
const LARGEST_BATCH: usize = 65_507;

/// Size of a receive buffer in bytes: all that the system may coalesce.
const RECV_BYTES: usize = 65_535;

/// Number of receive buffers per call.
const RECV_BUFFERS: usize = 16;

/// Maximum number of bytes waiting for a blocked socket. More is dropped, as in a full interface queue.
const LONGEST_BACKLOG: usize = 4 << 20;

/// Number of latest batches to which a packet may be added, because answers to several peers alternate.
const OPEN_BATCHES: usize = 16;

/// Requested size of the system's socket buffers in bytes; its limits may reduce it.
const SYSTEM_BUFFER: usize = 4 << 20;

/// Datagrams to one destination. All have the same length, except that the last may be shorter.
#[derive(Debug)]
struct Batch {
    destination: SocketAddr,
    segment: usize,
    bytes: PacketBuffer,
    /// Set for a datagram larger than the known path MTU, which IP may fragment.
    may_fragment: bool,
}

impl Batch {
    /// Returns `true` if another datagram to its destination fits.
    fn takes(&self, length: usize, most_segments: usize) -> bool {
        if self.may_fragment {
            return false;
        }
        let full = self.bytes.len() == self.segment * most_segments;
        let ended = !self.bytes.len().is_multiple_of(self.segment);
        let fits = self.bytes.len() + length <= LARGEST_BATCH;
        length <= self.segment && fits && !full && !ended
    }

    fn datagrams(&self) -> usize {
        self.bytes.len().div_ceil(self.segment)
    }
}

/// Counters of an endpoint's sockets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SocketCounters {
    pub(crate) received: u64,
    pub(crate) received_bytes: u64,
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) send_calls: u64,
    pub(crate) failures: u64,
    pub(crate) overflows: u64,
}

impl SocketCounters {
    fn sent(&mut self, datagrams: usize, bytes: usize) {
        self.sent += datagrams as u64;
        self.sent_bytes += bytes as u64;
    }

    /// Adds the counters of a closed socket.
    pub(crate) fn add(&mut self, other: &SocketCounters) {
        self.received += other.received;
        self.received_bytes += other.received_bytes;
        self.sent += other.sent;
        self.sent_bytes += other.sent_bytes;
        self.send_calls += other.send_calls;
        self.failures += other.failures;
        self.overflows += other.overflows;
    }
}

/// Binding of a socket to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// Bound to this interface.
    Bound(String),
    /// The system refused the binding: packets follow the routing table.
    Refused {
        /// Name of the interface.
        interface: String,
        /// Error of the system.
        why: String,
    },
}

/// Packet that the system did not send or the network did not deliver.
#[derive(Debug)]
pub(crate) struct Undelivered {
    pub(crate) destination: SocketAddr,
    pub(crate) cause: UndeliveredCause,
    /// Beginning of the packet.
    pub(crate) quoted: [u8; QuotedInit::LEN],
}

impl Undelivered {
    /// Creates the report. Returns `None` if the packet is shorter than an INIT.
    fn new(destination: SocketAddr, cause: UndeliveredCause, packet: &[u8]) -> Option<Self> {
        Some(Undelivered { destination, cause, quoted: *packet.first_chunk()? })
    }
}

/// Source of the report of an undelivered packet.
#[derive(Debug)]
pub(crate) enum UndeliveredCause {
    /// Error of the system call.
    Local(io::Error),
    /// ICMP message.
    Icmp(Refusal),
}

/// Socket bound to one address.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    queue: VecDeque<Batch>,
    queued_bytes: usize,
    blocked: bool,
    too_long: Vec<(SocketAddr, usize)>,
    /// Set while the system reports ICMP messages.
    reports_errors: bool,
    undelivered: Vec<Undelivered>,
    pub(crate) counters: SocketCounters,
    device: Option<Device>,
    /// Index of the interface to which the socket is bound; 0 if there is none.
    interface: u32,
}

/// Receive buffers.
#[derive(Debug)]
pub(crate) struct RecvBuffers {
    bytes: Vec<u8>,
    meta: [RecvMeta; RECV_BUFFERS],
}

thread_local! {
    // These buffers are empty between two turns of a driver, so the endpoints of a thread share them. Otherwise thousands of endpoints
    // would each touch their own memory for every datagram.
    static RECV_BUFFERS_OF_THREAD: Cell<Option<Box<RecvBuffers>>> = const { Cell::new(None) };
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { buffers: Vec::new(), bytes: 0 }) };
}

/// Unused packet buffers.
struct Spare {
    buffers: Vec<PacketBuffer>,
    /// Memory of the buffers, in bytes.
    bytes: usize,
}

/// Maximum memory of a thread's spare buffers in bytes: the maximum that may wait for a blocked socket.
const MOST_SPARE_BYTES: usize = LONGEST_BACKLOG;

/// Returns the memory of a buffer, in bytes.
fn taken(buffer: &PacketBuffer) -> usize {
    buffer.capacity() + size_of::<PacketBuffer>()
}

/// Returns a buffer for writing packets.
pub(crate) fn spare() -> PacketBuffer {
    SPARE.with_borrow_mut(|spare| {
        let buffer = spare.buffers.pop().unwrap_or_default();
        spare.bytes = spare.bytes.saturating_sub(taken(&buffer));
        buffer
    })
}

/// Returns an unused buffer to the spare ones.
pub(crate) fn give_back(buffer: PacketBuffer) {
    SPARE.with_borrow_mut(|spare| {
        let bytes = spare.bytes + taken(&buffer);
        if bytes <= MOST_SPARE_BYTES {
            spare.bytes = bytes;
            spare.buffers.push(buffer);
        }
    });
}

/// Source of information about arrived datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrivalInfo {
    /// The runtime's readiness state, without a system call if there is none.
    Runtime,
    /// Operating system.
    System,
}

impl RecvBuffers {
    fn new() -> Self {
        RecvBuffers { bytes: vec![0; RECV_BYTES * RECV_BUFFERS], meta: [RecvMeta::default(); RECV_BUFFERS] }
    }

    /// Lends the buffers of this thread.
    pub(crate) fn lend<T>(receive: impl FnOnce(&mut RecvBuffers) -> T) -> T {
        // Taken out during use, because an observer of a datagram may drive another endpoint.
        let mut buffers = RECV_BUFFERS_OF_THREAD.take().unwrap_or_else(|| Box::new(RecvBuffers::new()));
        let received = receive(&mut buffers);
        RECV_BUFFERS_OF_THREAD.set(Some(buffers));
        received
    }

    /// Returns the datagrams of the latest call, each with its source.
    pub(crate) fn datagrams(&self, buffers: usize) -> impl Iterator<Item = (SocketAddr, &[u8])> {
        self.bytes.chunks(RECV_BYTES).zip(&self.meta).take(buffers).flat_map(|(bytes, meta)| {
            let filled = &bytes[..meta.len.min(bytes.len())];
            filled.chunks(meta.stride.max(1)).map(|datagram| (meta.addr, datagram))
        })
    }
}

impl Socket {
    /// Binds a socket. If a device is given, packets are sent only through that interface, provided that the system supports this.
    pub(crate) fn bind(address: SocketAddr, device: Option<&str>) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        let device = device.map(|name| match bind_to_device(&socket, name) {
            Ok(()) => Device::Bound(name.to_owned()),
            Err(error) => Device::Refused { interface: name.to_owned(), why: error.to_string() },
        });
        let interface = match &device {
            Some(Device::Bound(name)) => interface_index(name).unwrap_or(0),
            Some(Device::Refused { .. }) | None => 0,
        };
        socket.bind(&address.into())?;
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        // Smaller buffers than requested are acceptable.
        let _ = state.set_send_buffer_size((&socket).into(), SYSTEM_BUFFER);
        let _ = state.set_recv_buffer_size((&socket).into(), SYSTEM_BUFFER);
        socket.set_nonblocking(true)?;
        let io = UdpSocket::from_std(socket)?;
        let local = io.local_addr()?;
        Ok(Socket {
            io,
            state,
            local,
            queue: VecDeque::new(),
            queued_bytes: 0,
            blocked: false,
            too_long: Vec::new(),
            reports_errors: false,
            undelivered: Vec::new(),
            counters: SocketCounters::default(),
            device,
            interface,
        })
    }

    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the local end of paths that begin at this socket.
    pub(crate) fn end(&self) -> LocalEnd {
        LocalEnd { address: self.local.ip(), interface: self.interface }
    }

    /// Returns the interface to which the socket is bound.
    pub(crate) fn bound_device(&self) -> Option<&str> {
        match &self.device {
            Some(Device::Bound(interface)) => Some(interface),
            Some(Device::Refused { .. }) | None => None,
        }
    }

    /// Returns the interface to which the socket belongs, whether the system has bound it or not.
    pub(crate) fn device_name(&self) -> Option<&str> {
        match &self.device {
            Some(Device::Bound(interface) | Device::Refused { interface, .. }) => Some(interface),
            None => None,
        }
    }

    pub(crate) fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Is ready when a datagram can be received, or when a blocked socket accepts packets again.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let readable = self.io.poll_recv_ready(cx).is_ready();
        let writable = self.blocked && self.io.poll_send_ready(cx).is_ready();
        if readable || writable { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Receives datagrams into the buffers. Returns the number of filled buffers; 0 if there are no datagrams.
    pub(crate) fn recv(&mut self, buffers: &mut RecvBuffers, ask: ArrivalInfo) -> usize {
        let RecvBuffers { bytes, meta } = buffers;
        let mut parts = bytes.chunks_mut(RECV_BYTES);
        let mut slices: [IoSliceMut<'_>; RECV_BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        let mut receive = || self.state.recv((&self.io).into(), &mut slices, &mut meta[..]);
        let received = match ask {
            ArrivalInfo::Runtime => self.io.try_io(Interest::READABLE, receive),
            ArrivalInfo::System => receive(),
        };
        // Other errors concern an earlier datagram. The error queue identifies it.
        let filled = received.unwrap_or(0);
        for meta in &meta[..filled] {
            self.counters.received += meta.len.div_ceil(meta.stride.max(1)) as u64;
            self.counters.received_bytes += meta.len as u64;
        }
        filled
    }

    /// Queues a packet for the next [`flush`](Self::flush). Replaces `packet` with a buffer of unspecified content.
    pub(crate) fn push(
        &mut self,
        now: Time,
        remote: IpAddr,
        port: u16,
        packet: &mut PacketBuffer,
        may_fragment: bool,
        watch: &mut ObserverSlot,
    ) {
        let destination = self.destination(remote, port);
        if packet.is_empty() || self.queued_bytes + packet.len() > LONGEST_BACKLOG {
            self.counters.overflows += 1;
            watch.datagram(now, self.local, destination, DatagramOutcome::Overflowed, packet);
            return;
        }
        let most = self.state.max_gso_segments();
        self.queued_bytes += packet.len();
        // Packets to one destination stay in order: only its latest batch is filled.
        let mut latest = self.queue.iter_mut().rev().take(OPEN_BATCHES);
        if let Some(batch) = latest.find(|batch| batch.destination == destination)
            && !may_fragment
            && batch.takes(packet.len(), most)
        {
            batch.bytes.extend_from_slice(packet);
            return;
        }
        // The first packet of a batch is not copied.
        let bytes = std::mem::replace(packet, spare());
        self.queue.push_back(Batch { destination, segment: bytes.len(), bytes, may_fragment });
    }

    /// Returns the destination. A link-local address is valid on one link only: that of this socket.
    fn destination(&self, remote: IpAddr, port: u16) -> SocketAddr {
        match (remote, self.local) {
            (IpAddr::V6(v6), SocketAddr::V6(local)) if v6.is_unicast_link_local() => {
                SocketAddrV6::new(v6, port, 0, local.scope_id()).into()
            }
            _ => SocketAddr::new(remote, port),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Sends until the queue is empty or the socket is blocked.
    pub(crate) fn flush(&mut self, now: Time, watch: &mut ObserverSlot) {
        self.blocked = false;
        while let Some(batch) = self.queue.pop_front() {
            if self.send_batch(now, &batch, watch) {
                self.blocked = true;
                self.queue.push_front(batch);
                return;
            }
            self.queued_bytes -= batch.bytes.len();
            give_back(batch.bytes);
        }
    }

    /// Sends a batch. Returns `true` if the socket is blocked. Packets that the system refuses count as lost, and the endpoint
    /// retransmits them.
    fn send_batch(&mut self, now: Time, batch: &Batch, watch: &mut ObserverSlot) -> bool {
        if batch.may_fragment {
            let _ = fragmentation::allow(&self.io, true);
        }
        let blocked = self.send_datagrams(now, batch, watch);
        if batch.may_fragment {
            let _ = fragmentation::allow(&self.io, false);
        }
        blocked
    }

    fn send_datagrams(&mut self, now: Time, batch: &Batch, watch: &mut ObserverSlot) -> bool {
        match self.send(batch.destination, &batch.bytes, Some(batch.segment)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            // Some drivers refuse several datagrams per call; quinn-udp remembers that.
            Err(_) if batch.datagrams() > 1 => {
                for datagram in batch.bytes.chunks(batch.segment) {
                    let sent = self.send(batch.destination, datagram, None);
                    self.settle(now, batch, datagram, sent, watch);
                }
            }
            sent => self.settle(now, batch, &batch.bytes, sent, watch),
        }
        false
    }

    /// Counts the sent and refused datagrams of a batch.
    fn settle(
        &mut self,
        now: Time,
        batch: &Batch,
        bytes: &[u8],
        sent: io::Result<()>,
        watch: &mut ObserverSlot,
    ) {
        let datagrams = bytes.len().div_ceil(batch.segment);
        let outcome = match sent {
            Ok(()) => {
                self.counters.sent(datagrams, bytes.len());
                DatagramOutcome::Sent
            }
            Err(error) => {
                self.counters.failures += datagrams as u64;
                if fragmentation::is_too_long(&error) {
                    self.too_long.push((batch.destination, bytes.len()));
                } else if self.reports_errors {
                    let cause = UndeliveredCause::Local(error);
                    self.undelivered.extend(Undelivered::new(batch.destination, cause, bytes));
                }
                DatagramOutcome::Refused
            }
        };
        if watch.is_on() {
            for datagram in bytes.chunks(batch.segment) {
                watch.datagram(now, self.local, batch.destination, outcome, datagram);
            }
        }
    }

    /// Enables or disables the system's reports of ICMP messages about sent packets.
    pub(crate) fn report_errors(&mut self, enabled: bool) {
        if self.reports_errors == enabled {
            return;
        }
        // If the system reports no errors, silence is the only sign of a failure.
        self.reports_errors = error_queue::enable(&self.io, enabled).is_ok() && enabled;
        self.undelivered.clear();
        if !enabled {
            self.register_again();
        }
    }

    /// Returns `true` while the system reports ICMP messages.
    pub(crate) fn reports_errors(&self) -> bool {
        self.reports_errors
    }

    /// Waits for a report.
    pub(crate) async fn error(&self) {
        if self.io.ready(Interest::ERROR).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the packets that were not delivered since the last call.
    pub(crate) fn take_undelivered(&mut self) -> Vec<Undelivered> {
        if self.reports_errors {
            // Clears the readiness, so that the next report is awaited.
            let _ = self.io.try_io(Interest::ERROR, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            let Socket { io, undelivered, .. } = self;
            let count = error_queue::read(io, |destination, refusal, packet| {
                undelivered.extend(Undelivered::new(destination, UndeliveredCause::Icmp(refusal), packet));
            });
            if count > 0 {
                self.register_again();
            }
        }
        std::mem::take(&mut self.undelivered)
    }

    /// Registers the socket with the runtime again. The runtime treats a socket as closed once the system has reported an error.
    fn register_again(&mut self) {
        let copy = socket2::SockRef::from(&self.io).try_clone();
        if let Ok(io) = copy.and_then(|copy| UdpSocket::from_std(copy.into())) {
            self.io = io;
        }
    }

    /// Returns the datagrams that exceeded the interface's MTU, with their destinations.
    pub(crate) fn take_too_long(&mut self) -> Vec<(SocketAddr, usize)> {
        std::mem::take(&mut self.too_long)
    }

    fn send(
        &mut self,
        destination: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        let send =
            || self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), &transmit));
        let mut sent = send();
        if self.reports_errors && sent.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock)
        {
            // The first call may have returned the error of an earlier datagram, even one to another peer.
            sent = send();
        }
        let blocked = sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        self.counters.send_calls += u64::from(!blocked);
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(lengths: &[usize]) -> Batch {
        let total = lengths.iter().sum();
        Batch { destination: to(1), segment: lengths[0], bytes: filled(&vec![0; total]), may_fragment: false }
    }

    fn filled(bytes: &[u8]) -> PacketBuffer {
        let mut buffer = PacketBuffer::new();
        buffer.extend_from_slice(bytes);
        buffer
    }

    fn to(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    #[test]
    fn a_thread_keeps_no_more_spare_memory_than_may_wait_for_a_socket() {
        let kept = |bytes: usize| {
            let given = 2 * MOST_SPARE_BYTES / bytes;
            (0..given).for_each(|_| give_back(PacketBuffer::with_capacity(bytes)));
            let mut kept = 0;
            while spare().capacity() > 0 {
                kept += 1;
            }
            kept
        };
        for bytes in [100, 1_500, LARGEST_BATCH] {
            let most = MOST_SPARE_BYTES / (bytes + size_of::<PacketBuffer>());
            assert_eq!((kept(bytes), kept(bytes)), (most, most), "of {bytes} bytes");
        }
    }

    #[test]
    fn a_batch_grows_by_datagrams_of_its_length() {
        assert!(batch(&[100]).takes(100, 4));
        assert!(!batch(&[100]).takes(101, 4));
    }

    #[tokio::test]
    async fn interleaved_datagrams_form_one_ordered_batch_per_destination() {
        let mut socket = Socket::bind(to(0), None).expect("a socket");
        let most = socket.state.max_gso_segments();
        let mut watch = ObserverSlot::default();
        let mut push = |port: u16, number: u8, may_fragment| {
            let (remote, packet) = (to(port).ip(), [number; 100]);
            socket.push(Time::ZERO, remote, port, &mut filled(&packet), may_fragment, &mut watch);
        };
        let turns: u8 = 4;
        for number in 0..turns {
            push(1, number, false);
            push(2, number, false);
        }
        push(1, 100, true);
        push(1, 101, false);
        let numbers = |port| {
            let batches = socket.queue.iter().filter(move |batch| batch.destination == to(port));
            batches.flat_map(|batch| batch.bytes.iter().step_by(100).copied()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), [0, 1, 2, 3, 100, 101]);
        assert_eq!(numbers(2), [0, 1, 2, 3]);
        let of_turns = usize::from(turns).div_ceil(most.min(usize::from(turns)));
        assert_eq!(socket.queue.len(), 2 * of_turns + 2, "what may be fragmented is alone");
    }

    #[test]
    fn a_shorter_datagram_is_the_last_of_its_batch() {
        assert!(batch(&[100, 100]).takes(60, 4));
        assert!(!batch(&[100, 100, 60]).takes(40, 4));
        assert_eq!(batch(&[100, 100, 60]).datagrams(), 3);
    }

    #[test]
    fn a_batch_is_no_larger_than_the_system_takes() {
        assert!(!batch(&[100; 4]).takes(100, 4));
        assert!(!batch(&[100]).takes(100, 1));
        assert!(!batch(&[1200; 54]).takes(1200, 64));
    }
}
