//! Time of the first keys: the key management's first message is sent with the COOKIE ECHO.

use anabranch_core::AssociationConfig;
use anabranch_core::profile::Profile;
use anabranch_core::protection::{KEY_MANAGEMENT_PPID, KeyManagementRoles};
use anabranch_core::time::{Span, Time};
use anabranch_keying::{KeyingError, KeyingEvent};
use anabranch_tests::duo::Setup;
use anabranch_tests::managed::{Managed, protecting};
use anabranch_tests::network::{Packet, Side};
use anabranch_wire::{Cause, Chunk, PacketView};

use crate::protection::rig::{guarded, inject, plain};

const INIT: u8 = 1;
const COOKIE_ECHO: u8 = 10;
const ROUND_TRIP: Span = Span::from_millis(50);

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn unprotected(pairs: usize) -> Setup {
    Setup::new(pairs, "cmt", "rfc9260")
}

/// Returns the time from which A may send, and that of the arrival of its message, with an outage in this span.
fn first_data(setup: Setup, outage: Option<(Span, Span)>) -> (Span, Span) {
    let protected = setup.sides[0].protection.is_some();
    let mut managed = Managed::new(setup);
    managed.duo.connect();
    if let Some((from, to)) = outage {
        managed.run(from);
        managed.duo.cut(0, true);
        managed.run(to - from);
        managed.duo.cut(0, false);
    }
    let ready = |managed: &Managed| match protected {
        true => managed.reported(Side::A).contains(&KeyingEvent::Established),
        false => managed.association_is_up(Side::A),
    };
    assert!(managed.run_until(Span::from_secs(60), ready), "no keys");
    let opened = managed.duo.now;
    managed.send_all(Side::A, 100, 1);
    managed.arrives();
    (opened.since(Time::ZERO), managed.duo.now.since(Time::ZERO))
}

fn a_round_trip_later((opened, arrived): (Span, Span)) -> (Span, Span) {
    (opened + ROUND_TRIP, arrived + ROUND_TRIP)
}

/// Returns the types of a packet's chunks, and `true` if all DATA is the key management's.
fn chunks(packet: &Packet) -> (Vec<u8>, bool) {
    let view = PacketView::parse(&packet.bytes).expect("a packet");
    let chunks = view.chunks().map(|chunk| chunk.expect("a chunk"));
    let theirs = |chunk: &Chunk<'_>| match chunk {
        Chunk::Data(data) => data.ppid() == KEY_MANAGEMENT_PPID,
        _ => true,
    };
    let (kinds, own): (Vec<u8>, Vec<bool>) =
        chunks.map(|raw| (raw.kind().0, theirs(&raw.decode().expect("a chunk")))).unzip();
    (kinds, own.into_iter().all(|own| own))
}

/// Returns the number of COOKIE ECHOs that a side has sent.
fn echoes(managed: &Managed) -> usize {
    let kept = managed.duo.kept.iter().flatten().map(|(_, packet)| packet);
    kept.filter(|packet| packet.from == Side::A && packet.bytes[12] == COOKIE_ECHO).count()
}

#[test]
fn protected_data_leaves_one_round_trip_later_than_plain_data() {
    assert_eq!(first_data(protecting(1), None), a_round_trip_later(first_data(unprotected(1), None)));
    assert_eq!(first_data(protecting(3), None), a_round_trip_later(first_data(unprotected(3), None)));
}

#[test]
fn lost_handshake_packets_delay_protected_data_as_plain_data() {
    // The outages hit the INIT, the INIT ACK, the COOKIE ECHO with its bundle, and all of them for some time.
    for (from, to) in [(0, 10), (20, 30), (45, 55), (0, 4_000)] {
        let outage = Some((ms(from), ms(to)));
        let [protected, plain] = [protecting(1), unprotected(1)].map(|mut setup| {
            // Packets that were sent can no longer be lost.
            setup.link.cut = from == 0;
            first_data(setup, outage)
        });
        assert_eq!(protected, a_round_trip_later(plain), "{from} to {to} ms");
    }
}

#[test]
fn a_lost_answer_to_the_cookie_costs_a_retransmission() {
    let (opened, _) = first_data(protecting(1), Some((ms(70), ms(80))));
    assert!(opened < Span::from_millis(2_500), "{opened:?}");
}

/// Returns the time at which both sides have keys if three packets of both sides are lost.
fn keys_without(lost: [usize; 3]) -> Option<Span> {
    let mut managed = Managed::new(protecting(1));
    let mut nth = 0;
    managed.duo.network.set_filter(move |_: &Packet| {
        nth += 1;
        !lost.contains(&(nth - 1))
    });
    managed.duo.connect();
    let both = |managed: &Managed| {
        Side::BOTH.iter().all(|side| managed.reported(*side).contains(&KeyingEvent::Established))
    };
    managed.run_until(Span::from_secs(25), both).then(|| managed.duo.now.since(Time::ZERO))
}

#[test]
fn keys_are_agreed_soon_if_any_three_packets_are_lost() {
    // The server's messages count as arrived after the client's last message: the SACKs for them are unprotected, and are ignored
    // from then on.
    for first in 2..12 {
        for second in first + 1..13 {
            for third in second + 1..14 {
                let lost = [first, second, third];
                let opened = keys_without(lost);
                assert!(opened.is_some_and(|at| at < Span::from_secs(9)), "{lost:?}: {opened:?}");
            }
        }
    }
}

