//! Decryption of captures: writes the capture as it would be without protection.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{BufWriter, Write};
use std::path::Path;

use anabranch_sim::Datagram;
use anabranch_sim::pcapng::{InterfaceId, PcapngWriter};
use anabranch_wire::{COMMON_HEADER_LEN, Chunk, PacketView, checksum};
use pcap_parser::Linktype;

use crate::capture::{self, Captured, Found};
use crate::error::KeyLogError;
use crate::keys::{Flow, KeyRing};
use crate::link;

/// Position of the checksum in the common header (RFC 9260 section 3.1).
const CHECKSUM: std::ops::Range<usize> = 8..12;

/// Outcome of decrypting a capture: number of packets by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decrypted {
    /// Packets whose DTLS chunk was replaced by its decrypted chunks.
    pub opened: u64,
    /// Packets with a DTLS chunk that no key of the log opens. The output contains them unchanged.
    pub closed: u64,
    /// SCTP packets without a DTLS chunk. The output contains them unchanged.
    pub plain: u64,
    /// Packets whose end was not captured. The output omits them.
    pub cut_off: u64,
    /// Fragments of IP packets. The output omits them.
    pub fragments: u64,
    /// Packets of other protocols. The output omits them.
    pub others: u64,
    /// Packets of unsupported link types, by number of the type. The output omits them.
    pub unknown_links: BTreeMap<i32, u64>,
}

impl Decrypted {
    /// Returns the reasons why no packet was decrypted and a remedy for each, or `None` if a packet was decrypted.
    pub fn no_packet_reason(&self) -> Option<String> {
        if self.opened > 0 {
            return None;
        }
        let counted = |count: u64, one: &str, more: &str, text: &str| {
            let packets = if count == 1 { one } else { more };
            (count > 0).then(|| format!("{count} {packets} {text}"))
        };
        let packets = |count, text: &str| counted(count, "packet", "packets", text);
        let mut reasons = vec![
            packets(
                self.closed,
                "of SCTP without a matching key: name the key log that one of the two hosts wrote during this transfer",
            ),
            packets(self.plain, "of SCTP are not protected"),
            packets(self.cut_off, "cut off when captured: capture whole packets, as with `tcpdump -s 0`"),
            counted(
                self.fragments,
                "fragment",
                "fragments",
                "of IP packets: capture at one of the two hosts",
            ),
            packets(self.others, "of other protocols: neither SCTP nor SCTP in UDP"),
        ];
        reasons.extend(self.unknown_links.iter().map(|(link, count)| {
            let text = format!(
                "of link type {}, which is not read: capture on the interface of one of the two hosts",
                link::name(Linktype(*link))
            );
            packets(*count, &text)
        }));
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        Some(if reasons.is_empty() { "it has no packets".to_owned() } else { reasons.join("; ") })
    }
}

/// Decrypts the DTLS chunks of a capture (pcapng or pcap) with the keys of a log, and writes the resulting capture (pcapng).
/// Decrypted packets have the length that they would have without protection. A new output file is private to the current user.
///
/// # Errors
/// Returns [`KeyLogError::SameFile`] if the output would overwrite the capture or the key log. Other errors name the file and
/// its defect.
pub fn decrypt(capture: &Path, key_log: &Path, output: &Path) -> Result<Decrypted, KeyLogError> {
    let mut keys = KeyRing::load(key_log)?;
    let mut done = Decrypted::default();
    // Opened first, so that a missing capture leaves no empty output file.
    File::open(capture).map_err(KeyLogError::file(capture))?;
    let file = create(output, [capture, key_log])?;
    let mut writer = Output::new(PcapngWriter::new(BufWriter::new(file)).map_err(KeyLogError::file(output))?);
    capture::read(capture, |found| {
        writer.take(found, &mut keys, &mut done).map_err(KeyLogError::file(output))
    })?;
    writer.capture.finish().map_err(KeyLogError::file(output))?;
    Ok(done)
}

