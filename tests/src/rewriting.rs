//! An attacker on the path who rewrites plain fields.

use anabranch_core::protection::KEY_MANAGEMENT_PPID;

use crate::hostile::craft::fix_checksum;
use crate::network::{Packet, Side};

const HEADER: usize = 12;
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const DTLS: u8 = 0x41;

/// Offsets of the fixed fields of an INIT or INIT ACK in their chunk, and their lengths.
const INIT_FIELDS: [(usize, usize); 5] = [(4, 4), (8, 4), (12, 2), (14, 2), (16, 4)];

/// A fixed field of an INIT or INIT ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitField {
    /// Initiate Tag.
    Tag,
    /// Advertised Receiver Window Credit.
    Window,
    /// Number of Outbound Streams.
    OutboundStreams,
    /// Number of Inbound Streams.
    InboundStreams,
    /// Initial TSN.
    InitialTsn,
}

impl InitField {
    /// All fields.
    pub const ALL: [InitField; 5] = [
        InitField::Tag,
        InitField::Window,
        InitField::OutboundStreams,
        InitField::InboundStreams,
        InitField::InitialTsn,
    ];
}

/// Rewriting of the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Replaces the field with this value.
    Set(u32),
    /// Adds this number to the field.
    Add(i32),
}

impl Change {
    fn applied(self, value: u32) -> u32 {
        match self {
            Change::Set(value) => value,
            Change::Add(by) => value.wrapping_add_signed(by),
        }
    }
}

/// One rule of the attacker, which applies to every matching packet of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// A field of the INITs or INIT ACKs of a side.
    Init {
        /// Side that sends the packet.
        from: Side,
        /// Field that is changed.
        field: InitField,
        /// New value.
        change: Change,
    },
    /// Gives a parameter of an INIT or INIT ACK a type that receivers ignore.
    HideParameter {
        /// Side that sends the packet.
        from: Side,
        /// Type of the parameter.
        kind: u16,
    },
    /// TSNs and stream sequence numbers of plain DATA.
    ShiftData {
        /// Side that sends the packet.
        from: Side,
        /// Number added to each TSN.
        tsn: i32,
        /// Number added to each stream sequence number.
        ssn: i16,
    },
    /// Inserts a message of the key management before the message with this stream sequence number, and shifts that one and all
    /// later ones by one TSN and stream sequence number. TLS ignores the inserted message.
    InsertMessage {
        /// Side that sends the packet.
        from: Side,
        /// Stream sequence number.
        before: u16,
        /// Number of TSNs that the message uses.
        tsns: u8,
    },
    /// The cumulative TSN of plain SACKs.
    ShiftSack {
        /// Side that sends the packet.
        from: Side,
        /// Number added to the cumulative TSN.
        by: i32,
    },
    /// The window of plain SACKs.
    SackWindow {
        /// Side that sends the packet.
        from: Side,
        /// New window.
        window: u32,
    },
    /// Inverts the bits of one byte of each plain chunk of a type.
    InvertByte {
        /// Side that sends the packet.
        from: Side,
        /// Type of the chunk.
        kind: u8,
        /// Offset in the chunk.
        at: usize,
    },
    /// Loses some protected packets.
    LoseProtected {
        /// Side that sends the packet.
        from: Side,
        /// Number of protected packets that pass before.
        after: u32,
        /// Number of lost packets.
        count: u32,
    },
}

/// Changes the bytes of a field in place.
fn change_field(bytes: &mut [u8], at: usize, length: usize, change: Change) {
    let Some(field) = bytes.get_mut(at..at + length) else { return };
    let value = field.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    let changed = change.applied(value).to_be_bytes();
    field.copy_from_slice(&changed[4 - length..]);
}

