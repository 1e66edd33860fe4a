//! Profile `net`: its announcement to the peer, and the DATA that requests an immediate SACK.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Link, Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::Chunk;

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;

/// Returns a connected pair with a profile for each side, which keeps all packets.
fn duo(pairs: usize, [a, b]: [&str; 2], change: impl FnOnce(Setup) -> Setup) -> Duo {
    let side_b = Setup::new(pairs, "cmt", b).sides[B].clone();
    let setup = Setup::new(pairs, "cmt", a).with_side(Side::B, |config| *config = side_b);
    let mut duo = Duo::new(change(setup));
    duo.connect();
    duo.run(Span::from_secs(1));
    duo.kept = Some(Vec::new());
    duo
}

fn sack_flags(duo: &Duo) -> Vec<u8> {
    let from_b = duo.kept.iter().flatten().filter(|(_, packet)| packet.from == Side::B);
    from_b.filter_map(|(_, packet)| sight::sack(packet)).map(|sack| sack.flags).collect()
}

fn has_immediate_bit(packet: &Packet) -> bool {
    sight::holds(packet, |chunk| matches!(chunk, Chunk::Data(data) if data.flags().immediate))
}

/// Returns, for each packet with DATA from A, `true` if it requested an immediate SACK.
fn immediate_bits(duo: &Duo) -> Vec<bool> {
    let data = |packet: &Packet| packet.from == Side::A && !sight::tsns(packet).is_empty();
    duo.kept
        .iter()
        .flatten()
        .filter(|(_, packet)| data(packet))
        .map(|(_, packet)| has_immediate_bit(packet))
        .collect()
}

#[test]
fn sack_flags_count_packets_only_if_both_announced_it() {
    for (profiles, foreign) in
        [(["net", "net"], false), (["net", "rfc9260"], true), (["rfc9260", "net"], true)]
    {
        let mut duo = duo(1, profiles, |setup| setup);
        duo.send_all(Side::A, 1_400, 20);
        duo.run(Span::from_secs(2));
        assert!(duo.all_arrived(Side::A));
        // A side that takes the meaning for granted continues to write them; the other one does not.
        let writes = profiles[B] == "rfc9260" || !foreign;
        let flags = sack_flags(&duo);
        assert!(
            !flags.is_empty() && flags.iter().all(|&count| (count > 0) == writes),
            "{profiles:?}: {flags:?}"
        );
        for (side, profile) in [(A, profiles[A]), (B, profiles[B])] {
            let facts = duo.nodes[side].association().association_facts();
            assert_eq!(facts.foreign_sack_flags, foreign && profile == "net", "{profiles:?} {side}");
        }
    }
}

#[test]
fn other_peer_gets_a_sack_for_every_packet_beyond_a_gap() {
    for (profile, expected) in [("net", 1), ("rfc9260", 2)] {
        let mut duo = duo(1, [profile, "net"], |setup| setup.with(|config| config.initial_tsn = Some(1_000)));
        duo.send_all(Side::A, 1_400, 1);
        duo.run(Span::from_secs(1));
        duo.kept = Some(Vec::new());
        duo.network.set_filter(|packet| !sight::tsns(packet).contains(&1_001));
        duo.send_all(Side::A, 1_400, 3);
        duo.run(Span::from_millis(30));
        assert_eq!(sack_flags(&duo).len(), expected, "from {profile}");
    }
}

#[test]
fn the_last_packet_asks_for_its_acknowledgement_and_the_others_do_not() {
    for (profile, expected) in [("net", true), ("rfc9260", false)] {
        let mut duo = duo(1, [profile; 2], |setup| setup);
        duo.send_all(Side::A, 1_400, 7);
        duo.run(Span::from_secs(1));
        let immediate_bits = immediate_bits(&duo);
        assert_eq!(immediate_bits.last(), Some(&expected), "{profile}");
        assert!(
            immediate_bits[1..immediate_bits.len() - 1].iter().filter(|&&bit| bit).count() <= 1,
            "{profile}: {immediate_bits:?}"
        );
    }
}

#[test]
fn retransmission_after_timeout_sets_the_i_bit() {
    let mut duo = duo(1, ["net"; 2], |setup| setup.with(|config| config.initial_tsn = Some(1_000)));
    duo.send_all(Side::A, 1_400, 4);
    duo.cut(0, true);
    duo.settle();
    duo.run(Span::from_millis(100));
    duo.cut(0, false);
    duo.kept = Some(Vec::new());
    duo.run(Span::from_millis(1_500));
    assert!(duo.all_arrived(Side::A));
    assert_eq!(immediate_bits(&duo).first(), Some(&true));
}

//= docs/rfc9260.txt#section-6.2
//= type=test
//# An implementation MUST NOT allow the maximum delay (protocol parameter 'SACK.Delay') to be configured to be more than
//# 500 ms.
#[test]
fn a_sack_is_delayed_no_longer_than_the_receivers_profile_allows() {
    for (profile, sacks) in [("net", 1), ("rfc9260", 0)] {
        let mut duo = duo(1, ["rfc9260", profile], |setup| setup);
        duo.send_all(Side::A, 1_400, 1);
        duo.run(Span::from_secs(1));
        duo.kept = Some(Vec::new());
        duo.send_all(Side::A, 1_400, 1);
        duo.run(Span::from_millis(25 + 60));
        assert_eq!(sack_flags(&duo).len(), sacks, "{profile}");
    }
}

