//! Declarations of policies save questions and change no packet: what a policy declares to read, and for how long its answer holds.

use anabranch_core::AssociationConfig;
use anabranch_core::time::Span;
use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use anabranch_tests::capricious;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;

/// Returns a hash over all packets of a transfer in both directions over two unequal paths that lose, reorder and duplicate.
fn packets(scheme: &str, profile: &str, ignores_declarations: bool) -> u64 {
    let setup = Setup::new(2, scheme, profile).with(|config: &mut AssociationConfig| {
        config.recv_buffer_bytes = 40_000;
        config.ignores_declarations = ignores_declarations;
    });
    let mut duo = Duo::new(setup);
    for (pair, (delay, loss)) in [(20, 20), (90, 5)].into_iter().enumerate() {
        let link = duo.link(pair);
        (link.delay, link.loss, link.duplicate, link.reorder) = (Span::from_millis(delay), loss, 5, 5);
    }
    duo.connect();
    duo.run(Span::from_secs(3));
    for round in 0..6 {
        for _ in 0..30 {
            // A message that finds no room is left out in both runs.
            let _ = duo.send(Side::A, 1_800, 0, false);
            let _ = duo.send(Side::B, 300, round % 2, true);
        }
        duo.settle();
        duo.run(Span::from_millis(700));
    }
    duo.run(Span::from_secs(5));
    duo.hash
}

fn check(scheme: &str, profile: &str) {
    let [with, without] = [false, true].map(|ignored| packets(scheme, profile, ignored));
    assert_eq!(with, without, "{scheme} under {profile} sends other packets by its declarations");
}

#[test]
fn every_preset_sends_the_same_packets_without_its_declarations() {
    for preset in PRESETS {
        ["rfc9260", "ns2", "net"].into_iter().for_each(|profile| check(preset.name, profile));
    }
}

#[test]
fn every_component_sends_the_same_packets_without_its_declarations() {
    for component in COMPONENTS {
        let base = ["cmt", "bonded", "sctp"]
            .into_iter()
            .find(|name| PRESETS.iter().any(|preset| preset.name == *name && component.fits(preset)));
        check(&format!("{}+{}", base.expect("it fits one of them"), component.name), "rfc9260");
    }
}

#[test]
fn random_policies_send_the_same_packets_without_declarations() {
    check(capricious::NAME, "rfc9260");
}

#[test]
fn lossy_paths_make_the_hash_depend_on_the_scheme() {
    assert_ne!(packets("cmt", "rfc9260", false), packets("cmt+round-robin", "rfc9260", false));
}