/// Returns the chunks of a packet with their padding.
fn chunks(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut chunks = Vec::new();
    let mut rest = bytes.get(HEADER..).unwrap_or_default();
    while rest.len() >= 4 {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]])).max(4).next_multiple_of(4);
        let (chunk, behind) = rest.split_at(length.min(rest.len()));
        chunks.push(chunk.to_vec());
        rest = behind;
    }
    chunks
}

/// Offset of the first parameter of an INIT or INIT ACK in its chunk.
const INIT_PARAMETERS: usize = 20;

/// Returns the type and the offset of each parameter of an INIT or INIT ACK.
fn parameters(init: &[u8]) -> Vec<(u16, usize)> {
    let (mut found, mut at) = (Vec::new(), INIT_PARAMETERS);
    while at + 4 <= init.len() {
        found.push((u16::from_be_bytes([init[at], init[at + 1]]), at));
        at += usize::from(u16::from_be_bytes([init[at + 2], init[at + 3]])).max(4).next_multiple_of(4);
    }
    found
}

/// Returns the offset of one byte of each field of a chunk: its type, flags and length, its fixed fields, and of each parameter the
/// type, the length and the value.
fn field_offsets(chunk: &[u8]) -> Vec<usize> {
    let mut offsets = vec![0, 1, 3];
    match chunk[0] {
        INIT | INIT_ACK => {
            offsets.extend(INIT_FIELDS.map(|(at, _)| at));
            offsets.extend(parameters(chunk).into_iter().flat_map(|(_, at)| [at, at + 3, at + 4]));
        }
        DATA => offsets.extend([4, 8, 10, 12, 16]),
        SACK => offsets.extend([4, 8, 12, 14]),
        _ => offsets.push(4),
    }
    offsets.retain(|at| *at < chunk.len());
    offsets
}

/// Returns rewrites of each single field of the chunks that travel in the clear in these packets.
pub fn rewrites_of_fields<'a>(packets: impl IntoIterator<Item = &'a Packet>) -> Vec<Rewrite> {
    let mut rewrites = Vec::new();
    for packet in packets.into_iter().filter(|packet| packet.bytes.get(HEADER) != Some(&DTLS)) {
        let from = packet.from;
        for chunk in chunks(&packet.bytes) {
            let kind = chunk[0];
            let mut found: Vec<Rewrite> =
                field_offsets(&chunk).into_iter().map(|at| Rewrite::InvertByte { from, kind, at }).collect();
            if matches!(kind, INIT | INIT_ACK) {
                let hidden = parameters(&chunk).into_iter();
                found.extend(hidden.map(|(kind, _)| Rewrite::HideParameter { from, kind }));
            }
            found.retain(|rewrite| !rewrites.contains(rewrite));
            rewrites.extend(found);
        }
    }
    rewrites
}

/// List of rules with the number of packets that have met them.
#[derive(Clone, Debug)]
pub struct Rewriter {
    rules: Vec<Rewrite>,
    protected: [u32; 2],
}

impl Rewriter {
    /// Returns an attacker with these rules.
    pub fn new(rules: &[Rewrite]) -> Self {
        Rewriter { rules: rules.to_vec(), protected: [0; 2] }
    }

    /// Rewrites a packet; returns `false` if it is lost.
    pub fn pass(&mut self, packet: &mut Packet) -> bool {
        if packet.bytes.get(HEADER) == Some(&DTLS) {
            return self.pass_protected(packet.from);
        }
        self.rewrite(packet.from, &mut packet.bytes);
        true
    }

    /// Rewrites the chunks of a plain packet from this side.
    pub fn rewrite(&mut self, from: Side, bytes: &mut Vec<u8>) {
        if bytes.get(HEADER) == Some(&DTLS) {
            return;
        }
        let mut rewritten = bytes[..HEADER].to_vec();
        for mut chunk in chunks(bytes) {
            for rule in self.rules.clone() {
                apply(rule, from, &mut chunk, &mut rewritten);
            }
            rewritten.extend(chunk);
        }
        if rewritten != *bytes {
            *bytes = rewritten;
            fix_checksum(bytes);
        }
    }

