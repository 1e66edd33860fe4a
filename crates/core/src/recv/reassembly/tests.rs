use super::*;

const FIRST: u64 = 1 << 32;

/// Returns a fragment with the TSN `FIRST + at`, with U, B and E set by the letters in `flags`.
fn fragment<'a>(at: u64, stream: u16, ssn: u16, flags: &str, text: &'a str) -> Fragment<'a> {
    Fragment {
        tsn: FIRST + at,
        stream,
        ssn,
        ppid: 7,
        place: None,
        unordered: flags.contains('U'),
        beginning: flags.contains('B'),
        ending: flags.contains('E'),
        payload: text.as_bytes(),
    }
}

fn reassembly() -> Reassembly {
    Reassembly::new(FIRST, 4)
}

/// Pushes fragments given as TSN offset, stream, SSN, flags and text.
fn push(reassembly: &mut Reassembly, fragments: &[(u64, u16, u16, &str, &str)]) {
    for &(at, stream, ssn, flags, text) in fragments {
        reassembly.push(fragment(at, stream, ssn, flags, text)).unwrap();
    }
}

/// Reads all pieces. Each is returned as its stream and its text, with brackets at the beginning and end of the message.
fn read_all(reassembly: &mut Reassembly, allow_partial: bool) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    while let Some(piece) = reassembly.read(&mut bytes, allow_partial) {
        let text = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
        assert_eq!(text.len(), piece.bytes);
        let (open, close) = (if piece.beginning { "[" } else { "" }, if piece.ending { "]" } else { "" });
        pieces.push(format!("{}{open}{text}{close}", piece.stream));
    }
    pieces
}

#[test]
fn a_message_in_one_fragment_can_be_read_at_once() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 2, 0, "BE", "hello")]);
    assert!(reassembly.has_message());
    assert_eq!(
        (reassembly.readable_bytes(), reassembly.held_payload_bytes(), reassembly.held_chunks()),
        (5, 5, 1)
    );
    let mut out = b">".to_vec();
    let piece = reassembly.read(&mut out, false).unwrap();
    assert_eq!(out, b">hello");
    assert_eq!((piece.stream, piece.ppid, piece.bytes, piece.chunks), (2, 7, 5, 1));
    assert_eq!(
        (reassembly.readable_bytes(), reassembly.held_payload_bytes(), reassembly.held_chunks()),
        (0, 0, 0)
    );
    assert_eq!(reassembly.read(&mut out, true), None);
}

//= docs/rfc9260.txt#section-6.6
//= type=test
//# Within a stream, an endpoint MUST deliver DATA chunks received with the U flag set to 0 to the upper layer according
//# to the order of their Stream Sequence Number.
//= docs/rfc9260.txt#section-6.6
//= type=test
//# If DATA chunks arrive out of order of their Stream Sequence Number, the endpoint MUST hold the received DATA chunks
//# from delivery to the ULP until they are reordered.
#[test]
fn an_ordered_message_waits_for_the_one_before_it_in_its_stream_only() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 1, "BE", "b"), (2, 1, 0, "BE", "x"), (3, 0, 2, "BE", "c")]);
    assert_eq!(read_all(&mut reassembly, true), ["1[x]"]);
    assert_eq!((reassembly.readable_bytes(), reassembly.held_payload_bytes()), (0, 2));
    push(&mut reassembly, &[(0, 0, 0, "BE", "a")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[a]", "0[b]", "0[c]"]);
}

//= docs/rfc9260.txt#section-3.3.1
//= type=test
//# After reassembly (if necessary), unordered DATA chunks MUST be dispatched to the upper layer by the receiver without
//# any attempt to reorder.
#[test]
fn an_unordered_message_overtakes_ordered_ones() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 1, "BE", "b"), (2, 0, 9, "UB", "un"), (3, 0, 0, "UE", "ordered")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[unordered]"]);
}

