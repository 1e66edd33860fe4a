use super::*;
use crate::entropy::Entropy;
use proptest::prelude::*;

const FIRST: u64 = 1 << 32;

/// Returns a fragment on stream 0 with U, B and E set by the letters in `flags`, and its place.
fn fragment<'a>(tsn: u64, mid: u32, fsn: u32, flags: &str, text: &'a str) -> (Fragment<'a>, Place) {
    let place = Place { mid: Mid::new(mid), fsn };
    let fragment = Fragment {
        tsn: FIRST + tsn,
        stream: 0,
        ssn: 0,
        ppid: if flags.contains('B') { 7 } else { 0 },
        place: Some(place),
        unordered: flags.contains('U'),
        beginning: flags.contains('B'),
        ending: flags.contains('E'),
        payload: text.as_bytes(),
    };
    (fragment, place)
}

fn on(stream: u16, (fragment, place): (Fragment<'_>, Place)) -> (Fragment<'_>, Place) {
    (Fragment { stream, ..fragment }, place)
}

fn reassembly() -> Interleaved {
    Interleaved::new(4, 0)
}

/// Pushes fragments of which all lower TSNs may be missing.
fn push(reassembly: &mut Interleaved, fragments: &[(Fragment<'_>, Place)]) {
    for &(fragment, place) in fragments {
        reassembly.push(fragment, place, fragment.tsn - FIRST + 1).expect("no contradiction");
    }
}

/// Reads all, in the form `stream[text]`, without the bracket of an end that is not read.
fn read_all(reassembly: &mut Interleaved, allow_partial: bool) -> Vec<String> {
    let mut pieces = Vec::new();
    loop {
        let mut text = Vec::new();
        let Some(piece) = reassembly.take(|_, part, _| text.extend_from_slice(part), allow_partial) else {
            return pieces;
        };
        assert_eq!(piece.ppid, 7, "each piece has the identifier of its message");
        let (open, close) = (if piece.beginning { "[" } else { "" }, if piece.ending { "]" } else { "" });
        pieces.push(format!("{}{open}{}{close}", piece.stream, String::from_utf8_lossy(&text)));
    }
}

fn violation(
    reassembly: &mut Interleaved,
    (fragment, place): (Fragment<'_>, Place),
    reach: u64,
) -> Violation {
    let (held, readable) = (reassembly.held_chunks(), reassembly.readable_bytes());
    let violation = reassembly.push(fragment, place, reach).expect_err("a contradiction");
    assert_eq!((reassembly.held_chunks(), reassembly.readable_bytes()), (held, readable));
    violation
}

#[test]
fn fragments_of_two_streams_interleave() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[fragment(0, 0, 0, "B", "ab"), on(1, fragment(1, 0, 0, "B", "x"))]);
    push(&mut reassembly, &[fragment(2, 0, 1, "", "cd"), on(1, fragment(3, 0, 1, "E", "y"))]);
    assert_eq!(read_all(&mut reassembly, false), ["1[xy]"]);
    push(&mut reassembly, &[fragment(4, 0, 2, "E", "e")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[abcde]"]);
    assert_eq!((reassembly.held_payload_bytes(), reassembly.held_chunks()), (0, 0));
}

#[test]
fn fragments_form_their_message_in_any_order() {
    let parts = [(0, "B", "ab"), (1, "", "cd"), (2, "", "ef"), (3, "E", "g")];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 3, 1], [2, 0, 3, 1], [1, 3, 0, 2]] {
        for unordered in ["", "U"] {
            let mut reassembly = reassembly();
            for at in order {
                assert!(!reassembly.has_message());
                let (fsn, flags, text) = parts[at];
                push(
                    &mut reassembly,
                    &[fragment(u64::from(fsn), 0, fsn, &format!("{flags}{unordered}"), text)],
                );
            }
            assert_eq!(read_all(&mut reassembly, false), ["0[abcdefg]"]);
        }
    }
}

#[test]
fn ordered_messages_wait_for_earlier_ones_and_unordered_ones_do_not() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[fragment(2, 1, 0, "BE", "b"), fragment(3, 5, 0, "UBE", "u")]);
    push(&mut reassembly, &[fragment(4, 2, 0, "BE", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[u]"]);
    push(&mut reassembly, &[fragment(1, 0, 1, "E", "A"), fragment(0, 0, 0, "B", "a")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[aA]", "0[b]", "0[c]"]);
    assert_eq!(reassembly.next_ssn(0), 3);
}

#[test]
fn contradictory_fragments_are_refused_and_change_nothing() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[fragment(0, 0, 0, "B", "a"), fragment(3, 0, 3, "", "d")]);
    for repeated in [fragment(4, 0, 0, "B", "x"), fragment(4, 0, 3, "", "x")] {
        assert_eq!(violation(&mut reassembly, repeated, 5), Violation::RepeatedFragment);
    }
    for contradiction in [
        fragment(4, 0, 2, "E", "ends before a fragment that has arrived"),
        fragment(4, 0, 0, "", "no beginning"),
        fragment(4, 0, 1, "B", "beginning with a number"),
    ] {
        assert_eq!(violation(&mut reassembly, contradiction, 5), Violation::ContinuesNothing);
    }
    push(&mut reassembly, &[fragment(4, 0, 4, "E", "e")]);
    for beyond in [fragment(5, 0, 5, "", "x"), fragment(5, 0, 2, "E", "two ends")] {
        assert_eq!(violation(&mut reassembly, beyond, 6), Violation::ContinuesNothing);
    }
    assert_eq!(violation(&mut reassembly, on(4, fragment(5, 0, 0, "BE", "x")), 6), Violation::NoSuchStream);
    push(&mut reassembly, &[fragment(1, 0, 1, "", "b"), fragment(2, 0, 2, "", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[abcde]"]);
    assert_eq!(violation(&mut reassembly, fragment(5, 0, 0, "BE", "x"), 6), Violation::RepeatedSequence);
}

#[test]
fn message_identifier_is_at_most_as_far_ahead_as_tsns_are_missing() {
    let mut reassembly = reassembly();
    assert_eq!(violation(&mut reassembly, fragment(0, 1, 0, "BE", "b"), 1), Violation::TooFarAhead);
    assert_eq!(violation(&mut reassembly, fragment(2, 3, 0, "BE", "d"), 3), Violation::TooFarAhead);
    assert_eq!(violation(&mut reassembly, fragment(0, 1 << 30, 0, "B", "z"), 65_535), Violation::TooFarAhead);
    let (far, place) = fragment(2, 2, 0, "BE", "c");
    assert!(reassembly.awaits(&far, place, 3) && !reassembly.awaits(&far, place, 2));
    push(&mut reassembly, &[(far, place)]);
    assert!(reassembly.is_blocked_without_gap());
    push(&mut reassembly, &[fragment(0, 0, 0, "BE", "a"), fragment(1, 1, 0, "BE", "b")]);
    assert!(!reassembly.is_blocked_without_gap());
    assert_eq!(read_all(&mut reassembly, false), ["0[a]", "0[b]", "0[c]"]);
}

#[test]
fn unfinished_unordered_messages_are_bounded() {
    let mut reassembly = reassembly();
    let opened = (0..1000).take_while(|&mid| {
        let (part, place) = fragment(u64::from(mid), mid, 1, "U", "x");
        reassembly.push(part, place, 1).is_ok()
    });
    assert_eq!(opened.count(), 17);
    let (part, place) = fragment(1000, 1000, 1, "U", "x");
    assert_eq!(violation(&mut reassembly, (part, place), 1), Violation::TooManyMessages);
    assert_eq!(reassembly.push(part, place, 2), Ok(()));
}

#[test]
fn large_message_is_read_in_parts_and_blocks_only_its_stream() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[fragment(0, 0, 0, "B", "ab"), fragment(2, 0, 2, "", "e")]);
    assert_eq!(read_all(&mut reassembly, false), [""; 0]);
    assert_eq!(read_all(&mut reassembly, true), ["0[ab"]);
    push(&mut reassembly, &[fragment(3, 0, 0, "UBE", "held"), on(1, fragment(4, 0, 0, "BE", "other"))]);
    push(&mut reassembly, &[fragment(6, 1, 0, "B", "next")]);
    assert_eq!(read_all(&mut reassembly, true), ["1[other]"]);
    push(&mut reassembly, &[fragment(1, 0, 1, "", "cd")]);
    assert_eq!(reassembly.readable_bytes(), 3);
    assert_eq!(read_all(&mut reassembly, false), ["0cde"]);
    push(&mut reassembly, &[fragment(5, 0, 3, "E", "f"), fragment(7, 1, 1, "E", "!")]);
    assert_eq!(read_all(&mut reassembly, false), ["0f]", "0[held]", "0[next!]"]);
    assert_eq!((reassembly.readable_bytes(), reassembly.held_chunks()), (0, 0));
}

#[test]
fn abandoned_messages_are_removed_and_their_late_fragments_ignored() {
    let mut reassembly = reassembly();
    push(
        &mut reassembly,
        &[fragment(0, 0, 0, "B", "lost"), fragment(2, 1, 0, "BE", "b"), fragment(4, 3, 0, "BE", "d")],
    );
    push(&mut reassembly, &[fragment(5, 0, 1, "U", "lost"), fragment(6, 1, 0, "UB", "kept")]);
    reassembly.skip(0, false, Mid::new(2));
    reassembly.skip(0, true, Mid::new(0));
    assert_eq!(read_all(&mut reassembly, false), ["0[b]", "0[d]"]);
    push(&mut reassembly, &[fragment(7, 0, 1, "E", "late"), fragment(8, 0, 0, "UB", "late")]);
    assert_eq!(reassembly.held_chunks(), 1);
    push(&mut reassembly, &[fragment(9, 1, 1, "UE", "!"), fragment(10, 4, 0, "BE", "e")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[kept!]", "0[e]"]);
    assert_eq!(reassembly.held_chunks(), 0);
}

#[test]
fn message_abandoned_while_it_is_read_unblocks_its_stream() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[fragment(0, 0, 0, "B", "a"), fragment(2, 1, 0, "BE", "b")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[a"]);
    push(&mut reassembly, &[fragment(1, 0, 1, "", "unread"), fragment(5, 0, 5, "", "unread")]);
    reassembly.skip(0, false, Mid::new(0));
    assert_eq!(read_all(&mut reassembly, true), ["0[b]"]);
    assert_eq!((reassembly.readable_bytes(), reassembly.held_chunks()), (0, 0));
}

#[test]
fn message_whose_end_has_arrived_is_not_abandoned_while_it_is_read() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[fragment(0, 0, 0, "B", "a")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[a"]);
    push(&mut reassembly, &[fragment(1, 0, 1, "E", "b")]);
    reassembly.skip(0, false, Mid::new(1));
    push(&mut reassembly, &[fragment(4, 2, 0, "BE", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0b]", "0[c]"]);
}

#[test]
fn reset_streams_deliver_number_zero_next_and_others_continue() {
    for all in [false, true] {
        let mut reassembly = Interleaved::new(4, 9);
        push(&mut reassembly, &[on(1, fragment(0, 9, 0, "BE", "a")), on(2, fragment(1, 9, 0, "BE", "b"))]);
        push(&mut reassembly, &[on(1, fragment(2, 9, 0, "UBE", "u"))]);
        assert!(reassembly.reset(&if all { StreamSet::All } else { StreamSet::of([1, 3]) }));
        push(&mut reassembly, &[on(1, fragment(3, 0, 0, "BE", "c")), on(3, fragment(4, 0, 0, "BE", "d"))]);
        push(&mut reassembly, &[on(2, fragment(5, if all { 0 } else { 10 }, 0, "BE", "e"))]);
        push(&mut reassembly, &[on(1, fragment(6, 0, 0, "UBE", "v"))]);
        let expected = ["1[a]", "2[b]", "1[u]", "1[c]", "3[d]", "2[e]", "1[v]"];
        assert_eq!(read_all(&mut reassembly, false), expected, "all: {all}");
    }
}

#[test]
fn reset_is_refused_while_a_message_of_a_stream_waits() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[on(1, fragment(1, 1, 0, "BE", "a")), on(2, fragment(3, 0, 0, "UB", "b"))]);
    for streams in [StreamSet::of([1]), StreamSet::of([0, 2]), StreamSet::All] {
        assert!(!reassembly.reset(&streams), "{streams:?}");
    }
    assert!(reassembly.reset(&StreamSet::of([0, 3])));
}

#[test]
fn identifiers_wrap() {
    let mut reassembly = reassembly();
    reassembly.skip(0, false, Mid::new((1 << 31) - 1));
    reassembly.skip(0, false, Mid::new(u32::MAX - 1));
    push(&mut reassembly, &[fragment(1, 0, 0, "BE", "b"), fragment(0, u32::MAX, 0, "BE", "a")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[a]", "0[b]"]);
}

#[test]
fn storage_stops_growing_once_it_has_held_the_largest_backlog() {
    let mut reassembly = reassembly();
    let mut slots = Vec::new();
    for round in 0..500_u64 {
        let (base, mid) = (round * 4, round as u32 * 2);
        let parts =
            [fragment(base + 3, round as u32, 0, "UBE", "u"), fragment(base + 2, mid + 1, 0, "BE", "b")];
        push(&mut reassembly, &parts);
        push(&mut reassembly, &[fragment(base + 1, mid, 1, "E", "a"), fragment(base, mid, 0, "B", "a")]);
        assert_eq!(read_all(&mut reassembly, false).len(), 3);
        slots.push(reassembly.arena.slot_count());
    }
    assert_eq!(slots.first(), slots.last());
}

proptest! {
    /// Sends messages on three streams, interleaved at random, with fragments that arrive in any order within a window, and reads them
    /// in parts or whole: each arrives once, unchanged and in order.
    #[test]
    fn messages_arrive_as_they_were_sent(
        messages in prop::collection::vec((0_u16..3, any::<bool>(), 1_u32..6), 1..40),
        seed: u64,
        partial: bool,
    ) {
        let mut dice = Entropy::new([seed as u8; 32]);
        let mut mids = [[0_u32; 2]; 3];
        let mut lines = vec![Vec::new(); 3];
        for &(stream, unordered, fragments) in &messages {
            let mid = &mut mids[usize::from(stream)][usize::from(unordered)];
            for fsn in 0..fragments {
                lines[usize::from(stream)].push((stream, *mid, fsn, unordered, fsn == 0, fsn + 1 == fragments));
            }
            *mid += 1;
        }
        let mut sent = Vec::new();
        while lines.iter().any(|line| !line.is_empty()) {
            let at = dice.below(3) as usize;
            if !lines[at].is_empty() {
                sent.push(lines[at].remove(0));
            }
        }
        let mut reassembly = Interleaved::new(3, 0);
        let mut arriving: Vec<usize> = (0..sent.len()).collect();
        for at in 0..arriving.len() {
            let other = (at + dice.below(4) as usize).min(arriving.len() - 1);
            arriving.swap(at, other);
        }
        let mut arrived = vec![false; sent.len()];
        let mut texts: Vec<[Vec<String>; 2]> = vec![Default::default(); 3];
        for at in arriving {
            let (stream, mid, fsn, unordered, beginning, ending) = sent[at];
            let text = format!("{mid}.{fsn};");
            let place = Place { mid: Mid::new(mid), fsn };
            let fragment = Fragment {
                tsn: FIRST + at as u64, stream, ssn: 0, ppid: 7, place: Some(place), unordered, beginning, ending,
                payload: text.as_bytes(),
            };
            let missing = arrived.iter().position(|arrived| !arrived).unwrap_or(0);
            reassembly.push(fragment, place, (at - missing + 1) as u64).unwrap();
            arrived[at] = true;
            let mut bytes = Vec::new();
            while let Some(piece) = reassembly.take(|_, part, _| bytes.extend_from_slice(part), partial) {
                let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
                let line = &mut texts[usize::from(piece.stream)][usize::from(piece.unordered)];
                if piece.beginning { line.push(text) } else { line.last_mut().unwrap().push_str(&text) }
            }
            prop_assert!(reassembly.readable_bytes() <= reassembly.held_payload_bytes());
        }
        prop_assert_eq!((reassembly.held_chunks(), reassembly.blocked), (0, 0));
        for stream in 0..3 {
            for unordered in [false, true] {
                let of_line = messages.iter().filter(|message| (message.0, message.1) == (stream, unordered));
                let mut expected: Vec<String> = (0..).zip(of_line)
                    .map(|(mid, message)| (0..message.2).map(|fsn| format!("{mid}.{fsn};")).collect())
                    .collect();
                let read = &mut texts[usize::from(stream)][usize::from(unordered)];
                if unordered {
                    expected.sort();
                    read.sort();
                }
                prop_assert_eq!(&*read, &expected);
            }
        }
    }

    /// Arbitrary fragments, skips and resets of a hostile peer neither panic nor upset the totals.
    #[test]
    fn arbitrary_fragments_keep_the_totals(
        steps in prop::collection::vec((0_u16..3, 0_u32..6, 0_u32..5, any::<u8>(), 0_u8..10), 0..200),
    ) {
        let mut reassembly = Interleaved::new(3, 0);
        for (stream, mid, fsn, flags, action) in steps {
            let unordered = flags & 1 != 0;
            match action {
                0 => reassembly.skip(stream, unordered, Mid::new(mid)),
                1 => drop(reassembly.reset(&StreamSet::of([stream]))),
                2 | 3 => drop(reassembly.take(|_, _, _| (), action == 3)),
                _ => {
                    let place = Place { mid: Mid::new(mid), fsn };
                    let fragment = Fragment {
                        tsn: FIRST, stream, ssn: 0, ppid: 0, place: Some(place), unordered,
                        beginning: fsn == 0, ending: flags & 6 == 0, payload: &[0; 3],
                    };
                    let _ = reassembly.push(fragment, place, 4);
                }
            }
            prop_assert!(reassembly.readable_bytes() <= reassembly.held_payload_bytes());
            prop_assert_eq!(reassembly.has_message(), reassembly.readable_bytes() > 0);
            prop_assert_eq!(reassembly.held_payload_bytes(), reassembly.held_chunks() * 3);
            let blocked: usize = reassembly.streams.iter().map(|line| line.ordered.blocked()).sum();
            prop_assert_eq!(reassembly.blocked, blocked);
        }
        for stream in 0..3 {
            reassembly.skip(stream, false, Mid::new(1000));
            reassembly.skip(stream, true, Mid::new(1000));
        }
        while reassembly.take(|_, _, _| (), false).is_some() {}
        prop_assert_eq!(reassembly.held_chunks(), 0);
    }
}
