//! Packets of SCTP in a capture, in either format and of either byte order.

use std::fs::File;
use std::net::IpAddr;
use std::path::Path;

use anabranch_core::time::Time;
use anabranch_sim::Encapsulation;
use etherparse::{IpNumber, NetSlice, SlicedPacket, TransportSlice};
use pcap_parser::pcapng::Block;
use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, PcapHeader, create_reader};

use crate::error::KeyLogError;

/// Bytes that are read at a time, and so the longest block.
const BUFFER: usize = 1 << 20;

/// Interfaces of a capture.
const MOST_INTERFACES: usize = 4096;

const NANOS_PER_S: u128 = 1_000_000_000;

/// A packet of SCTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Captured<'c> {
    /// The interface, in the order of their descriptions.
    pub(crate) interface: usize,
    /// Since 1970.
    pub(crate) time: Time,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) encapsulation: Encapsulation,
    pub(crate) sctp: &'c [u8],
}

/// What a capture says of an interface.
#[derive(Clone, Debug)]
struct Interface {
    link: Linktype,
    units_per_s: u64,
    offset_s: i64,
}

/// What is found in a capture.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'c> {
    /// One more interface.
    Interface(&'c str),
    /// A packet of SCTP.
    Packet(Captured<'c>),
    /// A packet of something else, or one that was cut off.
    Other,
}

/// Reads a capture from its beginning to its end.
pub(crate) fn read(
    path: &Path,
    mut found: impl FnMut(Found<'_>) -> Result<(), KeyLogError>,
) -> Result<(), KeyLogError> {
    let file = File::open(path).map_err(KeyLogError::file(path))?;
    let damaged = |reason: String| KeyLogError::Capture { path: path.to_owned(), reason };
    let mut reader = create_reader(BUFFER, file)
        .map_err(|_| damaged("no capture in the format pcapng or pcap".to_owned()))?;
    let mut interfaces = Vec::new();
    loop {
        let step = match reader.next() {
            Ok((length, block)) => {
                look(&block, &mut interfaces, &mut found, &damaged)?;
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

/// What is to be done after a look at what was read.
enum Step {
    Taken(usize),
    Incomplete,
    Damaged(&'static str),
}

/// Whether there is more to read.
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

fn look(
    block: &PcapBlockOwned<'_>,
    interfaces: &mut Vec<Interface>,
    found: &mut impl FnMut(Found<'_>) -> Result<(), KeyLogError>,
    damaged: &impl Fn(String) -> KeyLogError,
) -> Result<(), KeyLogError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            interfaces.push(legacy(header));
            found(Found::Interface("capture"))
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            if interfaces.is_empty() {
                Ok(())
            } else {
                Err(damaged("it has several sections: divide it".to_owned()))
            }
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
            let units_per_s = description.ts_resolution().filter(|units| *units > 0);
            let units_per_s = units_per_s
                .ok_or_else(|| damaged("an interface has no clock that can be read".to_owned()))?;
            if interfaces.len() >= MOST_INTERFACES {
                return Err(damaged(format!("it has more than {MOST_INTERFACES} interfaces")));
            }
            interfaces.push(Interface {
                link: description.linktype,
                units_per_s,
                offset_s: description.ts_offset(),
            });
            let name = description.if_name().and_then(Result::ok);
            found(Found::Interface(name.unwrap_or("interface")))
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            let index = packet.if_id as usize;
            let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
            let bytes = packet.data.get(..packet.caplen as usize).unwrap_or(packet.data);
            let is_whole = packet.caplen == packet.origlen;
            found(
                interfaces.get(index).map_or(Found::Other, |on| packet_on(on, index, units, bytes, is_whole)),
            )
        }
        PcapBlockOwned::Legacy(packet) => {
            let Some(on) = interfaces.first() else { return found(Found::Other) };
            let units = u64::from(packet.ts_sec) * on.units_per_s + u64::from(packet.ts_usec);
            found(packet_on(on, 0, units, packet.data, packet.caplen == packet.origlen))
        }
        PcapBlockOwned::NG(_) => Ok(()),
    }
}

fn legacy(header: &PcapHeader) -> Interface {
    let units_per_s = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
    Interface { link: header.network, units_per_s, offset_s: 0 }
}

fn packet_on<'c>(on: &Interface, interface: usize, units: u64, bytes: &'c [u8], is_whole: bool) -> Found<'c> {
    let sliced = match on.link {
        _ if !is_whole => return Found::Other,
        Linktype::ETHERNET => SlicedPacket::from_ethernet(bytes),
        Linktype::LINUX_SLL => SlicedPacket::from_linux_sll(bytes),
        // Packets begin with their IP headers.
        Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => SlicedPacket::from_ip(bytes),
        _ => return Found::Other,
    };
    let packet = sliced.ok().and_then(|sliced| sctp(&sliced, interface, time(on, units)));
    packet.map_or(Found::Other, Found::Packet)
}

fn time(on: &Interface, units: u64) -> Time {
    let nanos = u128::from(units) * NANOS_PER_S / u128::from(on.units_per_s);
    let nanos = i128::try_from(nanos)
        .unwrap_or(i128::MAX)
        .saturating_add(i128::from(on.offset_s) * NANOS_PER_S as i128);
    Time::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn sctp<'c>(sliced: &SlicedPacket<'c>, interface: usize, time: Time) -> Option<Captured<'c>> {
    let (source, destination) = match sliced.net.as_ref()? {
        NetSlice::Ipv4(ip) => {
            (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
        }
        NetSlice::Ipv6(ip) => {
            (IpAddr::from(ip.header().source_addr()), IpAddr::from(ip.header().destination_addr()))
        }
        NetSlice::Arp(_) => return None,
    };
    let payload = sliced.ip_payload().filter(|payload| !payload.fragmented)?;
    let (encapsulation, sctp) = match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => {
            let ports = (udp.source_port(), udp.destination_port());
            (Encapsulation::Udp { source_port: ports.0, destination_port: ports.1 }, udp.payload())
        }
        None if payload.ip_number == IpNumber::SCTP => (Encapsulation::None, payload.payload),
        _ => return None,
    };
    Some(Captured { interface, time, source, destination, encapsulation, sctp })
}