#[test]
fn before_establishment_packets_need_a_cookie_and_carry_no_data() {
    let mut managed = Managed::new(protecting(2));
    managed.duo.kept = Some(Vec::new());
    managed.duo.connect();
    assert!(managed.run_until(Span::from_secs(1), |managed| managed.association_is_up(Side::A)));
    let kept = managed.duo.kept.iter().flatten().filter(|(at, _)| *at < managed.duo.now);
    let early: Vec<_> = kept.map(|(_, packet)| packet).collect();
    let mine: Vec<_> = early.iter().filter(|packet| packet.from == Side::A).map(|p| chunks(p)).collect();
    let data = mine.iter().filter(|(kinds, _)| kinds.contains(&0)).count();
    assert!(data >= 2, "a ClientHello takes two packets: {mine:?}");
    for (kinds, key_management) in mine {
        assert!([INIT, COOKIE_ECHO].contains(&kinds[0]) && key_management, "{kinds:?}");
    }
}

#[test]
fn message_that_does_not_fit_beside_the_cookie_waits_for_cookie_ack() {
    let setup = protecting(1).with(|config| {
        config.mtu_bytes = 576;
        config.profile = Profile::rfc9260();
    });
    let mut managed = Managed::new(setup);
    managed.duo.kept = Some(Vec::new());
    let managed = managed.established();
    assert_eq!(echoes(&managed), 3);
}

#[test]
fn a_guarded_host_answers_before_the_address_has_answered_a_heartbeat() {
    let opened = |setup: Setup| {
        let mut managed = guarded(setup);
        managed.duo.connect();
        assert!(managed.run_until(Span::from_secs(60), |managed| managed.association_is_up(Side::A)));
        let up = managed.duo.now;
        assert!(managed.run_until(Span::from_secs(60), Managed::is_established));
        let took = managed.duo.now.since(up);
        managed.data_flows();
        took
    };
    assert_eq!(opened(protecting(1)), ROUND_TRIP);
    for seed in 1..20 {
        let mut setup = protecting(1);
        setup.seed = seed;
        (setup.link.loss, setup.link.duplicate, setup.link.reorder) = (150, 100, 100);
        assert!(opened(setup) < Span::from_secs(30), "seed {seed}");
    }
}

/// Returns a pair in which A has sent its COOKIE ECHOs in vain, and receives a stale cookie error.
fn with_stale_cookie(setup: Setup) -> Managed {
    let mut managed = Managed::new(setup);
    managed.duo.kept = Some(Vec::new());
    managed.duo.connect();
    managed.run(ms(45));
    managed.duo.cut(0, true);
    managed.run(ms(10));
    managed.duo.cut(0, false);
    let stale = plain(&managed.duo, Side::B, |writer| writer.error([Cause::StaleCookie { staleness_us: 1 }]));
    inject(&mut managed.duo, Side::B, stale);
    managed
}

#[test]
fn a_stale_cookie_takes_the_first_message_into_the_next_attempt() {
    let mut managed = with_stale_cookie(protecting(1));
    assert_eq!(echoes(&managed), 2);
    managed.duo.kept = Some(Vec::new());
    let begun = managed.duo.now;
    let mut managed = managed.established_from_here();
    assert_eq!(managed.duo.now.since(begun), ROUND_TRIP.times(3));
    assert_eq!(echoes(&managed), 2);
    managed.data_flows();
}

#[test]
fn an_attempt_that_gives_the_sides_other_roles_ends_and_says_so() {
    let mut ends = [0, 0];
    for seed in 1..9 {
        let either = |config: &mut AssociationConfig| {
            config.protection.as_mut().expect("it is protected").roles = KeyManagementRoles::Either;
        };
        let mut setup = protecting(1).with(either);
        setup.seed = seed;
        let mut managed = with_stale_cookie(setup);
        let over = |managed: &Managed| managed.is_established() || managed.ended(Side::A).is_some();
        assert!(managed.run_until(Span::from_secs(10), over), "seed {seed}");
        let failure = managed.keying[0].failure();
        ends[usize::from(failure.is_some())] += 1;
        match failure {
            None => managed.data_flows(),
            Some(why) => assert_eq!(why, KeyingError::RolesChanged, "seed {seed}"),
        }
    }
    assert!(ends[0] > 0 && ends[1] > 0, "{ends:?}");
}

#[test]
fn paths_do_not_wait_for_heartbeats_sent_before_keys() {
    let setup =
        protecting(3).with(|config| (config.mtu_bytes, config.mtu_search_up_to_bytes) = (1_200, Some(1_500)));
    let mut managed = Managed::new(setup).established();
    managed.run(ROUND_TRIP.times(8));
    for side in Side::BOTH {
        let association = managed.association(side);
        for facts in association.paths() {
            let found = (facts.is_active(), association.path_mtu_bytes(facts.id));
            assert_eq!(found, (true, Some(1_500)), "{side:?} {:?}", facts.id);
        }
    }
}
