//! A source of files with false claims.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_transfer::protocol::{Answer, FileTime, Kind, Message, Outcome, Run};
use anabranch_transfer::{BLOCK_BYTES, Hash};
use fastrand::Rng;

use super::actor::Actor;
use super::arbitrary;
use super::claims::Claims;
use crate::dictionary;
use crate::packet::{Packet, block, raw, root};
use crate::peer::Heard;

/// Maximum number of open offers, unless the source tests an excess.
const OPEN_OFFERS: usize = 40;
/// Maximum number of blocks of a file whose content is generated to compute a root.
const MOST_BLOCKS: u64 = 3;
/// Maximum number of packets that may be sent again.
const REMEMBERED: usize = 32;

pub(super) struct Source {
    claims: Arc<Claims>,
    /// Seed of the content of files besides their names, so that another association can continue them.
    round: u64,
    plan: Plan,
    next_id: u32,
    open: BTreeMap<u32, Offered>,
    said: Vec<Packet>,
}

/// Aim of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Offers any entry.
    Any,
    /// Mostly offers entries that others have removed.
    Fill,
    /// Begins with a folder in which it removes entries.
    Delete,
}

struct Offered {
    name: String,
    /// One of two contents of the file with that name.
    version: u8,
    kind: Kind,
    answer: Option<Answer>,
    sent: BTreeMap<u64, Hash>,
}

impl Source {
    pub(super) fn new(claims: Arc<Claims>, round: u64, plan: Plan) -> Self {
        Source { claims, round, plan, next_id: 0, open: BTreeMap::new(), said: Vec::new() }
    }

    /// Returns a folder and its claimed content. In most cases it is offered first.
    fn deletion(&mut self, dice: &mut Rng) -> Vec<Packet> {
        let folders = ["kept", "alias", "out", "d0", "d1", ""];
        let folder = match dice.u8(..4) {
            0 => dictionary::name(dice),
            _ => folders[dice.usize(..folders.len())].to_owned(),
        };
        let mut packets = Vec::new();
        if dice.u8(..8) > 0 {
            let mut offer = arbitrary::offer(dice, self.next_id);
            (offer.name, offer.kind) = (folder.as_str().into(), Kind::Folder);
            self.next_id += 1;
            packets.push(Packet::control(&Message::Offer(offer)));
        }
        if dice.u8(..4) == 0 {
            packets.push(Packet::control(&Message::Rule(arbitrary::rule(dice))));
        }
        for _ in 0..dice.u8(1..4) {
            let mut listing = arbitrary::listing(dice);
            if dice.u8(..8) > 0 {
                listing.folder = folder.as_str().into();
            }
            packets.push(Packet::control(&Message::Listing(listing)));
        }
        packets
    }

    fn offer(&mut self, dice: &mut Rng) -> Packet {
        let id = match dice.u8(..200) {
            0 => self.next_id.saturating_sub(1 + dice.u32(..3)),
            1 => dictionary::small_number(dice),
            2..8 => self.next_id.saturating_add(dice.u32(..5)),
            _ => self.next_id,
        };
        let is_in_order = id >= self.next_id && id < u32::MAX;
        self.next_id = self.next_id.max(id.saturating_add(1));
        let mut offer = arbitrary::offer(dice, id);
        if self.plan == Plan::Fill && dice.u8(..8) > 0 {
            offer.name = format!("d{}/f{}", dice.u8(..2), dice.u8(..20)).into();
        }
        let name = raw(offer.name.clone());
        let version = dice.u8(..8) / 7;
        if dice.u8(..4) > 0 {
            (offer.kind, offer.changed) = self.plausible(dice, &name, version);
        }
        let offered =
            Offered { name, version, kind: offer.kind.clone(), answer: None, sent: BTreeMap::new() };
        // A message about a reused number refers to the first offer.
        if is_in_order && !matches!(offer.kind, Kind::Link { .. } | Kind::Folder | Kind::FolderEnd) {
            self.open.insert(id, offered);
        }
        Packet::control(&Message::Offer(offer))
    }

    /// Returns any packet. An offer gets its number, so that messages about it do not refer to another one.
    fn anything(&mut self, dice: &mut Rng) -> Packet {
        let packet = arbitrary::packet(dice);
        if let Ok(Message::Offer(offer)) = Message::decode(&packet.bytes) {
            self.next_id = self.next_id.max(offer.id.saturating_add(1));
            self.open.remove(&offer.id);
        }
        packet
    }

