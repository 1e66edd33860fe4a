//! A receiver with false claims about its content.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_transfer::protocol::{Answer, Kind, Message, Offer};
use fastrand::Rng;

use super::actor::Actor;
use super::arbitrary;
use crate::dictionary;
use crate::inbox::MARKER;
use crate::packet::Packet;
use crate::peer::Heard;

/// Maximum number of stored blocks for later confirmations.
const REMEMBERED: usize = 256;

pub(super) struct Receiver {
    open: BTreeMap<u32, Open>,
    blocks: VecDeque<(u32, u64)>,
    /// Number of folders that were listed and not answered.
    listed: u32,
    /// Set if data from outside of the folder has arrived.
    leaked: Arc<AtomicBool>,
}

struct Open {
    offer: Offer,
    is_answered: bool,
    is_ended: bool,
}

impl Receiver {
    pub(super) fn new(leaked: Arc<AtomicBool>) -> Self {
        Receiver { open: BTreeMap::new(), blocks: VecDeque::new(), listed: 0, leaked }
    }

    fn choose(&self, dice: &mut Rng, fits: impl Fn(&Open) -> bool) -> Option<u32> {
        let ids: Vec<u32> = self.open.iter().filter(|(_, open)| fits(open)).map(|(id, _)| *id).collect();
        dice.choice(ids)
    }

    fn answer(&mut self, dice: &mut Rng) -> Option<Packet> {
        let id = self.choose(dice, |open| !open.is_answered)?;
        let open = self.open.get_mut(&id)?;
        let is_file = matches!(open.offer.kind, Kind::File { .. });
        if matches!(open.offer.kind, Kind::Link { .. } | Kind::Folder | Kind::FolderEnd) {
            return Some(self.done(dice, id));
        }
        open.is_answered = true;
        let answer = match dice.u8(..20) {
            0 => arbitrary::answer(dice),
            1..4 if is_file => Answer::Compare,
            4..8 => Answer::Take { have: dictionary::runs(dice) },
            _ => Answer::Take { have: Vec::new() },
        };
        Some(Packet::control(&Message::Answer { id, answer }))
    }

    fn block(&mut self, dice: &mut Rng) -> Option<Packet> {
        let (id, index) = self.blocks.pop_front()?;
        let good = dice.u8(..6) > 0;
        let index = if dice.u8(..60) == 0 { dictionary::number(dice) } else { index };
        Some(Packet::control(&Message::Block { id, index, good }))
    }

    fn compared(&mut self, dice: &mut Rng) -> Packet {
        if dice.bool() {
            let failure = (dice.u8(..4) == 0).then(|| arbitrary::failure(dice));
            return Packet::control(&Message::Deleted { name: dictionary::name(dice).into(), failure });
        }
        self.listed -= 1;
        Packet::control(&Message::Compared)
    }

    fn done(&mut self, dice: &mut Rng, id: u32) -> Packet {
        self.open.remove(&id);
        Packet::control(&Message::Done { id, outcome: arbitrary::outcome(dice) })
    }

    /// Returns a message about a current or former offer, which may be invalid at this point.
    fn out_of_turn(&self, dice: &mut Rng) -> Packet {
        let id = self.choose(dice, |_| true).unwrap_or_else(|| dice.u32(..4));
        Packet::control(&match dice.u8(..4) {
            0 => Message::Answer { id, answer: arbitrary::answer(dice) },
            1 | 2 => Message::Block { id, index: dice.u64(..3), good: dice.bool() },
            _ => Message::Done { id, outcome: arbitrary::outcome(dice) },
        })
    }
}

impl Actor for Receiver {
    fn next(&mut self, dice: &mut Rng) -> Vec<Packet> {
        let packet = match dice.u8(..200) {
            0..70 => self.answer(dice),
            70..150 => self.block(dice),
            150..165 => self.choose(dice, |open| open.is_ended).map(|id| self.done(dice, id)),
            165..168 => self.choose(dice, |_| true).map(|id| self.done(dice, id)),
            168..172 => Some(self.out_of_turn(dice)),
            172..180 => Some(Packet::control(&Message::Alive)),
            180 => Some(arbitrary::packet(dice)),
            181..190 if self.listed > 0 => Some(self.compared(dice)),
            _ => None,
        };
        packet.into_iter().collect()
    }

    fn heard(&mut self, heard: Heard) {
        match heard {
            Heard::Control(Message::Offer(offer)) => {
                let open = Open { offer, is_answered: false, is_ended: false };
                self.open.insert(open.offer.id, open);
            }
            Heard::Control(Message::Listing(listing)) => self.listed += u32::from(listing.is_complete),
            Heard::Control(Message::End { id, .. }) => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.is_ended = true;
                }
            }
            Heard::Control(Message::GiveUp { id, .. }) => {
                self.open.remove(&id);
            }
            Heard::Data(segment) => {
                if segment.content.windows(MARKER.len()).any(|window| window == MARKER) {
                    self.leaked.store(true, Ordering::SeqCst);
                }
                if segment.hash.is_some() && self.blocks.len() < REMEMBERED {
                    self.blocks.push_back((segment.id, segment.index));
                }
            }
            _ => {}
        }
    }
}
