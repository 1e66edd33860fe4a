//! Properties of tracker and reassembly together: the reader gets the messages that were sent.

use super::reassembly::{Fragment, Reassembly, ReceivedMessage};
use super::tracker::{Arrival, Tracker};
use crate::entropy::Entropy;
use proptest::prelude::*;
use std::collections::BTreeMap;

const STREAMS: u16 = 4;

/// Message as the sender sees it.
#[derive(Clone, Debug)]
struct Sent {
    stream: u16,
    unordered: bool,
    /// Never arrives completely, and is skipped with a FORWARD-TSN in the end.
    abandoned: bool,
    fragment_sizes: Vec<usize>,
}

/// Fragment between sender and receiver.
#[derive(Clone, Debug)]
struct InFlight {
    message: usize,
    tsn: u64,
    ssn: u16,
    beginning: bool,
    ending: bool,
    payload: Vec<u8>,
}

/// Receiver, and the messages that its reader has got.
struct Receiver {
    tracker: Tracker,
    reassembly: Reassembly,
    out: Vec<u8>,
    /// Message that is being read in parts, by stream.
    begun: BTreeMap<u16, (ReceivedMessage, Vec<u8>)>,
    /// Whole messages, in the order in which their ends were read.
    messages: Vec<(ReceivedMessage, Vec<u8>)>,
}

impl Receiver {
    fn new(initial_tsn: u64, initial_ssn: u16) -> Self {
        let mut reassembly = Reassembly::new(initial_tsn, STREAMS);
        for stream in 0..STREAMS {
            // Two steps, because a step of half the range or more would count as backward.
            reassembly.skip_ordered(stream, initial_ssn.wrapping_sub(1) / 2);
            reassembly.skip_ordered(stream, initial_ssn.wrapping_sub(1));
        }
        Self {
            tracker: Tracker::new(initial_tsn),
            reassembly,
            out: Vec::new(),
            begun: BTreeMap::new(),
            messages: Vec::new(),
        }
    }

    fn take(&mut self, sent: &[Sent], fragment: &InFlight) {
        let judged = self.tracker.classify(fragment.tsn);
        if judged == Arrival::Duplicate {
            return self.tracker.note_duplicate(fragment.tsn);
        }
        self.tracker.record(fragment.tsn, judged);
        let message = &sent[fragment.message];
        let held = self.reassembly.held_payload_bytes();
        self.reassembly
            .push(Fragment {
                tsn: fragment.tsn,
                stream: message.stream,
                ssn: fragment.ssn,
                ppid: fragment.message as u32,
                place: None,
                unordered: message.unordered,
                beginning: fragment.beginning,
                ending: fragment.ending,
                payload: &fragment.payload,
            })
            .unwrap();
        assert_eq!(self.reassembly.held_payload_bytes(), held + fragment.payload.len() as u64);
    }

    /// Reads at most `limit` pieces.
    fn read(&mut self, limit: usize, allow_partial: bool) {
        for _ in 0..limit {
            let held = self.reassembly.held_payload_bytes();
            let readable = self.reassembly.readable_bytes();
            let promised = self.reassembly.has_message();
            let Some(piece) = self.reassembly.read(&mut self.out, allow_partial) else {
                return assert!(!promised && readable == 0);
            };
            assert!(promised || (allow_partial && piece.beginning && !piece.ending));
            assert_eq!(self.reassembly.held_payload_bytes() + piece.bytes as u64, held);
            self.assemble(piece);
        }
    }

    /// Joins pieces by stream, as a reader does, and checks that no piece of another message comes between them.
    fn assemble(&mut self, piece: ReceivedMessage) {
        let mut bytes = std::mem::take(&mut self.out);
        assert_eq!(bytes.len(), piece.bytes);
        if !piece.beginning {
            let (first, mut before) =
                self.begun.remove(&piece.stream).expect("a beginning before a continuation");
            assert_eq!((first.ppid, first.ssn, first.unordered), (piece.ppid, piece.ssn, piece.unordered));
            before.append(&mut bytes);
            bytes = before;
        } else if let Some((unfinished, _)) = self.begun.remove(&piece.stream) {
            // Only an abandoned message may lack its end; the caller finds that it is not in `messages`.
            assert_ne!(unfinished.ppid, piece.ppid);
        }
        if piece.ending {
            self.messages.push((piece, bytes));
        } else {
            self.begun.insert(piece.stream, (piece, bytes));
        }
    }
}