    /// Returns the kind and time of a file with this name and version. The values are always the same, so that the receiver resumes
    /// the file.
    fn plausible(&self, dice: &mut Rng, name: &str, version: u8) -> (Kind, FileTime) {
        let seed = self.seed(name, version, u64::MAX);
        let mut fixed = Rng::with_seed(seed);
        let size_bytes = match fixed.u8(..20) {
            0..3 => 0,
            3..14 => fixed.u64(1..300),
            14..17 => fixed.u64(1..130_000),
            17..19 => u64::from(BLOCK_BYTES) + fixed.u64(1..300),
            _ => 2 * u64::from(BLOCK_BYTES),
        };
        let changed = FileTime { seconds: 1_000_000_000 + i64::from(version), nanos: 0 };
        let kind = match dice.u8(..16) {
            0 => Kind::Folder,
            1 => Kind::FolderEnd,
            2..4 => Kind::Stream { token: [fixed.u8(..); 16] },
            4 => Kind::Link { target: dictionary::target(dice).into() },
            _ => {
                let first = (size_bytes > u64::from(BLOCK_BYTES))
                    .then(|| Hash::of(&self.content(name, version, 0, BLOCK_BYTES)));
                Kind::File { size_bytes, first }
            }
        };
        (kind, changed)
    }

    fn seed(&self, name: &str, version: u8, index: u64) -> u64 {
        let of = [name.as_bytes(), &[version], &index.to_be_bytes(), &self.round.to_be_bytes()].concat();
        u64::from_be_bytes(*Hash::of(&of).0.first_chunk().expect("a hash is longer"))
    }

    fn content(&self, name: &str, version: u8, index: u64, length: u32) -> Vec<u8> {
        let mut content = vec![0; length as usize];
        Rng::with_seed(self.seed(name, version, index)).fill(&mut content);
        content
    }

    /// Returns one of the answered offers.
    fn answered(&self, dice: &mut Rng) -> Option<u32> {
        let ids: Vec<u32> =
            self.open.iter().filter(|(_, offered)| offered.answer.is_some()).map(|(id, _)| *id).collect();
        dice.choice(ids)
    }

    fn blocks(&self, dice: &mut Rng) -> Vec<Packet> {
        let Some((id, offered)) = self.answered(dice).and_then(|id| Some((id, self.open.get(&id)?))) else {
            return Vec::new();
        };
        let Some(Answer::Take { have }) = &offered.answer else { return Vec::new() };
        let index = if dice.u8(..100) == 0 {
            dictionary::number(dice)
        } else {
            let missing =
                (0..offered.blocks()).find(|index| !offered.sent.contains_key(index) && !has(have, *index));
            let Some(index) = missing else { return Vec::new() };
            index
        };
        let length = offered.block_len(index);
        if length == 0 {
            return Vec::new();
        }
        let content = self.content(&offered.name, offered.version, index, length);
        match dice.u8(..40) {
            // Content with a wrong hash.
            0 => block(id, index, &vec![0x66; content.len()], Hash::of(&content)),
            // Part of a block, which is never completed.
            1 => {
                let mut packets = block(id, index, &content, Hash::of(&content));
                packets.truncate(packets.len().div_ceil(2));
                packets
            }
            // Content of another file, with its correct hash.
            2 => block(id, index, &vec![0x77; content.len()], Hash::of(&vec![0x77; content.len()])),
            _ => {
                let mut packets = block(id, index, &content, Hash::of(&content));
                dice.shuffle(&mut packets);
                packets
            }
        }
    }

    fn note_sent(&mut self, packets: &[Packet]) {
        for packet in packets {
            let Ok(segment) = anabranch_transfer::protocol::Segment::decode(packet.bytes.clone()) else {
                continue;
            };
            if let (Some(offered), Some(hash)) = (self.open.get_mut(&segment.id), segment.hash) {
                offered.sent.insert(segment.index, hash);
            }
        }
    }

    fn end(&mut self, dice: &mut Rng) -> Option<Packet> {
        let id = self.answered(dice)?;
        let offered = self.open.get(&id)?;
        let is_sent = offered.is_sent();
        if !is_sent && dice.u8(..30) > 0 {
            return None;
        }
        let size_bytes = match offered.kind {
            Kind::File { size_bytes, .. } => size_bytes,
            _ if dice.u8(..10) == 0 => dictionary::number(dice),
            _ => offered.stream_len(),
        };
        let size_bytes = if dice.u8(..100) == 0 { dictionary::number(dice) } else { size_bytes };
        let root = root(self.hashes(offered));
        let root = if dice.u8(..30) == 0 { dictionary::hash(dice) } else { root };
        self.claims.ended(&offered.name, size_bytes, root);
        Some(Packet::control(&Message::End { id, size_bytes, root }))
    }

