//! Every scheme releases its bindings, copies and moves of abandoned chunks.

use anabranch_core::Reliability;
use anabranch_core::time::Span;
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use anabranch_tests::capricious;
use anabranch_tests::duo::{Duo, Setup, config};
use anabranch_tests::network::Side;

use crate::partial::rig::{A, lifetime, retransmissions, send_on, statistics};

fn schemes() -> impl Iterator<Item = String> {
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    let components = COMPONENTS.iter().map(|component| component.example(PRESETS));
    presets.chain(components).chain([capricious::NAME.to_owned()])
}

fn limit(number: u32) -> Reliability {
    match number % 5 {
        0 => Reliability::Full,
        1 => retransmissions(0),
        2 => retransmissions(1),
        3 => lifetime(u64::from(number % 7) * 40),
        _ => Reliability::Priority(number % 3),
    }
}

/// Returns a pair with three paths of different delays that lose and reorder packets, one of which fails for a second.
fn duo(scheme: &str, profile: &str) -> Duo {
    let side = config(scheme, profile);
    let setup = Setup { sides: [side.clone(), side], ..Setup::new(3, "cmt", profile) };
    let mut duo = Duo::connected(setup.with(|config| config.send_buffer_bytes = Some(60_000)));
    for (pair, (delay_ms, loss)) in [(10, 80), (40, 30), (90, 120)].into_iter().enumerate() {
        let link = duo.link(pair);
        (link.delay, link.loss, link.reorder) = (Span::from_millis(delay_ms), loss, 30);
    }
    duo
}

#[test]
fn abandoned_messages_block_no_data_under_any_scheme() {
    for profile in ["rfc9260", "ns2", "net"] {
        for scheme in schemes() {
            let mut duo = duo(&scheme, profile);
            for number in 0..300 {
                let size = 200 + (number as usize * 613) % 6_000;
                let _ = duo.send_limited(Side::A, size, (number % 4) as u16, number % 3 == 0, limit(number));
                duo.run(Span::from_millis(15));
                if number == 100 || number == 160 {
                    duo.cut(1, number == 100);
                }
            }
            let quiet =
                |duo: &Duo| duo.all_arrived(Side::A) && duo.nodes[A].association().buffered_bytes() == 0;
            assert!(
                duo.run_until(Span::from_secs(300), quiet),
                "{scheme}, {profile}: {:?}",
                statistics(&duo, A)
            );
            duo.run(Span::from_secs(70));
            assert_eq!(duo.flows[A].passed_without_a_word(), 0, "{scheme}, {profile}");
            let association = duo.nodes[A].association();
            for path in association.paths() {
                let held = path.in_flight + path.bound + path.held + path.lost_unsent;
                assert!(held.is_zero(), "{scheme}, {profile}: {path:?}");
            }
            let counted = association.statistics();
            assert!(counted.abandoned.messages() > 5, "{scheme}, {profile}: {counted:?}");
            assert!(
                counted.abandoned.chunks > 0 && counted.forward_tsns_sent > 0,
                "{scheme}, {profile}: {counted:?}"
            );
            // Later data is delivered as usual.
            duo.network.heal();
            for stream in 0..4 {
                send_on(&mut duo, stream, 3_000, Reliability::Full);
            }
            assert!(duo.run_until(Span::from_secs(60), quiet), "{scheme}, {profile}: the rest");
        }
    }
}