/// Cuts the messages into fragments, whose bytes identify the message and the place in it.
fn transmit(sent: &[Sent], initial_tsn: u64, initial_ssn: u16) -> Vec<InFlight> {
    let mut ssns = [initial_ssn; STREAMS as usize];
    let mut fragments: Vec<InFlight> = Vec::new();
    for (number, message) in sent.iter().enumerate() {
        let ssn = &mut ssns[usize::from(message.stream)];
        for (at, &size) in message.fragment_sizes.iter().enumerate() {
            fragments.push(InFlight {
                message: number,
                tsn: initial_tsn + fragments.len() as u64,
                ssn: if message.unordered { 0 } else { *ssn },
                beginning: at == 0,
                ending: at + 1 == message.fragment_sizes.len(),
                payload: (0..size).map(|byte| (number * 31 + at * 7 + byte) as u8).collect(),
            });
        }
        if !message.unordered {
            *ssn = ssn.wrapping_add(1);
        }
    }
    fragments
}

/// Moves each fragment by at most `window` places, and repeats some.
fn shuffle(fragments: &[InFlight], window: u64, entropy: &mut Entropy) -> Vec<InFlight> {
    let mut keyed = Vec::new();
    for (at, fragment) in fragments.iter().enumerate() {
        let copies = if entropy.below(8) == 0 { 2 } else { 1 };
        keyed.extend((0..copies).map(|_| (at as u64 + entropy.below(window), fragment)));
    }
    keyed.sort_by_key(|&(key, _)| key);
    keyed.into_iter().map(|(_, fragment)| fragment.clone()).collect()
}

/// Skips abandoned TSNs from the cumulative TSN on, as the sender does (RFC 3758 section 3.5). Unless `whole`, it may skip only to
/// the middle of a message, whose rest can still arrive.
fn forward(
    receiver: &mut Receiver,
    sent: &[Sent],
    fragments: &[InFlight],
    whole: bool,
    entropy: &mut Entropy,
) {
    let first = fragments[0].tsn;
    while let Some(missing) = fragments.get((receiver.tracker.cumulative() + 1 - first) as usize)
        && sent[missing.message].abandoned
    {
        let rest =
            fragments.iter().skip_while(|f| f.tsn < missing.tsn).take_while(|f| f.message == missing.message);
        let skipped = if whole { u64::MAX } else { entropy.below(8) };
        let target = missing.tsn + skipped.min(rest.count() as u64 - 1);
        receiver.tracker.forward(target);
        receiver.reassembly.forward(target);
        if !sent[missing.message].unordered {
            receiver.reassembly.skip_ordered(sent[missing.message].stream, missing.ssn);
        }
    }
}

/// Checks that each message that was not abandoned was read once, complete and in order.
fn check(receiver: &Receiver, sent: &[Sent], fragments: &[InFlight]) {
    let mut last_ordered = [None; STREAMS as usize];
    let mut times_read = vec![0; sent.len()];
    for (piece, bytes) in &receiver.messages {
        let number = piece.ppid as usize;
        let message = &sent[number];
        times_read[number] += 1;
        assert_eq!((piece.stream, piece.unordered), (message.stream, message.unordered));
        let expected: Vec<u8> = fragments
            .iter()
            .filter(|f| f.message == number)
            .flat_map(|f| f.payload.iter().copied())
            .collect();
        assert_eq!(bytes, &expected);
        if !message.unordered {
            let last = last_ordered[usize::from(message.stream)].replace(number);
            assert!(last < Some(number), "message {number} after {last:?}");
        }
    }
    let expected: Vec<i32> = sent.iter().map(|message| i32::from(!message.abandoned)).collect();
    assert_eq!(times_read, expected);
}

fn run(sent: &[Sent], initial: (u64, u16), window: u64, partial: bool, entropy: &mut Entropy) {
    let (initial_tsn, initial_ssn) = initial;
    let mut receiver = Receiver::new(initial_tsn, initial_ssn);
    let fragments = transmit(sent, initial_tsn, initial_ssn);
    // Each fragment of an abandoned message may be lost, and its last one is.
    let lost = |fragment: &InFlight, entropy: &mut Entropy| {
        sent[fragment.message].abandoned && (fragment.ending || entropy.coin())
    };
    for fragment in shuffle(&fragments, window, entropy) {
        if lost(&fragment, entropy) {
            continue;
        }
        receiver.take(sent, &fragment);
        if entropy.below(4) == 0 {
            forward(&mut receiver, sent, &fragments, false, entropy);
        }
        let limit = entropy.below(4) as usize;
        let allow_partial = partial && entropy.coin();
        receiver.read(limit, allow_partial);
    }
    forward(&mut receiver, sent, &fragments, true, entropy);
    receiver.read(usize::MAX, false);
    check(&receiver, sent, &fragments);
    let last = initial_tsn + fragments.len() as u64 - 1;
    assert_eq!((receiver.tracker.cumulative(), receiver.tracker.has_gaps()), (last, false));
    assert_eq!((receiver.reassembly.held_chunks(), receiver.reassembly.held_payload_bytes()), (0, 0));
}

