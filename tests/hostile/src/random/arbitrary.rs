//! Messages with arbitrary values, independent of earlier messages.

use anabranch_transfer::protocol::{
    Answer, Failure, Intent, Kind, Links, Listing, Message, Offer, Outcome, Reason, Segment, Terms,
};
use anabranch_transfer::{BLOCK_BYTES, Hash, OnClash, Rule, SenderId, SenderRequests};
use bytes::Bytes;
use fastrand::Rng;

use crate::dictionary::{changed, hash, name, number, runs, small_number, target, text};
use crate::packet::Packet;

/// Number of kinds of messages.
const KINDS: u8 = 21;

pub(super) fn packet(dice: &mut Rng) -> Packet {
    match dice.u8(..10) {
        0 => Packet::raw(dice.u16(..3), noise(dice)),
        1 | 2 => Packet::segment(&segment(dice)),
        _ => Packet::control(&message(dice)),
    }
}

fn noise(dice: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; if dice.u8(..20) == 0 { 70_000 } else { dice.usize(1..200) }];
    dice.fill(&mut bytes);
    bytes
}

fn segment(dice: &mut Rng) -> Segment {
    let block_len = small_number(dice).min(2 * BLOCK_BYTES);
    let content = Bytes::from(vec![dice.u8(..); dice.usize(1..100)]);
    let offset = if dice.bool() { 0 } else { small_number(dice) };
    let hash = dice.bool().then(|| Hash::of(&content));
    Segment { id: small_number(dice), index: number(dice), block_len, offset, content, hash }
}

pub(super) fn message(dice: &mut Rng) -> Message {
    let id = small_number(dice);
    match dice.u8(..KINDS) {
        0 => Message::Hello { session: [dice.u8(..); 16], intent: intent(dice) },
        1 => Message::Welcome { terms: terms(dice) },
        2 => Message::Fail(failure(dice)),
        3 => Message::Want(name(dice)),
        4 => Message::WantEnd,
        5 | 6 => Message::Offer(offer(dice, id)),
        7 => Message::Passed { name: name(dice).into(), failure: failure(dice) },
        8 => Message::Answer { id, answer: answer(dice) },
        9 => Message::End { id, size_bytes: number(dice), root: hash(dice) },
        10 => Message::GiveUp { id, failure: failure(dice), again: dice.bool() },
        11 | 12 => Message::Block { id, index: number(dice), good: dice.bool() },
        13 => Message::Done { id, outcome: outcome(dice) },
        14 => Message::Finished,
        15 => Message::Rule(rule(dice)),
        16 => Message::Listing(listing(dice)),
        17 => {
            let failure = dice.bool().then(|| failure(dice));
            Message::Deleted { name: name(dice).into(), failure }
        }
        18 => Message::Compared,
        19 => Message::Total { files: number(dice), bytes: dice.bool().then(|| number(dice)) },
        _ => Message::Alive,
    }
}

pub(super) fn intent(dice: &mut Rng) -> Intent {
    if dice.bool() {
        Intent::Push { sender: sender(dice), sender_requests: sender_requests(dice) }
    } else {
        Intent::Pull { window_blocks: small_number(dice), links: links(dice), delete: dice.bool() }
    }
}

fn sender_requests(dice: &mut Rng) -> SenderRequests {
    let on_clash = [OnClash::Refuse, OnClash::Rename, OnClash::Overwrite][dice.usize(..3)];
    SenderRequests {
        on_clash,
        checksum: dice.u8(..4) == 0,
        dry_run: dice.u8(..10) == 0,
        delete: dice.u8(..20) == 0,
    }
}

pub(super) fn rule(dice: &mut Rng) -> Rule {
    let patterns = ["*", "f*", "/d?/", "**/f1", "[a-", "", "{a,b}", "\\", "*/"];
    let pattern = match dice.u8(..4) {
        0 => name(dice),
        1 => "?*[a-z]".repeat(dice.usize(..200)),
        _ => patterns[dice.usize(..patterns.len())].to_owned(),
    };
    Rule { includes: dice.bool(), pattern }
}

/// Returns the content of a folder that may have been offered, mostly in order.
pub(super) fn listing(dice: &mut Rng) -> Listing {
    let folder = if dice.bool() { name(dice) } else { format!("d{}", dice.u8(..3)) };
    let mut names: Vec<String> = (0..dice.u8(..6)).map(|_| format!("f{}", dice.u8(..20))).collect();
    names.extend((dice.u8(..6) == 0).then(|| name(dice)));
    if dice.u8(..10) > 0 {
        names.sort_unstable();
        names.dedup();
    }
    let names = names.into_iter().map(Into::into).collect();
    Listing { folder: folder.into(), names, is_complete: dice.u8(..4) > 0 }
}

fn links(dice: &mut Rng) -> Links {
    [Links::Copy, Links::Follow, Links::Skip][dice.usize(..3)]
}

fn terms(dice: &mut Rng) -> Terms {
    match dice.u8(..3) {
        0 => Terms::Take { window_blocks: small_number(dice) },
        1 => Terms::Give { sender: sender(dice) },
        _ => Terms::Refuse,
    }
}

/// Returns one of a few identities, so that associations meet unfinished files of the same and of other peers.
pub(super) fn sender(dice: &mut Rng) -> SenderId {
    SenderId::from_bytes([dice.u8(..3); SenderId::LEN])
}

pub(super) fn failure(dice: &mut Rng) -> Failure {
    let reasons = [
        Reason::Clash,
        Reason::Busy,
        Reason::BadName,
        Reason::Permission,
        Reason::NoSpace,
        Reason::NotThere,
        Reason::Changed,
        Reason::Corrupt,
        Reason::NotAllowed,
        Reason::System,
        Reason::Protocol,
        Reason::Link,
    ];
    Failure { reason: reasons[dice.usize(..reasons.len())], text: text(dice).into() }
}

pub(super) fn offer(dice: &mut Rng, id: u32) -> Offer {
    let mode = if dice.u8(..10) == 0 { 0 } else { dice.u16(..=0o777) };
    Offer { id, name: name(dice).into(), kind: kind(dice), changed: changed(dice), mode }
}

fn kind(dice: &mut Rng) -> Kind {
    match dice.u8(..10) {
        0..6 => Kind::File { size_bytes: number(dice), first: dice.bool().then(|| hash(dice)) },
        6 | 7 => Kind::Stream { token: [dice.u8(..); 16] },
        8 if dice.bool() => Kind::Link { target: target(dice).into() },
        8 => Kind::Folder,
        _ => Kind::FolderEnd,
    }
}

pub(super) fn answer(dice: &mut Rng) -> Answer {
    if dice.u8(..4) == 0 { Answer::Compare } else { Answer::Take { have: runs(dice) } }
}

pub(super) fn outcome(dice: &mut Rng) -> Outcome {
    match dice.u8(..4) {
        0 => Outcome::Stored { renamed: dice.bool().then(|| name(dice).into()) },
        1 => Outcome::Identical,
        2 if dice.u8(..4) == 0 => Outcome::Planned,
        _ => Outcome::Failed(failure(dice)),
    }
}
