//! Local addresses added and removed while associations are established.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_net::{Association, LocalError, PathState};

use crate::loopback::rig::{Duo, any_port, expect, in_both_modes, ip, quick, send, within};

const PIECE_BYTES: usize = 16 << 10;

/// Waits until an association has this number of active paths.
async fn active_paths(association: &Association, count: usize) {
    within(async {
        loop {
            let paths = association.paths().await;
            if paths.iter().filter(|path| path.state == PathState::Active).count() == count
                && paths.len() == count
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_new_local_address_gets_a_path_and_an_old_one_loses_it() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 1, quick()).await;
        let before = duo.client.locals().await;
        let added = within(duo.client.add_local(any_port(31))).await.expect("it is free");
        assert_eq!(duo.client.locals().await, [&before[..], &[added]].concat());
        active_paths(&duo.ours, 2).await;
        within(duo.client.remove_local(before[0].ip())).await.expect("it is there");
        active_paths(&duo.ours, 1).await;
        assert_eq!(duo.ours.paths().await[0].local, added.ip());
        send(&duo.ours, "over the new address").await;
        expect(&duo.theirs, "over the new address").await;
        send(&duo.theirs, "and back").await;
        expect(&duo.ours, "and back").await;
        assert!(
            duo.client.statistics().await.datagrams_sent >= 3,
            "what a closed socket did is still counted"
        );
        within(duo.ours.shutdown()).await.expect("gracefully");
    })
    .await;
}

#[tokio::test]
async fn association_that_ignores_address_changes_keeps_its_paths() {
    let config = quick().with_core(|core| core.address_changes.follow = false);
    let duo = Duo::connected(1, config).await;
    within(duo.client.add_local(any_port(32))).await.expect("it is free");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(duo.ours.paths().await.len(), 1);
    within(duo.ours.shutdown()).await.expect("gracefully");
}

#[tokio::test]
async fn addresses_that_cannot_be_added_or_removed_are_refused_with_a_reason() {
    let duo = Duo::connected(1, quick()).await;
    let own = duo.client.locals().await[0];
    let twice = duo.client.add_local(own).await.expect_err("it is there");
    assert!(twice.to_string().contains("given twice"), "{twice}");
    let every = duo.client.add_local(([0, 0, 0, 0], 0).into()).await.expect_err("it is the wildcard address");
    assert!(every.to_string().contains("wildcard address"), "{every}");
    let foreign = duo.client.add_local(([192, 0, 2, 1], 0).into()).await.expect_err("it is not ours");
    assert!(matches!(foreign, LocalError::Bind(_)), "{foreign}");
    let unknown = duo.client.remove_local(ip(99)).await.expect_err("it is not there");
    assert!(unknown.to_string().contains("127.0.0.99 is not among the endpoint's addresses"), "{unknown}");
    within(duo.ours.shutdown()).await.expect("gracefully");
}

#[tokio::test]
async fn all_addresses_of_both_hosts_are_replaced_while_data_flows() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        let (ours, theirs) = (duo.ours.clone(), duo.theirs.clone());
        // Data flows until all paths are replaced, even on a busy machine.
        let replaced = Arc::new(AtomicBool::new(false));
        let is_replaced = Arc::clone(&replaced);
        let sender = tokio::spawn(async move {
            let mut sent = 0_u32;
            while !is_replaced.load(Ordering::Relaxed) {
                let options = anabranch_net::SendOptions::default();
                ours.send(vec![sent as u8; PIECE_BYTES], options).await.expect("accepted");
                sent += 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            ours.shutdown().await.expect("gracefully");
            sent
        });
        let receiver = tokio::spawn(async move {
            let mut received = 0_u32;
            while let Some(message) = theirs.recv().await.expect("no error") {
                assert!(message.payload[..] == [received as u8; PIECE_BYTES], "piece {received}");
                received += 1;
            }
            received
        });
        for (endpoint, association, first) in [(&duo.client, &duo.ours, 41), (&duo.server, &duo.theirs, 45)] {
            let old = endpoint.locals().await;
            for node in [first, first + 1] {
                within(endpoint.add_local(any_port(node))).await.expect("it is free");
            }
            active_paths(association, 4).await;
            for local in &old {
                within(endpoint.remove_local(local.ip())).await.expect("it is there");
            }
            let now: Vec<_> = endpoint.locals().await.iter().map(|local| local.ip()).collect();
            assert_eq!(now, [ip(first), ip(first + 1)]);
        }
        replaced.store(true, Ordering::Relaxed);
        let sent = within(sender).await.expect("no panic");
        assert_eq!(within(receiver).await.expect("no panic"), sent);
        assert_eq!(duo.server.statistics().await.discards.of(anabranch_core::Discard::Unauthenticated), 0);
    })
    .await;
}

#[tokio::test]
async fn the_only_address_may_be_lost_before_another_one_comes() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 1, quick()).await;
        send(&duo.ours, "before").await;
        expect(&duo.theirs, "before").await;
        let old = duo.client.locals().await[0];
        within(duo.client.remove_local(old.ip())).await.expect("it is there");
        send(&duo.ours, "meanwhile").await;
        send(&duo.theirs, "to nowhere").await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        within(duo.client.add_local(any_port(51))).await.expect("it is free");
        expect(&duo.theirs, "meanwhile").await;
        expect(&duo.ours, "to nowhere").await;
        active_paths(&duo.ours, 1).await;
        within(duo.ours.shutdown()).await.expect("gracefully");
    })
    .await;
}
