//! Check that no traffic bypasses a relay.

use std::time::Duration;

use anabranch_relay::Direction;

use crate::wire::rig::{Link, Wire, in_both_modes, transfer, usual, within};
use anabranch_tests::credentials::Mode;

const LINKS: [Link; 2] =
    [Link { mbps: 50, delay_ms: 2, loss: 0.0 }, Link { mbps: 20, delay_ms: 5, loss: 0.0 }];

/// Enough data to use both paths.
const LENGTH: usize = 2 << 20;

/// Runs a transfer in which each end counts its sent and received bytes, and the relays count theirs.
async fn counted(mode: Mode) -> Wire {
    // Less than any socket's buffer, so that the system drops nothing.
    let config = usual().with_core(|core| core.recv_buffer_bytes = 64 << 10);
    let wire = Wire::connected(mode, &LINKS, config).await;
    wire.all_paths_active().await;
    transfer(&wire, LENGTH, async |_| {}).await;
    for path in wire.ours.paths().await {
        assert!(path.delivered_bytes > LENGTH as u64 / 20, "{path:?}");
    }
    wire
}

/// Returns the counters once no datagram is in transit.
async fn settled(wire: &Wire) -> [(u64, u64); 4] {
    let counters = async || {
        let (client, server) = (wire.client.statistics().await, wire.server.statistics().await);
        [
            (client.datagrams_sent, client.bytes_sent),
            (server.datagrams_received, server.bytes_received),
            (server.datagrams_sent, server.bytes_sent),
            (client.datagrams_received, client.bytes_received),
        ]
    };
    within(async {
        let mut before = counters().await;
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let on_the_way = |direction| wire.relays.iter().any(|r| r.totals(direction).on_the_way > 0);
            let now = counters().await;
            if now == before && !Direction::BOTH.into_iter().any(on_the_way) {
                return now;
            }
            before = now;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_that_the_opening_side_sends_or_receives_passes_the_relays() {
    in_both_modes(async |mode| {
        let wire = counted(mode).await;
        let [sent, arrived, _, received] = settled(&wire).await;
        let [forward, reverse] = [Direction::Forward, Direction::Reverse].map(|way| wire.relayed(way));
        assert_eq!([forward, reverse], [[sent, arrived], [reverse[0], received]]);
        assert!(forward[0].1 > LENGTH as u64);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_byte_that_the_accepting_side_sends_passes_the_relays() {
    in_both_modes(async |mode| {
        let wire = counted(mode).await;
        let [_, _, sent, received] = settled(&wire).await;
        assert_eq!(wire.relayed(Direction::Reverse), [sent, received]);
    })
    .await;
}
