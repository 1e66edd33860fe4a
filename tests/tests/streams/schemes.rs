//! Resets under every scheme on a network that loses, duplicates and reorders packets.

use anabranch_core::StreamDirection;
use anabranch_core::time::Span;
use anabranch_schemes::registry::PRESETS;
use anabranch_tests::duo::Duo;
use anabranch_tests::network::{Link, Side};

use crate::streams::rig::{arrive, connected, reset, resets, send, setup};

#[test]
fn every_scheme_completes_resets_on_a_bad_network() {
    for (seed, preset) in PRESETS.iter().enumerate() {
        let mut setup = setup(2, preset.name);
        setup.seed = seed as u64;
        let mut duo = connected(setup);
        for pair in 0..2 {
            let link = duo.link(pair);
            *link = Link { loss: 60, duplicate: 60, reorder: 200, ..*link };
        }
        for round in 0..3 {
            for side in Side::BOTH {
                send(&mut duo, side, 1, 8);
                send(&mut duo, side, 2, 8);
                if round < 2 {
                    reset(&mut duo, side, &[1]);
                }
            }
            let before = round + 1;
            let done = |duo: &Duo| {
                Side::BOTH.into_iter().all(|side| {
                    resets(duo, side, StreamDirection::Outgoing).len() >= before.min(2)
                        && resets(duo, side, StreamDirection::Incoming).len() >= before.min(2)
                })
            };
            assert!(duo.run_until(Span::from_secs(600), done), "{}: round {round}", preset.name);
        }
        arrive(&mut duo);
    }
}