//= docs/rfc9260.txt#section-6
//= type=test
//# The fragmentation and bundling mechanisms, as detailed in Sections 6.9 and 6.10, are OPTIONAL to implement by the data
//# sender, but they MUST be implemented by the data receiver, i.e., an endpoint MUST properly receive and process bundled
//# or fragmented data.
//= docs/rfc9260.txt#section-6.9
//= type=test
//# An endpoint MAY support fragmentation when sending DATA chunks, but it MUST support reassembly when receiving DATA
//# chunks.
#[test]
fn fragments_form_their_message_in_any_order() {
    let parts = [(0, 0, 0, "B", "ab"), (1, 0, 0, "", "cd"), (2, 0, 0, "", "ef"), (3, 0, 0, "E", "g")];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 3, 1], [2, 0, 3, 1], [1, 3, 0, 2]] {
        let mut reassembly = reassembly();
        for at in order {
            assert!(!reassembly.has_message());
            push(&mut reassembly, &[parts[at]]);
        }
        assert_eq!(read_all(&mut reassembly, false), ["0[abcdefg]"]);
    }
}

#[test]
fn stored_or_read_fragment_is_ignored() {
    let mut reassembly = reassembly();
    push(
        &mut reassembly,
        &[(0, 0, 0, "BE", "a"), (0, 0, 0, "BE", "a"), (2, 0, 2, "BE", "c"), (2, 0, 2, "BE", "c")],
    );
    assert_eq!(reassembly.held_chunks(), 2);
    assert_eq!(read_all(&mut reassembly, false), ["0[a]"]);
    push(&mut reassembly, &[(0, 0, 0, "BE", "a")]);
    assert_eq!(read_all(&mut reassembly, false), [""; 0]);
}

#[test]
fn partially_read_message_blocks_its_stream_until_its_end() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "B", "a"), (1, 0, 0, "", "b"), (4, 0, 1, "BE", "next")]);
    push(&mut reassembly, &[(5, 0, 0, "UBE", "urgent"), (6, 1, 0, "BE", "other")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[urgent]", "1[other]"]);
    assert_eq!(read_all(&mut reassembly, true), ["0[ab"]);
    push(&mut reassembly, &[(7, 0, 0, "UBE", "held back"), (8, 1, 1, "BE", "other")]);
    assert_eq!(read_all(&mut reassembly, true), ["1[other]"]);
    push(&mut reassembly, &[(3, 0, 0, "E", "d")]);
    assert_eq!(read_all(&mut reassembly, true), [""; 0]);
    push(&mut reassembly, &[(2, 0, 0, "", "c")]);
    assert_eq!(reassembly.readable_bytes(), 2);
    assert_eq!(read_all(&mut reassembly, false), ["0cd]", "0[next]", "0[held back]"]);
    assert_eq!((reassembly.held_payload_bytes(), reassembly.held_chunks()), (0, 0));
}

#[test]
fn message_begun_in_parts_continues_without_another_request() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "B", "a")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[a"]);
    push(&mut reassembly, &[(1, 0, 0, "", "b"), (2, 0, 0, "", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0bc"]);
    push(&mut reassembly, &[(3, 0, 0, "E", "")]);
    assert_eq!(read_all(&mut reassembly, false), ["0]"]);
}

#[test]
fn partial_ordered_message_precedes_unordered_one_in_its_turn_only() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "UB", "u"), (3, 0, 1, "B", "not next"), (6, 1, 0, "B", "o")]);
    assert_eq!(read_all(&mut reassembly, true), ["1[o", "0[u"]);
}

#[test]
fn unfinished_messages_held_back_can_be_read_in_parts_later() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "UB", "a"), (3, 0, 0, "UB", "c"), (6, 0, 0, "B", "e")]);
    let mut out = Vec::new();
    assert!(!reassembly.read(&mut out, true).unwrap().unordered);
    assert_eq!(reassembly.read(&mut out, true), None);
    push(&mut reassembly, &[(7, 0, 0, "E", "f"), (4, 0, 0, "UE", "d")]);
    assert_eq!(read_all(&mut reassembly, true), ["0f]", "0[cd]", "0[a"]);
    push(&mut reassembly, &[(1, 0, 0, "UE", "b")]);
    assert_eq!(read_all(&mut reassembly, false), ["0b]"]);
}

