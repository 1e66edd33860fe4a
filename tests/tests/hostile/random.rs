//! A peer that sends valid chunks in any order with any values after a genuine handshake.
//!
//! `ANABRANCH_HOSTILE_MESSAGES=1000000` runs a million messages instead of the default, and `ANABRANCH_HOSTILE_SEED=17` the case of
//! this seed alone.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, AssociationId, Guard, SendOptions};
use anabranch_tests::duo;
use anabranch_tests::hostile::random::Attack;
use anabranch_tests::hostile::{Peer, Target};

use crate::{live_bytes, turn};

const MESSAGES: u64 = 20_000;

/// Number of messages of one case.
const OF_A_CASE: u64 = 500;

const RECV_BUFFER_BYTES: u64 = 64 << 10;

/// Maximum memory of an endpoint under attack: full buffers of every association that has not ended, in which each byte may have a
/// chunk of its own, and queues of limited length.
const MOST_HEAP_BYTES: usize = 24 << 20;

/// Bytes of one message of the application.
const SENDS_BYTES: usize = 5_000;

/// Results of one case.
#[derive(Debug, Default)]
struct Figures {
    messages: u64,
    lives: u64,
    most_heap_bytes: usize,
    worst_factor: f64,
    /// Number of associations by their end.
    ends: BTreeMap<String, u64>,
}

impl Figures {
    fn note_ends(&mut self, events: &[(AssociationId, AssociationEvent)]) {
        for (_, event) in events {
            if matches!(event, AssociationEvent::Closed | AssociationEvent::Aborted(_)) {
                *self.ends.entry(format!("{event:?}")).or_default() += 1;
            }
        }
    }

    fn add(&mut self, other: Figures) {
        self.messages += other.messages;
        self.lives += other.lives;
        self.most_heap_bytes = self.most_heap_bytes.max(other.most_heap_bytes);
        self.worst_factor = self.worst_factor.max(other.worst_factor);
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
    }
}

/// Returns the properties that distinguish the case of a seed.
fn target(seed: u64) -> Target {
    let schemes = ["sctp", "cmt", "bonded"];
    let mut config = duo::config(schemes[(seed / 2 % 3) as usize], "net");
    config.recv_buffer_bytes = RECV_BUFFER_BYTES;
    config.send_buffer_bytes = Some(RECV_BUFFER_BYTES);
    config.mtu_bytes = 1_200;
    config.mtu_search_up_to_bytes = seed.is_multiple_of(5).then_some(1_500);
    config.address_changes.asconf = seed.is_multiple_of(7);
    Target::new(config, (seed % 4 != 3).then(Guard::default), seed.is_multiple_of(3))
}

/// Establishes the association, called by either side.
fn associate(peer: &mut Peer<Target>, listens: bool) {
    peer.wire.forget_closed();
    peer.renew();
    // Exhausted shares are not the subject of this test.
    peer.pass(Span::from_secs(1));
    let associated = if listens {
        peer.call()
    } else {
        peer.wire.call_peer();
        peer.answer()
    };
    // An old association whose end the peer has not seen may block the address for some time.
    if associated.is_err() {
        peer.pass(Span::from_secs(60));
    }
}

/// Performs an arbitrary action of an application.
fn application(peer: &mut Peer<Target>, action: u64) {
    let now = peer.wire.now;
    let Some(id) = peer.wire.live() else { return };
    let association = peer.wire.endpoint.association_mut(id).expect("it is live");
    match action {
        0..8 => {
            // The call fails if the buffer is full or the shutdown has begun.
            let options = SendOptions { stream: (action % 4) as u16, ..SendOptions::default() };
            let _ = association.send(vec![7; SENDS_BYTES].into(), options);
        }
        8 => association.shutdown(now),
        _ => association.abort(now),
    }
    peer.wire.drain();
}

fn check(peer: &Peer<Target>) {
    for id in peer.wire.endpoint.associations() {
        let association = peer.wire.endpoint.association(id).expect("it exists");
        association.check_invariants();
        let held = association.held_bytes();
        assert!(held <= RECV_BUFFER_BYTES, "{held} B held");
    }
}

fn run(seed: u64, messages: u64) -> Figures {
    let before = live_bytes();
    let mut peer = Peer::new(target(seed), seed).forgetful();
    let mut attack = Attack::new(seed);
    let mut figures = Figures::default();
    let mut sends = 0;
    for message in 0..messages {
        if peer.wire.live().is_none() {
            figures.lives += 1;
            associate(&mut peer, seed.is_multiple_of(2));
        }
        let bytes = attack.message(&mut peer);
        peer.send(&bytes);
        for came in peer.pass(attack.pause()) {
            if attack.has_manners() {
                peer.answer_heartbeat(&came);
            }
        }
        if let Some(action) = attack.application(10) {
            sends += 1;
            application(&mut peer, action);
        }
        figures.note_ends(&peer.wire.events);
        peer.wire.events.clear();
        if message % 8 == 0 {
            check(&peer);
        }
        figures.most_heap_bytes = figures.most_heap_bytes.max(live_bytes().saturating_sub(before));
    }
    assert!(figures.most_heap_bytes < MOST_HEAP_BYTES, "{figures:?}");
    figures.messages = messages;
    figures.worst_factor = peer.drawn.bytes as f64 / peer.sent.bytes as f64;
    check_output(&peer, sends, figures.lives);
    end(peer);
    figures
}

/// Checks that the output stays within its limit: a constant for each association and for each item that the application sends and
/// retransmits, and for each received packet a full packet (a SACK) and three times its length.
fn check_output(peer: &Peer<Target>, sends: u64, lives: u64) {
    let (sent, drawn) = (peer.sent, peer.drawn);
    let own = lives * 100_000 + sends * 12 * SENDS_BYTES as u64;
    let most = own + 3 * sent.bytes + 1_500 * sent.packets;
    assert!(drawn.bytes <= most, "{} B for {} B, at most {most}", drawn.bytes, sent.bytes);
    let most = own / 12 + 64 * sent.packets;
    assert!(drawn.packets <= most, "{} packets for {}, at most {most}", drawn.packets, sent.packets);
}

/// Ends all associations with a silent peer.
fn end(mut peer: Peer<Target>) {
    peer.pass(Span::from_secs(7_200));
    peer.wire.forget_closed();
    let left = peer.wire.associations();
    assert_eq!((left, peer.wire.endpoint.poll_timeout()), (0, None));
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is to be a number")))
}

#[test]
fn hostile_peer_causes_no_panic_bounded_memory_and_traffic() {
    let _turn = turn();
    let messages = setting("ANABRANCH_HOSTILE_MESSAGES").unwrap_or(MESSAGES);
    let seeds = match setting("ANABRANCH_HOSTILE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..messages.div_ceil(OF_A_CASE),
    };
    let mut all = Figures::default();
    for seed in seeds {
        let case = catch_unwind(AssertUnwindSafe(|| run(seed, OF_A_CASE.min(messages))));
        let figures = case.unwrap_or_else(|failure| {
            eprintln!("failed: run it alone with ANABRANCH_HOSTILE_SEED={seed}");
            resume_unwind(failure)
        });
        all.add(figures);
    }
    println!("{all:?}");
    assert!(all.lives * 20 < all.messages, "associations last long enough to be of use: {all:?}");
}
