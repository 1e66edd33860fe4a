//! An attacker on the path who drops, repeats, reorders, replays, creates and edits plain chunks at random.

use crate::dice::Dice;
use crate::hostile::craft::fix_checksum;
use crate::network::{Packet, Side};

const HEADER: usize = 12;
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const DTLS: u8 = 0x41;

/// Offset of the first parameter of an INIT or INIT ACK in its chunk.
const INIT_PARAMETERS: usize = 20;

/// Maximum number of stored chunks of each side for replays.
const MOST_SEEN: usize = 16;

/// Parameters that an attacker adds: address types, cookie preservative, host name, supported address types, forbidden and unknown
/// extensions, adaptation layer, authentication, key management lists, restart.
const PARAMETERS: [(u16, &[u8]); 18] = [
    (5, &[127, 0, 0, 9]),
    (6, &[0; 16]),
    (9, &[0, 0, 3, 232]),
    (11, b"host.example\0\0\0\0"),
    (12, &[0, 5]),
    (0xC006, &[0, 0, 0, 7]),
    (0x8008, &[0xC1, 0x80, 0x10, 0x0F]),
    (0x8008, &[0x40]),
    (0xC000, &[]),
    (0x8002, &[7; 32]),
    (0x8003, &[0, 0x80, 0xC1]),
    (0x8004, &[0, 1]),
    (0x8006, &[0, 0, 0, 1, 0x80, 192]),
    (0x8006, &[0, 0, 0, 1, 0x40, 225, 192]),
    (0x8006, &[0xFF; 6]),
    (0x8005, &[0; 8]),
    (0x4242, &[1, 2]),
    (0x0042, &[1, 2]),
];

/// The attacker. Most protected packets pass, and some are dropped.
#[derive(Clone, Debug)]
pub struct Meddler {
    dice: Dice,
    /// Number of actions left.
    left: u32,
    /// Probability of an action at each chunk, in thousandths.
    permille: u32,
    seen: [Vec<Vec<u8>>; 2],
    /// Latest plain TSN of each side, and its latest acknowledgement.
    tsn: [u32; 2],
    /// Actions so far, for the message of a failed test.
    pub actions: Vec<String>,
}

fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut chunk = vec![kind, flags];
    chunk.extend((value.len() as u16 + 4).to_be_bytes());
    chunk.extend(value);
    chunk.resize(chunk.len().next_multiple_of(4), 0);
    chunk
}

impl Meddler {
    /// Returns an attacker with at most this number of actions.
    pub fn new(seed: u64, actions: u32) -> Self {
        let mut dice = Dice::new(seed);
        let permille = [30, 100, 300][dice.below(3) as usize];
        Meddler {
            dice,
            left: actions,
            permille,
            seen: [Vec::new(), Vec::new()],
            tsn: [0; 2],
            actions: Vec::new(),
        }
    }

