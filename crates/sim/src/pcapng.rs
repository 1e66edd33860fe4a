//! Captures of runs that Wireshark reads.
//!
//! Packets get IPv4 or IPv6 headers, and UDP headers if they are encapsulated. Times are in nanoseconds since the beginning of the
//! run, which a reader shows as dates in 1970.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::IpAddr;

use anabranch_core::time::Time;

use crate::datagram::{Address, Datagram, Encapsulation};
use crate::tap::{PacketEvent, PacketView, Place, Tap};

const SECTION_HEADER: u32 = 0x0A0D_0D0A;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPTION_COMMENT: u16 = 1;
const OPTION_IF_NAME: u16 = 2;
const OPTION_IF_TSRESOL: u16 = 9;
const OPTION_USER_APPLICATION: u16 = 4;

const LINK_TYPE_RAW_IP: u16 = 101;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_SCTP: u8 = 132;

/// Maximum number of bytes that a capture keeps of each packet, counted from its IP header. The default is [`SnapLength::FULL`].
///
/// ```
/// use anabranch_sim::pcapng::SnapLength;
/// assert_eq!(SnapLength::new(0), Some(SnapLength::FULL));
/// assert_eq!(SnapLength::new(256), Some(SnapLength::HEADERS));
/// assert_eq!(SnapLength::new(20), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapLength(u32);

impl SnapLength {
    /// Whole packets. The format writes this as 0.
    pub const FULL: SnapLength = SnapLength(0);
    /// 256 bytes: IP, UDP and SCTP headers, the chunk header of one message, and SACKs with up to 45 gap ack blocks.
    pub const HEADERS: SnapLength = SnapLength(256);
    /// Smallest limit: it holds the headers of IPv6, UDP and SCTP.
    pub const LEAST: u32 = 64;

    /// Returns the limit in bytes, [`SnapLength::FULL`] for 0, and `None` below [`SnapLength::LEAST`].
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes == 0 || bytes >= Self::LEAST { Some(SnapLength(bytes)) } else { None }
    }

    /// Returns the number of bytes that are kept of a packet of `length` bytes.
    fn captured(self, length: u16) -> u16 {
        match u16::try_from(self.0) {
            Ok(limit @ 1..) => length.min(limit),
            _ => length,
        }
    }
}

/// Identifier of an interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writer of the pcapng format.
pub struct PcapngWriter<W> {
    output: W,
    interfaces: u32,
    snap_length: SnapLength,
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a capture of whole packets.
    pub fn new(output: W) -> io::Result<Self> {
        Self::with_snap_length(output, SnapLength::FULL)
    }

    /// Begins a capture that keeps at most `snap_length` of each packet.
    pub fn with_snap_length(output: W, snap_length: SnapLength) -> io::Result<Self> {
        let mut writer = PcapngWriter { output, interfaces: 0, snap_length, block: Vec::new() };
        writer.begin(SECTION_HEADER);
        writer.block.extend(0x1A2B_3C4D_u32.to_le_bytes());
        writer.block.extend(1_u16.to_le_bytes());
        writer.block.extend(0_u16.to_le_bytes());
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(OPTION_USER_APPLICATION, b"anabranch");
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface, which must precede its first packet.
    pub fn add_interface(&mut self, name: &str) -> io::Result<InterfaceId> {
        self.begin(INTERFACE_DESCRIPTION);
        self.block.extend(LINK_TYPE_RAW_IP.to_le_bytes());
        self.block.extend([0; 2]);
        self.block.extend(self.snap_length.0.to_le_bytes());
        self.option(OPTION_IF_NAME, name.as_bytes());
        self.option(OPTION_IF_TSRESOL, &[9]);
        self.end()?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Writes a packet. Fails if the packet is too large for its headers.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        time: Time,
        datagram: Datagram<'_>,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let length = datagram.envelope().wire_bytes(datagram.payload.len()).get();
        let length = u16::try_from(length)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "packet too long"))?;
        let captured = self.snap_length.captured(length);
        self.begin(ENHANCED_PACKET);
        self.block.extend(interface.0.to_le_bytes());
        self.block.extend(((time.as_nanos() >> 32) as u32).to_le_bytes());
        self.block.extend((time.as_nanos() as u32).to_le_bytes());
        self.block.extend(u32::from(captured).to_le_bytes());
        self.block.extend(u32::from(length).to_le_bytes());
        let begin = self.block.len();
        write_headers(&mut self.block, &datagram, length);
        let headers = self.block.len() - begin;
        let kept = usize::from(captured).saturating_sub(headers).min(datagram.payload.len());
        self.block.extend(&datagram.payload[..kept]);
        self.pad();
        if let Some(comment) = comment {
            self.option(OPTION_COMMENT, comment.as_bytes());
        }
        self.end()
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Ends the capture.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        // Placeholder of the length.
        self.block.extend([0; 4]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn end(&mut self) -> io::Result<()> {
        // End of the options, allowed even without options.
        self.block.extend([0; 4]);
        let length = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&length);
        self.block.extend(length);
        self.output.write_all(&self.block)
    }
}

