//! Search for the path MTU on real sockets.

use std::time::Duration;

use anabranch_net::SendOptions;
use bytes::Bytes;

use crate::loopback::rig::{Duo, quick, within};

/// Returns the known MTU of the first path once `enough` accepts it.
async fn found(duo: &Duo, enough: impl Fn(usize) -> bool) -> usize {
    within(async {
        loop {
            let mtu = duo.ours.paths().await[0].mtu_bytes;
            if enough(mtu) {
                return mtu;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

#[tokio::test]
async fn loopback_carries_more_than_a_path_begins_with() {
    let config = quick();
    let duo = Duo::connected(1, config.clone()).await;
    let most = config.core().mtu_search_up_to_bytes.expect("it searches");
    assert!(config.core().mtu_bytes < most);
    // Lengths of SCTP packets are multiples of four.
    assert!(found(&duo, |mtu| mtu > most - 4).await <= most);
}

#[tokio::test]
async fn packet_larger_than_ip_allows_does_not_block_the_path_mtu() {
    let config = quick().with_core(|core| {
        // More than the maximum IP packet.
        core.mtu_search_up_to_bytes = Some(65_600);
        // Unanswered probes, three per size, would exceed the time of this test.
        core.profile.rto_min = anabranch_core::time::Span::from_secs(60);
        core.profile.rto_max = core.profile.rto_min;
    });
    let duo = Duo::connected(1, config).await;
    let mtu = found(&duo, |mtu| mtu > 65_000).await;
    assert!(mtu <= 65_535, "{mtu}");
    // Messages in packets of that size arrive.
    let message = Bytes::from(vec![7; 200_000]);
    within(duo.ours.send(message.clone(), SendOptions::default())).await.expect("accepted");
    let received = within(duo.theirs.recv()).await.expect("no error").expect("a message");
    assert!(received.payload == message);
}
