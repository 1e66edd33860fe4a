//! Reader of SCTP packets in a capture: pcapng or pcap, either byte order, one link type per interface.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use anabranch_core::time::Time;
use anabranch_sim::Encapsulation;
use anabranch_wire::PacketView;
use etherparse::{IpNumber, NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, PcapHeader, create_reader};

use crate::error::KeyLogError;
use crate::link::{self, Link};

/// Read buffer size and maximum length of a block, in bytes.
const BUFFER: usize = 1 << 20;

/// Maximum number of interfaces of a capture.
const MOST_INTERFACES: usize = 4096;

const NANOS_PER_S: u128 = 1_000_000_000;

/// SCTP packet of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'c> {
    /// Index of the interface, in the order of descriptions.
    pub(crate) interface: usize,
    /// Capture time since 1970.
    pub(crate) time: Time,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) sctp: &'c [u8],
}

/// Description of an interface in the capture.
#[derive(Clone, Debug)]
struct Interface {
    link: Linktype,
    units_per_s: u64,
    offset_s: i64,
    /// Maximum number of captured bytes per packet; 0 for no limit.
    snap_length: u32,
}

/// All interfaces of a capture.
#[derive(Debug, Default)]
struct Interfaces {
    all: Vec<Interface>,
    /// Index of the first interface of the current section.
    section: usize,
}

impl Interfaces {
    /// Returns the interface with this number in the current section, and its index in the capture.
    fn get(&self, number: u32) -> Option<(usize, &Interface)> {
        let index = self.section.checked_add(usize::try_from(number).ok()?)?;
        self.all.get(index).map(|interface| (index, interface))
    }
}

/// Item of a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'c> {
    /// Name of another interface.
    Interface(&'c str),
    /// SCTP packet.
    Packet(Captured<'c>),
    /// Packet of another protocol, or a damaged one.
    Other,
    /// Packet whose end was not captured.
    CutOff,
    /// Fragment of an IP packet.
    Fragment,
    /// Packet of an unsupported link type.
    UnknownLink(Linktype),
}

/// Bits of a link type in a pcap file. The bits above them state the length of the frame check sequence.
const LINK_BITS: i32 = 0x03FF_FFFF;

/// Reads a capture from its beginning to its end.
pub(crate) fn read(
    path: &Path,
    mut found: impl FnMut(Found<'_>) -> Result<(), KeyLogError>,
) -> Result<(), KeyLogError> {
    let file = File::open(path).map_err(KeyLogError::file(path))?;
    let damaged = |reason: String| KeyLogError::Capture { path: path.to_owned(), reason };
    let mut reader = create_reader(BUFFER, file)
        .map_err(|_| damaged("no capture in the format pcapng or pcap".to_owned()))?;
    let mut interfaces = Interfaces::default();
    loop {
        let step = match reader.next() {
            Ok((length, block)) => {
                process_block(&block, &mut interfaces, &mut found, &damaged)?;
                Step::Taken(length)
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) => Step::Incomplete,
            Err(error) => Step::Damaged(kind(&error)),
        };
        match step {
            Step::Taken(length) => reader.consume(length),
            Step::Incomplete if refill(&mut *reader) => {}
            Step::Incomplete => return Err(damaged("it ends within a block".to_owned())),
            Step::Damaged(kind) => {
                return Err(damaged(format!("damaged after {} bytes: {kind}", reader.consumed())));
            }
        }
    }
}

/// Next action of the reader after a block.
enum Step {
    Taken(usize),
    Incomplete,
    Damaged(&'static str),
}

/// Fills the read buffer. Returns `true` if there is more to read.
fn refill(reader: &mut dyn PcapReaderIterator) -> bool {
    !reader.reader_exhausted() && reader.refill().is_ok()
}

fn kind(error: &PcapError<&[u8]>) -> &'static str {
    match error {
        PcapError::UnexpectedEof => "it ends within a block",
        PcapError::BufferTooSmall => "a block is longer than 1 MiB",
        PcapError::ReadError => "it cannot be read",
        _ => "a block has another form",
    }
}

fn process_block(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Interfaces,
    found: &mut impl FnMut(Found<'_>) -> Result<(), KeyLogError>,
    damaged: &impl Fn(String) -> KeyLogError,
) -> Result<(), KeyLogError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            interfaces.all.push(legacy(header));
            found(Found::Interface("capture"))
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            interfaces.section = interfaces.all.len();
            Ok(())
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            let units_per_s = description.ts_resolution().filter(|units| *units > 0);
            let units_per_s = units_per_s
                .ok_or_else(|| damaged("an interface has no clock that can be read".to_owned()))?;
            if interfaces.all.len() >= MOST_INTERFACES {
                return Err(damaged(format!("it has more than {MOST_INTERFACES} interfaces")));
            }
            interfaces.all.push(Interface {
                link: description.linktype,
                units_per_s,
                offset_s: description.ts_offset(),
                snap_length: description.snaplen,
            });
            let name = description.if_name().and_then(Result::ok);
            found(Found::Interface(name.unwrap_or("interface")))
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let bytes = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            found(interfaces.get(packet.if_id).map_or(Found::Other, |on| packet_on(on, units, bytes)))
        }
        // Simple packets have no time and belong to the first interface.
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            let Some((index, on)) = interfaces.get(0) else { return found(Found::Other) };
            let limit = if on.snap_length == 0 { packet.origlen } else { packet.origlen.min(on.snap_length) };
            let bytes = packet.data.get(..limit as usize).unwrap_or(packet.data);
            found(packet_on((index, on), 0, bytes))
        }
        PcapBlockOwned::Legacy(packet) => {
            let Some((index, on)) = interfaces.get(0) else { return found(Found::Other) };
            let units = u64::from(packet.ts_sec) * on.units_per_s + u64::from(packet.ts_usec);
            found(packet_on((index, on), units, packet.data))
        }
        PcapBlockOwned::NG(_) => Ok(()),
    }
}