fn write_headers(out: &mut Vec<u8>, datagram: &Datagram<'_>, length: u16) {
    let protocol = match datagram.encapsulation {
        Encapsulation::None => PROTOCOL_SCTP,
        Encapsulation::Udp { .. } => PROTOCOL_UDP,
    };
    let begin = out.len();
    let header = match (datagram.source, datagram.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            out.extend([0x45, 0]);
            out.extend(length.to_be_bytes());
            // Identification 0, do not fragment, time to live 64, checksum filled in later.
            out.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
            out.extend(source.octets());
            out.extend(destination.octets());
            let checksum = !sum(0, &out[begin..]);
            out[begin + 10..begin + 12].copy_from_slice(&checksum.to_be_bytes());
            20
        }
        (source, destination) => {
            out.extend([0x60, 0, 0, 0]);
            out.extend((length - 40).to_be_bytes());
            out.extend([protocol, 64]);
            out.extend(v6_octets(source));
            out.extend(v6_octets(destination));
            40
        }
    };
    if let Encapsulation::Udp { source_port, destination_port } = datagram.encapsulation {
        let addresses = begin + if header == 20 { 12 } else { 8 };
        write_udp(out, (source_port, destination_port), length - header, addresses, datagram.payload);
    }
}

/// Writes the UDP header and payload. `out` ends with the IP addresses, which begin at `addresses`.
fn write_udp(out: &mut Vec<u8>, ports: (u16, u16), length: u16, addresses: usize, payload: &[u8]) {
    let begin = out.len();
    let pseudo = sum(u32::from(PROTOCOL_UDP) + u32::from(length), &out[addresses..]);
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend(length.to_be_bytes());
    out.extend([0; 2]);
    let header = sum(u32::from(pseudo), &out[begin..]);
    let checksum = match !sum(u32::from(header), payload) {
        // A checksum of zero means that the sender computed no checksum.
        0 => u16::MAX,
        checksum => checksum,
    };
    out[begin + 6..].copy_from_slice(&checksum.to_be_bytes());
}

