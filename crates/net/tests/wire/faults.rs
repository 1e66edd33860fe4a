//! Transfers that survive faults of their paths. `make wire` runs these.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_core::time::{Rate, Span};
use anabranch_net::{AbortReason, CloseReason, PathState, RecvError, SendOptions};
use anabranch_relay::Direction;
use anabranch_sim::LinkChange;

use crate::wire::rig::{Link, SEEN, Wire, at_share, in_both_modes, transfer, usual, within};

/// Round-trip times of 4 and 10 ms, and a loss of 0.1 %.
const FAST: [Link; 2] =
    [Link { mbps: 200, delay_ms: 2, loss: 0.001 }, Link { mbps: 100, delay_ms: 5, loss: 0.001 }];

/// Slow enough for a transfer to outlast two cuts.
const LASTING: [Link; 2] =
    [Link { mbps: 32, delay_ms: 2, loss: 0.001 }, Link { mbps: 24, delay_ms: 5, loss: 0.001 }];

const MIB: usize = 1 << 20;

/// Returns the bytes of a transfer: 64 MiB, or the number of MiB in the environment.
fn length() -> usize {
    let said = std::env::var("ANABRANCH_WIRE_MIB");
    said.map_or(64, |text| text.parse().expect("ANABRANCH_WIRE_MIB is a number of MiB")) * MIB
}

fn active(paths: &[anabranch_net::PathSnapshot]) -> usize {
    paths.iter().filter(|path| path.state == PathState::Active).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn transfer_over_two_different_paths_is_complete() {
    in_both_modes(async |mode| {
        let length = length();
        let wire = Wire::connected(mode, &FAST, usual()).await;
        transfer(&wire, length, async |_| {}).await;
        for (relay, path) in wire.relays.iter().zip(wire.ours.paths().await) {
            assert!(path.delivered_bytes > length as u64 / 10, "{path:?}");
            assert!(relay.totals(Direction::Forward).lost.packets > 0, "the link lost nothing");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn each_path_in_turn_may_be_cut() {
    in_both_modes(async |mode| {
        let length = length();
        let wire = Wire::connected(mode, &LASTING, usual()).await;
        wire.all_paths_active().await;
        transfer(&wire, length, async |received| {
            for (path, share) in [(0, 0.02), (1, 0.25)] {
                at_share(received, length, share).await;
                let relay = &wire.relays[path];
                relay.set_cut(true);
                let before = received.load(Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(5)).await;
                let during = received.load(Ordering::Relaxed) - before;
                assert!(during > 5 * MIB as u64, "{during} B in 5 s without path {path}");
                assert_eq!(active(&wire.ours.paths().await), 1, "a silent path is not noticed");
                relay.set_cut(false);
                let carried = || relay.totals(Direction::Forward).delivered.bytes;
                let until_now = carried();
                // After the second cut, too little data may be left for it.
                while path == 0 && carried() < until_now + MIB as u64 {
                    at_share(received, length, 0.0).await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn all_paths_at_once_may_be_cut_for_a_while() {
    in_both_modes(async |mode| {
        let length = length() / 4;
        let wire = Wire::connected(mode, &LASTING, usual()).await;
        wire.all_paths_active().await;
        transfer(&wire, length, async |received| {
            at_share(received, length, 0.3).await;
            wire.relays.iter().for_each(|relay| relay.set_cut(true));
            tokio::time::sleep(Duration::from_millis(500)).await;
            let before = received.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(received.load(Ordering::Relaxed), before, "a cut path carries data");
            wire.relays.iter().for_each(|relay| relay.set_cut(false));
        })
        .await;
        assert!(wire.ours.snapshot().await.statistics.timeouts > 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn the_udp_port_of_each_path_may_change_midway() {
    in_both_modes(async |mode| {
        let length = length();
        let wire = Wire::connected(mode, &FAST, usual()).await;
        wire.all_paths_active().await;
        let known = async || {
            let paths = wire.theirs.paths().await;
            let relayed = paths.iter().filter(|path| path.remote.ip() == SEEN);
            relayed.map(|path| path.remote.port()).collect::<Vec<_>>()
        };
        transfer(&wire, length, async |received| {
            for (path, share) in [(0, 0.1), (1, 0.4)] {
                at_share(received, length, share).await;
                let before = wire.relays[path].upstream_addrs()[0].port();
                assert!(known().await.contains(&before));
                wire.relays[path].rebind_upstream().expect("a port");
                let after = wire.relays[path].upstream_addrs()[0].port();
                while !known().await.contains(&after) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                at_share(received, length, share + 0.1).await;
            }
        })
        .await;
        let statistics = wire.ours.snapshot().await.statistics;
        assert!(statistics.heartbeat_timeouts == 0, "a HEARTBEAT timed out: {statistics:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn path_that_becomes_slow_and_lossy_does_not_stall_a_transfer() {
    in_both_modes(async |mode| {
        let length = length() / 2;
        let wire = Wire::connected(mode, &LASTING, usual()).await;
        wire.all_paths_active().await;
        transfer(&wire, length, async |received| {
            at_share(received, length, 0.1).await;
            for direction in Direction::BOTH {
                for change in [
                    LinkChange::Rate(Rate::from_bps(1_000_000)),
                    LinkChange::Delay(Span::from_millis(150)),
                    LinkChange::Loss(anabranch_sim::LossModel::Bernoulli(0.1)),
                ] {
                    wire.relays[1].change(direction, &change).expect("a valid change");
                }
            }
        })
        .await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "slow: make wire"]
async fn vanished_peer_is_reported_as_lost() {
    in_both_modes(async |mode| {
        let config = usual().peer_silence_limit(Duration::from_secs(4));
        let wire = Wire::connected(mode, &FAST, config).await;
        wire.all_paths_active().await;
        let received = AtomicU64::new(0);
        let sending = async {
            loop {
                if let Err(error) = wire.ours.send(vec![1; 30_000], SendOptions::default()).await {
                    return error;
                }
            }
        };
        let receiving = async {
            loop {
                match wire.theirs.recv().await {
                    Ok(Some(message)) => {
                        received.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
                    }
                    other => return other,
                }
            }
        };
        let cutting = async {
            at_share(&received, 64 * MIB, 0.1).await;
            wire.relays.iter().for_each(|relay| relay.set_cut(true));
        };
        let (error, theirs, ()) = within(async { tokio::join!(sending, receiving, cutting) }).await;
        let gone = CloseReason::Aborted(AbortReason::PeerUnreachable);
        assert_eq!(error, anabranch_net::SendError::Closed(gone));
        assert!(error.to_string().contains("the association ended early: "), "{error}");
        // The receiving endpoint has only HEARTBEATs to detect the failure.
        assert_eq!(theirs, Err(RecvError::Closed(gone)));
    })
    .await;
}