    /// Passes and changes a packet. Returns `false` if it is lost.
    pub fn pass(&mut self, packet: &mut Packet) -> bool {
        let from = packet.from;
        if packet.bytes.get(HEADER) == Some(&DTLS) {
            let lost = self.left > 0 && self.dice.chance(30);
            self.left -= u32::from(lost);
            return !lost;
        }
        let mut rest = packet.bytes[HEADER..].to_vec();
        let mut chunks: Vec<Vec<u8>> = Vec::new();
        while rest.len() >= 4 {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]])).max(4).next_multiple_of(4);
            let behind = rest.split_off(length.min(rest.len()));
            chunks.push(rest);
            rest = behind;
        }
        let before = chunks.clone();
        for chunk in &before {
            match chunk[0] {
                DATA => self.tsn[from.index()] = be32(chunk, 4),
                INIT | INIT_ACK => self.tsn[from.index()] = be32(chunk, 16).wrapping_sub(1),
                _ => {}
            }
            if self.seen[from.index()].len() < MOST_SEEN {
                self.seen[from.index()].push(chunk.clone());
            }
        }
        let mut at = 0;
        while at < chunks.len() {
            if self.left > 0 && self.dice.chance(self.permille) {
                self.left -= 1;
                self.act(from, &mut chunks, at);
            }
            at += 1;
        }
        if chunks != before {
            packet.bytes.truncate(HEADER);
            packet.bytes.extend(chunks.concat());
            fix_checksum(&mut packet.bytes);
        }
        !chunks.is_empty()
    }

    fn act(&mut self, from: Side, chunks: &mut Vec<Vec<u8>>, at: usize) {
        let kind = chunks[at][0];
        let is_init = matches!(kind, INIT | INIT_ACK);
        let action = self.dice.below(8);
        self.actions.push(format!("{from:?} kind {kind} action {action}"));
        match action {
            0 => drop(chunks.remove(at)),
            1 => chunks.insert(at, chunks[at].clone()),
            2 => {
                let other = self.dice.below(chunks.len() as u64) as usize;
                chunks.swap(at, other);
            }
            3 if is_init => self.edit_parameters(&mut chunks[at]),
            3 | 4 => self.edit(&mut chunks[at]),
            5 => {
                let side = if self.dice.chance(800) { from } else { from.other() };
                let seen = &self.seen[side.index()];
                let Some(old) = seen.get(self.dice.below(seen.len() as u64) as usize).cloned() else {
                    return;
                };
                self.actions.push(format!("replay of kind {}", old[0]));
                if old[0] != INIT && old[0] != INIT_ACK { chunks.insert(at, old) } else { chunks[at] = old }
            }
            _ => {
                let made = self.made(from);
                self.actions.push(format!("made {:02x?}", &made[..made.len().min(24)]));
                let behind = usize::from(self.dice.chance(500));
                chunks.insert(at + behind, made);
            }
        }
    }

    /// Returns a number near a relevant one.
    fn near(&mut self, number: u32) -> u32 {
        number.wrapping_add(self.dice.below(9) as u32).wrapping_sub(4)
    }

    fn edit(&mut self, chunk: &mut [u8]) {
        let at = self.dice.below(chunk.len().min(48) as u64) as usize;
        match chunk[0] {
            DATA if self.dice.chance(700) => {
                let by = self.dice.below(5) as u32;
                let tsn = be32(chunk, 4).wrapping_add(by).wrapping_sub(2);
                chunk[4..8].copy_from_slice(&tsn.to_be_bytes());
            }
            SACK if self.dice.chance(700) => {
                let tsn = self.near(be32(chunk, 4));
                chunk[4..8].copy_from_slice(&tsn.to_be_bytes());
            }
            _ => chunk[at] ^= 1 << self.dice.below(8),
        }
    }

    fn edit_parameters(&mut self, init: &mut Vec<u8>) {
        let mut parts = Vec::new();
        let mut rest = init.split_off(INIT_PARAMETERS.min(init.len()));
        while rest.len() >= 4 {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]])).max(4).next_multiple_of(4);
            let behind = rest.split_off(length.min(rest.len()));
            parts.push(rest);
            rest = behind;
        }
        let at = self.dice.below(parts.len() as u64 + 1) as usize;
        match self.dice.below(4) {
            0 if at < parts.len() => drop(parts.remove(at)),
            1 if at < parts.len() => parts.insert(at, parts[at].clone()),
            2 if at < parts.len() => {
                let other = self.dice.below(parts.len() as u64) as usize;
                parts.swap(at, other);
            }
            _ => {
                let (kind, value) = PARAMETERS[self.dice.below(PARAMETERS.len() as u64) as usize];
                let mut part = kind.to_be_bytes().to_vec();
                part.extend((value.len() as u16 + 4).to_be_bytes());
                part.extend(value);
                part.resize(part.len().next_multiple_of(4), 0);
                parts.insert(at, part);
            }
        }
        init.extend(parts.concat());
        let length = init.len() as u16;
        init[2..4].copy_from_slice(&length.to_be_bytes());
    }

    /// Returns a chunk that this side could have sent.
    fn made(&mut self, from: Side) -> Vec<u8> {
        let (own, peer) = (self.tsn[from.index()], self.tsn[from.other().index()]);
        let (own, peer) = (self.near(own).to_be_bytes(), self.near(peer).to_be_bytes());
        let ssn = [0, self.dice.below(4) as u8];
        match self.dice.below(20) {
            0 => chunk(
                DATA,
                3,
                &[&own[..], &[0, 0], &ssn, &[0, 0, 0x10, 0x92], &[3, 20, 3, 3, 0, 1, 1]].concat(),
            ),
            1 => chunk(DATA, 3, &[&own[..], &[0, 3], &ssn, &[0, 0, 0, 0], b"forged"].concat()),
            2 => chunk(DATA, 7, &[&own[..], &[0, 0], &ssn, &[0, 0, 0x10, 0x92], b"forged"].concat()),
            3 => chunk(SACK, 0, &[&peer[..], &[0, 16, 0, 0], &[0; 4]].concat()),
            4 => chunk(SACK, 0, &[&peer[..], &[0, 16, 0, 0], &[0, 1, 0, 0], &[0, 2, 0, 9]].concat()),
            5 => chunk(
                0x10,
                0,
                &[&peer[..], &[0, 16, 0, 0], &[0, 0, 0, 1, 0, 0, 0, 0], &[0, 1, 0, 4]].concat(),
            ),
            6 => chunk(0xC0, 0, &own),
            7 => chunk(0xC0, 0, &[&own[..], &[0, 0], &ssn].concat()),
            8 => chunk(7, 0, &peer),
            9 => chunk(8, 0, &[]),
            10 => chunk(14, self.dice.below(2) as u8, &[]),
            11 => chunk(9, 0, &[0, 1, 0, 8, 0, ssn[1], 0, 0]),
            12 => chunk(9, 0, &[0, 3, 0, 8, 0, 0, 0, 9]),
            13 => chunk(9, 0, &[0, 6, 0, 12, 0xC1, 0, 0, 8, 0, 0, 0, 0]),
            14 => chunk(6, self.dice.below(2) as u8, &[]),
            15 => chunk(4, 0, &[0, 1, 0, 12, 1, 2, 3, 4, 5, 6, 7, 8]),
            16 => chunk(11, 0, &[]),
            17 => chunk(0xC1, 0, &[0, 0, 0, 1, 0, 5, 0, 8, 127, 0, 0, 9]),
            18 => chunk([0x3F, 0x7F, 0xBF, 0xFF, 0x84, 12, 13, 0xBA][self.dice.below(8) as usize], 0, &own),
            _ => chunk(0xBA, self.dice.below(2) as u8, &self.dice.clone().bytes(44)),
        }
    }
}