fn v6_octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// Returns the ones' complement sum of 16-bit words on which all Internet checksums are based.
fn sum(start: u32, bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| match *word {
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [high] => u64::from(high) << 8,
        _ => 0,
    });
    let mut sum = words.fold(u64::from(start), |sum, word| sum + word);
    while sum > u64::from(u16::MAX) {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

/// Capture of the packets that hosts send and receive. Each address is an interface. Background traffic is not recorded.
///
/// ```
/// use anabranch_sim::pcapng::PcapngTap;
/// let mut tap = PcapngTap::new(Vec::new());
/// tap.name_interface("10.0.0.1".parse()?, "client/path-1");
/// let file: Vec<u8> = tap.finish()?;
/// assert_eq!(file[..4], [0x0A, 0x0D, 0x0D, 0x0A]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PcapngTap<W> {
    /// Writer, or the first error. An error ends the capture and is kept for [`PcapngTap::finish`].
    writer: io::Result<PcapngWriter<W>>,
    names: BTreeMap<Address, String>,
    interfaces: BTreeMap<Interface, InterfaceId>,
    drops: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Interface {
    Address(Address),
    Drops,
}

impl<W: Write> PcapngTap<W> {
    /// Begins a capture of whole packets. `output` should be buffered.
    pub fn new(output: W) -> Self {
        Self::with_snap_length(output, SnapLength::FULL)
    }

    /// Begins a capture that keeps at most `snap_length` of each packet.
    pub fn with_snap_length(output: W, snap_length: SnapLength) -> Self {
        let writer = PcapngWriter::with_snap_length(output, snap_length);
        PcapngTap { writer, names: BTreeMap::new(), interfaces: BTreeMap::new(), drops: false }
    }

    /// Names the interface of an address. An interface without a name is named after its address. Call this function before the
    /// first packet of the interface.
    pub fn name_interface(&mut self, address: Address, name: impl Into<String>) {
        self.names.insert(address, name.into());
    }

    /// Also records dropped packets, at the time of the drop, on an interface `dropped`. A comment states place and reason.
    pub fn with_drops(self) -> Self {
        PcapngTap { drops: true, ..self }
    }

    /// Returns `true` if writing has failed. The capture ends with the first failure.
    pub fn failed(&self) -> bool {
        self.writer.is_err()
    }

    /// Ends the capture, or returns the error that ended it.
    pub fn finish(self) -> io::Result<W> {
        self.writer?.finish()
    }

    fn interface(&mut self, key: Interface) -> io::Result<InterfaceId> {
        if let Some(&known) = self.interfaces.get(&key) {
            return Ok(known);
        }
        let name = match key {
            Interface::Drops => "dropped".to_owned(),
            Interface::Address(address) => {
                self.names.get(&address).cloned().unwrap_or_else(|| address.to_string())
            }
        };
        let Ok(writer) = &mut self.writer else { return Err(io::Error::other("the capture has ended")) };
        let id = writer.add_interface(&name)?;
        self.interfaces.insert(key, id);
        Ok(id)
    }

    fn record(&mut self, now: Time, key: Interface, datagram: Datagram<'_>, comment: Option<&str>) {
        if self.failed() {
            return;
        }
        let written = self.interface(key).and_then(|interface| match &mut self.writer {
            Ok(writer) => writer.packet(interface, now, datagram, comment),
            Err(_) => Ok(()),
        });
        if let Err(error) = written {
            self.writer = Err(error);
        }
    }
}

impl<W: Write + 'static> Tap for PcapngTap<W> {
    fn packet(&mut self, now: Time, place: Place<'_>, event: PacketEvent, packet: PacketView<'_>) {
        let Some(datagram) = packet.datagram else { return };
        let reason = match (place, event) {
            (Place::Host(_), PacketEvent::Sent) => {
                return self.record(now, Interface::Address(datagram.source), datagram, None);
            }
            (Place::Host(_), PacketEvent::Delivered) => {
                return self.record(now, Interface::Address(datagram.destination), datagram, None);
            }
            (_, PacketEvent::Sent | PacketEvent::Delivered) => return,
            (_, PacketEvent::DroppedLoss) => "lost",
            (_, PacketEvent::DroppedPolicer) => "policed",
            (_, PacketEvent::DroppedQueue) => "queue full",
            (_, PacketEvent::DroppedOutage) => "link down",
            (_, PacketEvent::Unroutable) => "no route",
        };
        if self.drops {
            let comment = match place {
                Place::Link { name, .. } => format!("{reason} on {name}"),
                Place::Host(_) => reason.to_owned(),
            };
            self.record(now, Interface::Drops, datagram, Some(&comment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output that accepts this number of bytes.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "full"));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn datagram(payload: &[u8]) -> Datagram<'_> {
        let encapsulation = Encapsulation::Udp { source_port: 9899, destination_port: 9899 };
        Datagram { source: [10, 0, 0, 1].into(), destination: [10, 0, 0, 2].into(), encapsulation, payload }
    }

    #[test]
    fn headers_carry_valid_checksums() {
        let mut out = Vec::new();
        let payload = [1, 2, 3];
        write_headers(&mut out, &datagram(&payload), 31);
        assert_eq!(sum(0, &out[..20]), u16::MAX);
        out.extend(payload);
        assert_eq!(sum(17 + 11, &out[12..]), u16::MAX);
    }

    #[test]
    fn the_checksum_of_a_known_header() {
        // A worked example of the Internet checksum from textbooks.
        let header: [u8; 20] =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(!sum(0, &header), 0xb861);
    }

    #[test]
    fn blocks_are_framed_and_padded() {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        let interface = writer.add_interface("odd").unwrap();
        writer.packet(interface, Time::from_nanos(5_000_000_001), datagram(&[7]), Some("why")).unwrap();
        let file = writer.finish().unwrap();
        let (mut at, mut kinds) = (0, Vec::new());
        while at < file.len() {
            let word = |i: usize| u32::from_le_bytes(file[i..i + 4].try_into().unwrap());
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            at += length;
        }
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET]);
    }

    /// Returns the snap length of the interface, and captured and original length of the packet, of a capture with one of each.
    fn lengths(snap_length: SnapLength, payload: &[u8]) -> (u32, u32, u32) {
        let mut writer = PcapngWriter::with_snap_length(Vec::new(), snap_length).unwrap();
        let interface = writer.add_interface("cut").unwrap();
        let at = writer.output.len();
        writer.packet(interface, Time::ZERO, datagram(payload), None).unwrap();
        let file = writer.finish().unwrap();
        let word = |i: usize| u32::from_le_bytes(file[i..i + 4].try_into().unwrap());
        let description = word(4) as usize;
        let captured = word(at + 20);
        assert_eq!(
            word(at + 4),
            36 + captured.next_multiple_of(4),
            "the block holds the captured bytes alone"
        );
        (word(description + 12), captured, word(at + 24))
    }

    #[test]
    fn snap_length_cuts_packets_and_keeps_their_original_length() {
        assert_eq!(lengths(SnapLength::HEADERS, &[7; 1000]), (256, 256, 1028));
        assert_eq!(lengths(SnapLength::HEADERS, &[7; 100]), (256, 128, 128));
        assert_eq!(lengths(SnapLength::FULL, &[7; 1000]), (0, 1028, 1028));
        assert_eq!(lengths(SnapLength::new(100_000).unwrap(), &[7; 1000]), (100_000, 1028, 1028));
        assert_eq!(SnapLength::new(63), None);
    }

    #[test]
    fn errors_are_kept_and_returned() {
        let mut tap = PcapngTap::new(Small(200));
        for _ in 0..100 {
            tap.record(Time::ZERO, Interface::Drops, datagram(&[0; 50]), None);
        }
        assert!(tap.failed());
        assert_eq!(tap.finish().err().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
        let full = PcapngTap::new(Small(0));
        assert!(full.failed());
    }

    #[test]
    fn a_packet_that_ip_cannot_hold_is_refused() {
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        let interface = writer.add_interface("x").unwrap();
        let result = writer.packet(interface, Time::ZERO, datagram(&[0; 65_508]), None);
        assert_eq!(result.err().map(|e| e.kind()), Some(io::ErrorKind::InvalidInput));
    }
}