#[test]
fn ordered_message_of_another_stream_precedes_held_back_unordered_one() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "UB", "a"), (3, 0, 0, "UB", "b")]);
    let mut out = Vec::new();
    assert!(reassembly.read(&mut out, true).unwrap().beginning);
    assert_eq!(reassembly.read(&mut out, true), None);
    push(&mut reassembly, &[(1, 0, 0, "UE", "c"), (6, 1, 0, "B", "o")]);
    assert_eq!(read_all(&mut reassembly, true), ["0c]", "1[o", "0[b"]);
}

//= docs/rfc9260.txt#section-1.6
//= type=test
//# Any arithmetic done on Stream Sequence Numbers SHOULD use Serial Number Arithmetic, as defined in [RFC1982], where
//# SERIAL_BITS = 16.
#[test]
fn sequence_numbers_wrap_and_may_be_more_than_half_their_range_ahead() {
    let mut reassembly = reassembly();
    reassembly.skip_ordered(0, 0x7FFF);
    reassembly.skip_ordered(0, 0xFFFD);
    let count = 60_000;
    for at in (0..count).rev() {
        reassembly.push(fragment(at, 0, 0xFFFE_u16.wrapping_add(at as u16), "BE", "x")).unwrap();
    }
    let mut out = Vec::new();
    for at in 0..count {
        assert_eq!(reassembly.read(&mut out, false).unwrap().ssn, 0xFFFE_u16.wrapping_add(at as u16));
    }
}

//= docs/rfc9260.txt#section-6.9
//= type=test
//# An endpoint MUST recognize fragmented DATA chunks by examining the B/ E bits in each of the received DATA chunks and
//# queue the fragmented DATA chunks for reassembly.
#[test]
fn fragments_that_contradict_their_neighbours_are_refused() {
    use Violation::{BeginsInside, ContinuesNothing, Disagrees};
    for (held, arriving, violation) in [
        ((1, 0, 0, "B", ""), fragment(2, 0, 1, "B", ""), BeginsInside),
        ((1, 0, 0, "", ""), fragment(2, 0, 1, "BE", ""), BeginsInside),
        ((1, 0, 0, "B", ""), fragment(0, 0, 1, "B", ""), BeginsInside),
        ((1, 0, 0, "BE", ""), fragment(2, 0, 0, "", ""), ContinuesNothing),
        ((1, 0, 0, "E", ""), fragment(0, 0, 0, "BE", ""), ContinuesNothing),
        ((1, 0, 0, "B", ""), fragment(2, 1, 0, "", ""), Disagrees),
        ((1, 0, 0, "B", ""), fragment(2, 0, 1, "", ""), Disagrees),
        ((1, 0, 0, "B", ""), fragment(2, 0, 0, "U", ""), Disagrees),
        ((1, 0, 0, "E", ""), fragment(0, 0, 1, "B", ""), Disagrees),
        ((1, 0, 0, "B", ""), Fragment { ppid: 8, ..fragment(2, 0, 0, "E", "") }, Disagrees),
    ] {
        let mut reassembly = reassembly();
        push(&mut reassembly, &[held]);
        assert_eq!(reassembly.push(arriving), Err(violation), "{held:?} then {arriving:?}");
        assert_eq!(reassembly.held_chunks(), 1);
    }
}

#[test]
fn contradictions_are_found_after_the_messages_around_were_read() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "BE", "a"), (2, 0, 0, "UBE", "b")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[a]", "0[b]"]);
    assert_eq!(reassembly.push(fragment(1, 0, 1, "E", "")), Err(Violation::ContinuesNothing));
    assert_eq!(reassembly.push(fragment(1, 0, 1, "B", "")), Err(Violation::BeginsInside));
    push(&mut reassembly, &[(3, 0, 1, "B", "c")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[c"]);
    assert_eq!(reassembly.push(fragment(4, 1, 1, "E", "")), Err(Violation::Disagrees));
    assert_eq!(reassembly.push(fragment(4, 0, 1, "BE", "")), Err(Violation::BeginsInside));
}

#[test]
fn the_first_tsn_has_to_begin_a_message() {
    assert_eq!(reassembly().push(fragment(0, 0, 0, "E", "")), Err(Violation::ContinuesNothing));
}

#[test]
fn a_sequence_number_that_waits_already_is_refused() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 1, "BE", "b")]);
    assert_eq!(reassembly.push(fragment(3, 0, 1, "B", "")), Err(Violation::RepeatedSequence));
}