/// Opens the output. Truncates a regular file unless it is one of the inputs.
fn create(output: &Path, inputs: [&Path; 2]) -> Result<File, KeyLogError> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(output).map_err(KeyLogError::file(output))?;
    let metadata = file.metadata().map_err(KeyLogError::file(output))?;
    // Pipes and terminals cannot be truncated.
    if metadata.is_file() {
        for input in inputs {
            let of_input = fs::metadata(input).map_err(KeyLogError::file(input))?;
            if is_same(output, &metadata, input, &of_input) {
                return Err(KeyLogError::SameFile { output: output.to_owned(), input: input.to_owned() });
            }
        }
        file.set_len(0).map_err(KeyLogError::file(output))?;
    }
    Ok(file)
}

#[cfg(unix)]
fn is_same(_: &Path, one: &Metadata, _: &Path, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Compares canonical paths, since the standard library provides file identifiers on Unix only.
#[cfg(not(unix))]
fn is_same(one: &Path, _: &Metadata, other: &Path, _: &Metadata) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

struct Output<W> {
    capture: PcapngWriter<W>,
    interfaces: Vec<InterfaceId>,
}

impl<W: Write> Output<W> {
    fn new(capture: PcapngWriter<W>) -> Self {
        Output { capture, interfaces: Vec::new() }
    }

    fn take(&mut self, found: Found<'_>, keys: &mut KeyRing, done: &mut Decrypted) -> std::io::Result<()> {
        match found {
            Found::Interface(name) => {
                let interface = self.capture.add_interface(name)?;
                self.interfaces.push(interface);
                Ok(())
            }
            Found::Packet(packet) => {
                let opened = open(&packet, keys);
                match &opened {
                    Opened::Chunks(_) => done.opened += 1,
                    Opened::No => done.closed += 1,
                    Opened::Plain => done.plain += 1,
                }
                let (payload, comment) = match &opened {
                    Opened::Chunks(payload) => (&payload[..], Some("was in a DTLS chunk")),
                    Opened::No => (packet.sctp, Some("no key opens this DTLS chunk")),
                    Opened::Plain => (packet.sctp, None),
                };
                let Captured { source, destination, encapsulation, .. } = packet;
                let datagram = Datagram { source, destination, encapsulation, payload };
                self.capture.packet(self.interfaces[packet.interface], packet.time, datagram, comment)
            }
            left_out => {
                done.leave_out(left_out);
                Ok(())
            }
        }
    }
}

impl Decrypted {
    /// Counts a packet that the output omits.
    fn leave_out(&mut self, found: Found<'_>) {
        match found {
            Found::Interface(_) | Found::Packet(_) => {}
            Found::Other => self.others += 1,
            Found::CutOff => self.cut_off += 1,
            Found::Fragment => self.fragments += 1,
            Found::UnknownLink(link) => *self.unknown_links.entry(link.0).or_default() += 1,
        }
    }
}

/// Result of opening a packet.
enum Opened {
    /// Packet without protection.
    Chunks(Vec<u8>),
    /// No key opens the packet.
    No,
    /// The packet has no DTLS chunk.
    Plain,
}

fn open(packet: &Captured<'_>, keys: &mut KeyRing) -> Opened {
    let Ok(view) = PacketView::parse(packet.sctp) else { return Opened::Plain };
    let dtls = view.chunks().find_map(|chunk| match chunk.map(|raw| raw.decode()) {
        Ok(Ok(Chunk::Dtls(dtls))) => Some(dtls),
        _ => None,
    });
    let Some(dtls) = dtls else { return Opened::Plain };
    let Ok((header, record)) = dtls.record() else { return Opened::No };
    let flow =
        Flow { source: packet.source, destination: packet.destination, tag: view.header().verification_tag };
    match keys.open(flow, header, record) {
        Some(chunks) => Opened::Chunks(without_protection(&packet.sctp[..COMMON_HEADER_LEN], &chunks)),
        None => Opened::No,
    }
}

fn without_protection(common_header: &[u8], chunks: &[u8]) -> Vec<u8> {
    let mut packet = [common_header, chunks].concat();
    let sum = checksum(&packet);
    packet[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
    packet
}

#[cfg(test)]
mod tests;