    fn pass_protected(&mut self, by: Side) -> bool {
        let nth = self.protected[by.index()];
        self.protected[by.index()] += 1;
        !self.rules.iter().any(|rule| match *rule {
            Rewrite::LoseProtected { from, after, count } => {
                from == by && (after..after.saturating_add(count)).contains(&nth)
            }
            _ => false,
        })
    }
}

/// Applies a rule to a chunk. Inserted chunks are appended to `before`.
fn apply(rule: Rewrite, by: Side, chunk: &mut [u8], before: &mut Vec<u8>) {
    let kind = chunk[0];
    let is_init = matches!(kind, INIT | INIT_ACK);
    match rule {
        Rewrite::Init { from, field, change } if from == by && is_init => {
            let (at, length) = INIT_FIELDS[field as usize];
            change_field(chunk, at, length, change);
        }
        Rewrite::HideParameter { from, kind, .. } if from == by && is_init => hide(chunk, kind),
        Rewrite::ShiftData { from, tsn, ssn } if from == by && kind == DATA => shift(chunk, tsn, ssn),
        Rewrite::InsertMessage { from, before: at, tsns } if from == by && kind == DATA => {
            let ssn = u16::from_be_bytes([chunk[10], chunk[11]]);
            if ssn == at && chunk[1] & 2 != 0 {
                before.extend(inserted(chunk, tsns));
            }
            if ssn >= at {
                shift(chunk, i32::from(tsns), 1);
            }
        }
        Rewrite::ShiftSack { from, by: sum } if from == by && kind == SACK => {
            change_field(chunk, 4, 4, Change::Add(sum));
        }
        Rewrite::SackWindow { from, window } if from == by && kind == SACK => {
            change_field(chunk, 8, 4, Change::Set(window));
        }
        Rewrite::InvertByte { from, kind: of, at } if from == by && kind == of => invert(chunk, at),
        _ => {}
    }
}

fn invert(chunk: &mut [u8], at: usize) {
    if let Some(byte) = chunk.get_mut(at) {
        *byte = !*byte;
    }
}

fn shift(data: &mut [u8], tsn: i32, ssn: i16) {
    change_field(data, 4, 4, Change::Add(tsn));
    change_field(data, 10, 2, Change::Add(i32::from(ssn)));
}

/// Gives a parameter a type whose high bits ask receivers to skip it silently.
fn hide(init: &mut [u8], hidden: u16) {
    for (_, at) in parameters(init).into_iter().filter(|(kind, _)| *kind == hidden) {
        init[at..at + 2].copy_from_slice(&[0x8F, 0x42]);
    }
}

/// Returns a message of the key management in this number of fragments: a ChangeCipherSpec, which TLS 1.3 ignores.
fn inserted(data: &[u8], tsns: u8) -> Vec<u8> {
    let message = [3, 20, 3, 3, 0, 1, 1];
    let cuts: Vec<usize> =
        (0..=usize::from(tsns)).map(|part| part * message.len() / usize::from(tsns)).collect();
    let mut chunks = Vec::new();
    for (part, cut) in cuts.windows(2).enumerate() {
        let payload = &message[cut[0]..cut[1]];
        let flags = (2 * u8::from(part == 0)) | u8::from(part + 1 == usize::from(tsns));
        let length = 16 + payload.len();
        let mut chunk = vec![DATA, flags, 0, length as u8];
        let tsn = u32::from_be_bytes([data[4], data[5], data[6], data[7]]).wrapping_add(part as u32);
        chunk.extend(tsn.to_be_bytes());
        chunk.extend(&data[8..12]);
        chunk.extend(KEY_MANAGEMENT_PPID.to_be_bytes());
        chunk.extend(payload);
        chunk.resize(length.next_multiple_of(4), 0);
        chunks.extend(chunk);
    }
    chunks
}