fn messages(abandoned: f64) -> impl Strategy<Value = Vec<Sent>> {
    let message = (
        0..STREAMS,
        prop::bool::weighted(0.3),
        prop::bool::weighted(abandoned),
        prop::collection::vec(0_usize..20, 1..6),
    )
        .prop_map(|(stream, unordered, abandoned, fragment_sizes)| Sent {
            stream,
            unordered,
            abandoned,
            fragment_sizes,
        });
    prop::collection::vec(message, 1..60)
}

/// Returns initial numbers that wrap within a run, in the 32-bit and the 16-bit form that the peer sees.
fn initials() -> impl Strategy<Value = (u64, u16)> {
    (prop_oneof![Just(1_u64 << 32), (1_u64 << 33) - 100..(1 << 33) + 5], prop_oneof![Just(0), 65_500_u16..])
}

proptest! {
    #[test]
    fn every_message_is_read_once_whole_and_in_order(
        sent in messages(0.0), initial in initials(), window in 1_u64..80, partial: bool, seed: [u8; 32],
    ) {
        run(&sent, initial, window, partial, &mut Entropy::new(seed));
    }

    #[test]
    fn abandoned_messages_are_left_out_and_disturb_no_other(
        sent in messages(0.3), initial in initials(), window in 1_u64..80, partial: bool, seed: [u8; 32],
    ) {
        run(&sent, initial, window, partial, &mut Entropy::new(seed));
    }

    #[test]
    fn arbitrary_fragments_and_skips_neither_panic_nor_leak(
        steps in prop::collection::vec((0_u64..40, 0_u16..3, 0_u16..4, any::<u8>(), 0_u8..12), 1..200),
    ) {
        let mut reassembly = Reassembly::new(1 << 32, 3);
        let mut base = 1 << 32;
        let mut out = Vec::new();
        for (at, stream, ssn, flags, action) in steps {
            let tsn = base + at;
            match action {
                0 => {
                    base = base.max(tsn);
                    reassembly.forward(tsn);
                }
                1 => reassembly.skip_ordered(stream, ssn.wrapping_sub(1)),
                2 | 3 => drop(reassembly.read(&mut out, action == 3)),
                _ => {
                    let [unordered, beginning, ending] = [flags & 1, flags & 6, flags & 24].map(|bits| bits != 0);
                    let ppid = u32::from(flags >> 7);
                    let payload = &[0; 3];
                    let fragment = Fragment { tsn, stream, ssn, ppid, place: None, unordered, beginning, ending, payload };
                    let _ = reassembly.push(fragment);
                }
            }
            prop_assert!(reassembly.readable_bytes() <= reassembly.held_payload_bytes());
            prop_assert_eq!(reassembly.has_message(), reassembly.readable_bytes() > 0);
            prop_assert_eq!(reassembly.held_payload_bytes(), reassembly.held_chunks() * 3);
        }
        // All remaining messages are unfinished, so skipping far ahead leaves only readable ones.
        reassembly.forward(base + 1_000_000);
        for stream in 0..3 {
            for ssn in [0x7FFE, 0xFFFC, 0x7FFA, 0xFFF8, 0x7FF0] {
                reassembly.skip_ordered(stream, ssn);
            }
        }
        while reassembly.read(&mut out, false).is_some() {}
        prop_assert_eq!((reassembly.held_chunks(), reassembly.readable_bytes()), (0, 0));
    }

    #[test]
    fn numbers_of_the_whole_range_are_handled(
        initial: u64,
        steps in prop::collection::vec((any::<u64>(), any::<u16>(), any::<u16>(), any::<u8>()), 1..30),
    ) {
        let mut reassembly = Reassembly::new(initial, u16::MAX);
        let mut out = Vec::new();
        for (number, stream, ssn, flags) in steps {
            let [unordered, beginning, ending, forward, near] = [1, 2, 4, 8, 16].map(|bit| flags & bit != 0);
            let tsn = if near { initial.saturating_add(number >> 48) } else { number };
            let (ppid, payload) = (0, &[1]);
            let _ = reassembly.push(Fragment { tsn, stream, ssn, ppid, place: None, unordered, beginning, ending, payload });
            if forward {
                reassembly.forward(tsn);
                reassembly.skip_ordered(stream, ssn);
            }
            let _ = reassembly.read(&mut out, flags & 32 != 0);
        }
    }
}