#[test]
fn association_with_silence_limit_ends_by_time_not_by_errors() {
    let ended = |limit: Option<Span>| {
        let mut duo = duo(2, ["net"; 2], |setup| {
            setup.with(|config| {
                config.peer_silence_limit = limit;
                config.profile.association_max_retrans = 8;
            })
        });
        duo.cut(0, true);
        duo.cut(1, true);
        duo.send_all(Side::A, 1_400, 4);
        let begun = duo.now;
        duo.run_until(Span::from_secs(300), |duo| duo.is_over(Side::A));
        let unreachable = AssociationEvent::Aborted(AbortReason::PeerUnreachable);
        assert_eq!(duo.nodes[A].ended, Some(unreachable));
        duo.now.since(begun).as_secs_f64()
    };
    let counted = ended(None);
    assert!(counted < 10.0, "{counted}");
    let timed = ended(Some(Span::from_secs(60)));
    // The time-out occurs at the first error after it, and errors are at most RTO.Max apart.
    assert!((59.0..75.0).contains(&timed), "{timed}");
}

#[test]
fn paths_that_are_all_away_for_less_than_the_limit_carry_on() {
    let mut duo = duo(2, ["net"; 2], |setup| {
        setup.with(|config| config.peer_silence_limit = Some(Span::from_secs(60)))
    });
    duo.cut(0, true);
    duo.cut(1, true);
    duo.send_all(Side::A, 1_400, 40);
    duo.run(Span::from_secs(45));
    duo.cut(0, false);
    duo.cut(1, false);
    duo.run(Span::from_secs(20));
    assert!(duo.all_arrived(Side::A));
}

/// Returns a setup with two paths of 10 ms.
fn short(scheme: &str) -> Setup {
    Setup { link: Link::good(Span::from_millis(10)), ..Setup::new(2, scheme, "net") }
}

/// Runs two paths with data, of which the second becomes silent. Returns the time until it was out of service, and the time of the
/// last new data on it.
fn silenced(scheme: &str) -> (Option<Span>, Span) {
    let mut duo = Duo::connected(short(scheme));
    duo.run(Span::from_secs(1));
    duo.send_all(Side::A, 1_400, 4_000);
    duo.run(Span::from_millis(405));
    assert!(!duo.nodes[A].association().paths()[1].in_flight.is_zero());
    duo.cut(1, true);
    let cut = duo.now;
    duo.kept = Some(Vec::new());
    let out = duo.run_until(Span::from_millis(260), |duo| !duo.nodes[A].association().paths()[1].is_active());
    let out = out.then(|| duo.now.since(cut));
    let second = duo.setup.address(Side::A, 1);
    duo.run(Span::from_secs(1));
    let mut sent = duo.kept.iter().flatten().rev();
    let last = sent.find(|(_, p)| p.source == second && !sight::tsns(p).is_empty());
    (out, last.map_or(Span::ZERO, |(at, _)| at.since(cut)))
}

#[test]
fn a_path_that_falls_silent_gets_no_more_data_after_a_few_round_trips() {
    let (out, last) = silenced("bonded");
    // 3 SRTT + 4 RTTVAR + 50 ms after the latest answer.
    let out = out.expect("within 260 ms");
    assert!(out >= Span::from_millis(100) && last <= out, "{out:?} {last:?}");
    // If the rule is disabled, the detection takes T3, at least 300 ms.
    assert_eq!(silenced("cmt-pf").0, None);
}

#[test]
fn silence_keeps_the_only_path_and_an_answer_restores_a_window() {
    let mut duo = Duo::connected(Setup::new(1, "bonded", "net"));
    duo.send_all(Side::A, 1_400, 20);
    duo.run(Span::from_millis(60));
    duo.cut(0, true);
    duo.send_all(Side::A, 1_400, 20);
    duo.run(Span::from_millis(280));
    assert!(duo.nodes[A].association().paths()[0].is_active());

    let mut duo = Duo::connected(short("bonded"));
    duo.run(Span::from_secs(1));
    duo.send_all(Side::A, 1_400, 4_000);
    duo.run(Span::from_millis(405));
    let window = duo.nodes[A].association().paths()[1].cwnd;
    // Packets in flight are delayed for a short time.
    duo.link(1).delay = Span::from_millis(120);
    assert!(duo.run_until(Span::from_millis(280), |duo| !duo.nodes[A].association().paths()[1].is_active()));
    // Acknowledgements of retransmitted chunks prove no path (RFC 9260 section 6.3.1 C5), but that of the HEARTBEAT does.
    assert!(duo.run_until(Span::from_millis(300), |duo| duo.nodes[A].association().paths()[1].is_active()));
    // The path was idle for an RTO, which halves its window (RFC 9260 section 7.2.1).
    assert!(duo.nodes[A].association().paths()[1].cwnd >= window.over(2));
    assert_eq!(duo.nodes[A].association().statistics().timeouts, 0);
}