    /// Returns the hashes of the blocks of a file, as they were sent or should have been.
    fn hashes(&self, offered: &Offered) -> Vec<Hash> {
        let hash = |index| {
            let sent = offered.sent.get(&index).copied();
            sent.unwrap_or_else(|| {
                Hash::of(&self.content(&offered.name, offered.version, index, offered.block_len(index)))
            })
        };
        (0..offered.blocks().min(MOST_BLOCKS)).map(hash).collect()
    }

    fn give_up(&self, dice: &mut Rng) -> Packet {
        let id = self.answered(dice).unwrap_or_else(|| dictionary::small_number(dice));
        Packet::control(&Message::GiveUp { id, failure: arbitrary::failure(dice), again: dice.bool() })
    }
}

impl Actor for Source {
    fn next(&mut self, dice: &mut Rng) -> Vec<Packet> {
        let packets = match dice.u8(..200) {
            _ if self.plan == Plan::Delete => {
                self.plan = Plan::Any;
                self.deletion(dice)
            }
            0..50 if self.open.len() < OPEN_OFFERS || dice.u8(..50) == 0 => vec![self.offer(dice)],
            50..120 => self.blocks(dice),
            120..170 => self.end(dice).into_iter().collect(),
            170..176 => vec![self.give_up(dice)],
            176..180 => {
                let (name, failure) = (dictionary::name(dice).into(), arbitrary::failure(dice));
                vec![Packet::control(&Message::Passed { name, failure })]
            }
            180..184 => vec![Packet::control(&Message::Alive)],
            184 => vec![Packet::control(&Message::Total { files: dice.u64(..), bytes: Some(dice.u64(..)) })],
            185..187 => dice.choice(&self.said).cloned().into_iter().collect(),
            187 => vec![self.anything(dice)],
            _ => Vec::new(),
        };
        self.note_sent(&packets);
        for packet in packets.iter().filter(|packet| packet.bytes.len() < 1000) {
            if self.said.len() == REMEMBERED {
                self.said.swap_remove(dice.usize(..REMEMBERED));
            }
            self.said.push(packet.clone());
        }
        packets
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Control(Message::Answer { id, answer }) => {
                if let Some(offered) = self.open.get_mut(&id) {
                    offered.answer = Some(answer);
                }
            }
            Heard::Control(Message::Block { id, index, good: false }) => {
                if let Some(offered) = self.open.get_mut(&id) {
                    offered.sent.remove(&index);
                }
            }
            Heard::Control(Message::Done { id, outcome }) => {
                if let (Some(offered), Outcome::Stored { renamed }) = (self.open.remove(&id), outcome) {
                    self.claims.stored(renamed.map_or(offered.name, raw));
                }
            }
            _ => {}
        }
    }
}

impl Offered {
    /// Returns the number of bytes of a pipe: one short block.
    fn stream_len(&self) -> u64 {
        20 + self.name.len() as u64 % 50
    }

    fn blocks(&self) -> u64 {
        match self.kind {
            Kind::File { size_bytes, .. } => size_bytes.div_ceil(u64::from(BLOCK_BYTES)),
            Kind::Stream { .. } => 1,
            Kind::Link { .. } | Kind::Folder | Kind::FolderEnd => 0,
        }
    }

    fn block_len(&self, index: u64) -> u32 {
        let size = match self.kind {
            Kind::File { size_bytes, .. } => size_bytes,
            _ => return if index == 0 { u32::try_from(self.stream_len()).unwrap_or(1) } else { 10 },
        };
        let before = index.saturating_mul(u64::from(BLOCK_BYTES));
        u32::try_from(size.saturating_sub(before).min(u64::from(BLOCK_BYTES))).unwrap_or(BLOCK_BYTES)
    }

    fn is_sent(&self) -> bool {
        match &self.answer {
            Some(Answer::Take { have }) => {
                self.blocks() <= MOST_BLOCKS
                    && (0..self.blocks()).all(|index| self.sent.contains_key(&index) || has(have, index))
            }
            Some(Answer::Compare) => true,
            None => false,
        }
    }
}

fn has(runs: &[Run], index: u64) -> bool {
    runs.iter().any(|run| run.first <= index && index - run.first < run.count)
}