fn legacy(header: &PcapHeader) -> Interface {
    let units_per_s = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
    Interface { link: Linktype(header.network.0 & LINK_BITS), units_per_s, offset_s: 0, snap_length: 0 }
}

fn packet_on<'c>((index, on): (usize, &Interface), units: u64, bytes: &'c [u8]) -> Found<'c> {
    match link::read(on.link, bytes) {
        Link::Ip(sliced) => sctp(&sliced, index, time(on, units)),
        Link::NoIp => Found::Other,
        Link::CutOff => Found::CutOff,
        Link::Unknown => Found::UnknownLink(on.link),
    }
}

fn time(on: &Interface, units: u64) -> Time {
    let nanos = u128::from(units) * NANOS_PER_S / u128::from(on.units_per_s);
    let nanos = i128::try_from(nanos)
        .unwrap_or(i128::MAX)
        .saturating_add(i128::from(on.offset_s) * NANOS_PER_S as i128);
    Time::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn sctp<'c>(sliced: &SlicedPacket<'c>, interface: usize, time: Time) -> Found<'c> {
    let (source, destination) = match &sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
        }
        Some(NetSlice::Ipv6(ip)) => {
            (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
        }
        Some(NetSlice::Arp(_)) | None => return Found::Other,
    };
    let Some(payload) = sliced.ip_payload() else { return Found::Other };
    if payload.fragmented {
        return Found::Fragment;
    }
    let (encapsulation, sctp) = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) if is_sctp(udp.payload()) => {
            let ports = (udp.source_port(), udp.destination_port());
            (Encapsulation::Udp { source_port: ports.0, destination_port: ports.1 }, udp.payload())
        }
        None if payload.ip_number == IpNumber::SCTP => (Encapsulation::None, payload.payload),
        _ => return Found::Other,
    };
    Found::Packet(Captured { interface, time, source, destination, encapsulation, sctp })
}

/// Returns `true` if the payload of a UDP datagram is an SCTP packet: its checksum is correct, or whole chunks fill it. The
/// checksum may be zero (RFC 9653) or wrong (a damaged packet is still an SCTP packet).
fn is_sctp(payload: &[u8]) -> bool {
    let Ok(view) = PacketView::parse(payload) else { return false };
    let has_whole_chunks = || view.chunks().next().is_some() && view.chunks().all(|chunk| chunk.is_ok());
    view.checksum_is_valid() || has_whole_chunks()
}