#[test]
fn fragments_without_a_place_are_refused() {
    let mut reassembly = reassembly();
    assert_eq!(reassembly.push(fragment(0, 4, 0, "BE", "")), Err(Violation::NoSuchStream));
    assert_eq!(reassembly.push(fragment(65_535, 0, 0, "BE", "")), Err(Violation::OutOfReach));
    push(&mut reassembly, &[(65_534, 0, 0, "BE", "far")]);
}

#[test]
fn forward_tsn_abandons_only_messages_with_skipped_tsns() {
    let mut reassembly = reassembly();
    // They lack TSN 1; none; TSN 4; only TSN 7, which is not skipped.
    push(&mut reassembly, &[(0, 0, 0, "B", "lost"), (2, 1, 0, "BE", "kept"), (3, 2, 0, "B", "lost")]);
    push(&mut reassembly, &[(5, 2, 0, "E", "lost"), (6, 3, 0, "B", "later")]);
    reassembly.forward(FIRST + 4);
    assert_eq!(reassembly.held_payload_bytes(), 9);
    reassembly.skip_ordered(0, 0);
    reassembly.skip_ordered(2, 0);
    push(&mut reassembly, &[(7, 3, 0, "E", "!"), (8, 0, 1, "BE", "a"), (9, 2, 1, "BE", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["1[kept]", "3[later!]", "0[a]", "2[c]"]);
    assert_eq!(reassembly.held_chunks(), 0);
}

#[test]
fn a_message_that_has_all_skipped_tsns_and_lacks_the_next_one_stays() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 0, "UB", "a"), (2, 0, 0, "U", "b")]);
    reassembly.forward(FIRST + 2);
    push(&mut reassembly, &[(3, 0, 0, "UE", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0[abc]"]);
}

#[test]
fn the_rest_of_an_abandoned_message_is_not_stored() {
    let mut reassembly = reassembly();
    reassembly.forward(FIRST + 1);
    push(&mut reassembly, &[(3, 0, 0, "", "rest"), (2, 0, 0, "", "rest"), (4, 0, 0, "E", "rest")]);
    assert_eq!(reassembly.held_chunks(), 0);
    assert_eq!(reassembly.push(fragment(5, 0, 0, "E", "")), Err(Violation::ContinuesNothing));
    push(&mut reassembly, &[(5, 1, 0, "BE", "new")]);
    assert_eq!(read_all(&mut reassembly, false), ["1[new]"]);
}

#[test]
fn skipping_a_sequence_number_frees_the_messages_behind_it() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 1, "BE", "b"), (2, 0, 2, "B", "lost"), (5, 0, 4, "BE", "e")]);
    reassembly.skip_ordered(0, 3);
    assert_eq!(read_all(&mut reassembly, true), ["0[b]", "0[e]"]);
    reassembly.skip_ordered(0, 3);
    push(&mut reassembly, &[(6, 0, 5, "BE", "f")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[f]"]);
}

#[test]
fn a_message_abandoned_while_it_is_read_gives_its_stream_back() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "B", "a"), (5, 0, 1, "BE", "b"), (6, 0, 0, "UBE", "u")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[u]", "0[a"]);
    push(&mut reassembly, &[(1, 0, 0, "", "unread")]);
    reassembly.forward(FIRST + 4);
    assert_eq!(read_all(&mut reassembly, true), ["0[b]"]);
    assert_eq!((reassembly.readable_bytes(), reassembly.held_chunks()), (0, 0));
}

#[test]
fn a_message_whose_end_has_come_is_not_abandoned_while_it_is_read() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "B", "a")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[a"]);
    push(&mut reassembly, &[(1, 0, 0, "E", "b")]);
    reassembly.forward(FIRST + 3);
    reassembly.skip_ordered(0, 1);
    push(&mut reassembly, &[(4, 0, 2, "BE", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0b]", "0[c]"]);
}

#[test]
fn forward_tsn_to_the_last_read_part_keeps_the_rest_of_the_message() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 0, "B", "a"), (2, 0, 0, "", "b")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[ab"]);
    reassembly.forward(FIRST + 2);
    push(&mut reassembly, &[(3, 0, 0, "E", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["0c]"]);
}

#[test]
fn forward_tsn_beyond_a_partially_read_message_ends_it_once() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(1, 0, 0, "UB", "a"), (2, 0, 0, "U", "b")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[ab"]);
    // These reuse the storage of the parts that were read.
    push(&mut reassembly, &[(6, 1, 0, "B", "c"), (8, 1, 0, "E", "e")]);
    reassembly.forward(FIRST + 4);
    push(&mut reassembly, &[(7, 1, 0, "", "d"), (9, 0, 0, "UBE", "f")]);
    assert_eq!(read_all(&mut reassembly, false), ["1[cde]", "0[f]"]);
    assert_eq!((reassembly.held_payload_bytes(), reassembly.held_chunks()), (0, 0));
}

#[test]
fn a_sequence_number_half_the_range_ahead_skips_nothing() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 0, 0, "B", "a")]);
    assert_eq!(read_all(&mut reassembly, true), ["0[a"]);
    reassembly.skip_ordered(0, 0x8000);
    push(&mut reassembly, &[(1, 0, 0, "E", "b")]);
    assert_eq!(read_all(&mut reassembly, false), ["0b]"]);
}

#[test]
fn storage_stops_growing_once_it_has_held_the_largest_backlog() {
    let mut reassembly = reassembly();
    let mut out = Vec::new();
    let mut slots = Vec::new();
    for round in 0..500_u64 {
        let base = round * 4;
        // Out of order, in fragments, and on two streams: two ordered messages and an unordered one.
        let ssn = round as u16 * 2;
        push(&mut reassembly, &[(base + 3, 1, 0, "UBE", "u"), (base + 2, 0, ssn + 1, "BE", "b")]);
        push(&mut reassembly, &[(base + 1, 0, ssn, "E", "a"), (base, 0, ssn, "B", "a")]);
        while reassembly.read(&mut out, false).is_some() {}
        out.clear();
        slots.push(reassembly.arena.slot_count());
    }
    assert_eq!(slots.first(), slots.last());
}

#[test]
fn reset_streams_deliver_number_zero_next_and_others_continue() {
    for all in [false, true] {
        let mut reassembly = Reassembly::new(FIRST, 4).starting_with(9);
        push(&mut reassembly, &[(0, 1, 9, "BE", "a"), (1, 2, 9, "BE", "b")]);
        let streams = if all { StreamSet::All } else { StreamSet::of([1, 3]) };
        assert!(reassembly.reset(&streams));
        push(&mut reassembly, &[(2, 1, 0, "BE", "c"), (3, 3, 0, "BE", "d")]);
        let next = if all { 0 } else { 10 };
        push(&mut reassembly, &[(4, 2, next, "BE", "e")]);
        let expected = ["1[a]", "2[b]", "1[c]", "3[d]", "2[e]"];
        assert_eq!(read_all(&mut reassembly, false), expected, "all: {all}");
    }
}

#[test]
fn reset_is_refused_while_a_message_of_a_stream_waits() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 1, 5, "BE", "a"), (2, 2, 0, "B", "b")]);
    for streams in [StreamSet::of([1]), StreamSet::of([0, 2]), StreamSet::All] {
        assert!(!reassembly.reset(&streams), "{streams:?}");
    }
    assert_eq!(reassembly.next_ssn(0), 0);
    assert!(reassembly.reset(&StreamSet::of([0, 3])));
}

#[test]
fn unread_part_of_a_message_is_read_after_a_reset() {
    let mut reassembly = reassembly();
    push(&mut reassembly, &[(0, 1, 0, "B", "a")]);
    assert_eq!(read_all(&mut reassembly, true), ["1[a"]);
    push(&mut reassembly, &[(1, 1, 0, "E", "b")]);
    assert!(reassembly.reset(&StreamSet::of([1])));
    push(&mut reassembly, &[(2, 1, 0, "BE", "c")]);
    assert_eq!(read_all(&mut reassembly, false), ["1b]", "1[c]"]);
}

#[test]
fn reset_of_an_unused_stream_allocates_no_streams() {
    let mut reassembly = Reassembly::new(FIRST, u16::MAX);
    assert!(reassembly.reset(&StreamSet::of([u16::MAX - 1])));
    assert_eq!(reassembly.streams.len(), 0);
}
