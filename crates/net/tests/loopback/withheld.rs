//! Local addresses that are taken out of use and back while associations are established.

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_net::{Association, LocalEnd, LocalError, PathState};
use anabranch_tests::credentials::Mode;

use crate::loopback::rig::{Duo, client_in, expect, in_both_modes, ip, peer, quick, send, server_in, within};

/// Waits until the active paths of an association are those from these local addresses.
async fn active_from(association: &Association, locals: &[LocalEnd]) {
    within(async {
        loop {
            let paths = association.paths().await;
            let mut active: Vec<_> =
                paths.iter().filter(|path| path.state == PathState::Active).map(|path| path.local).collect();
            active.sort_unstable();
            if active.iter().copied().eq(locals.iter().map(|end| end.address)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Waits until the active paths of an association lead to these nodes.
async fn reaches(association: &Association, nodes: &[u8]) {
    let expected: BTreeSet<_> = nodes.iter().map(|node| ip(*node)).collect();
    within(async {
        loop {
            let paths = association.paths().await;
            let active = paths.iter().filter(|path| path.state == PathState::Active);
            if active.map(|path| path.remote.ip()).collect::<BTreeSet<_>>() == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

fn end(node: u8) -> LocalEnd {
    LocalEnd::from(ip(node))
}

#[tokio::test]
async fn withheld_address_carries_nothing_and_works_again_when_restored() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        active_from(&duo.ours, &[end(11), end(12)]).await;
        active_from(&duo.theirs, &[end(1), end(2)]).await;
        let monitor = duo.client.monitor();
        within(monitor.withhold_local(end(11))).await.expect("another path works");
        assert_eq!(within(monitor.report()).await.expect("it runs").withheld, [end(11)]);
        active_from(&duo.ours, &[end(12)]).await;
        active_from(&duo.theirs, &[end(2)]).await;
        send(&duo.ours, "over the other path").await;
        expect(&duo.theirs, "over the other path").await;
        send(&duo.theirs, "and back").await;
        expect(&duo.ours, "and back").await;
        within(monitor.restore_local(end(11))).await.expect("it is there");
        active_from(&duo.ours, &[end(11), end(12)]).await;
        active_from(&duo.theirs, &[end(1), end(2)]).await;
        let pairs: Vec<_> =
            duo.ours.paths().await.iter().map(|path| (path.local, path.remote.ip())).collect();
        assert!(pairs.contains(&(ip(11), ip(1))), "{pairs:?}");
        within(duo.ours.shutdown()).await.expect("gracefully");
    })
    .await;
}

#[tokio::test]
async fn last_usable_path_stays() {
    let duo = Duo::connected(2, quick()).await;
    active_from(&duo.ours, &[end(11), end(12)]).await;
    let monitor = duo.client.monitor();
    within(monitor.withhold_local(end(11))).await.expect("another path works");
    let refused = within(monitor.withhold_local(end(12))).await.expect_err("it is the last one");
    assert!(matches!(refused, LocalError::LastUsable(local) if local == ip(12)), "{refused}");
    let unknown = within(monitor.withhold_local(end(99))).await.expect_err("it is not there");
    assert!(matches!(unknown, LocalError::Unknown { .. }), "{unknown}");
    send(&duo.ours, "still").await;
    expect(&duo.theirs, "still").await;
}

#[tokio::test]
async fn later_association_leaves_a_withheld_address_out() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        active_from(&duo.ours, &[end(11), end(12)]).await;
        let monitor = duo.client.monitor();
        within(monitor.withhold_local(end(11))).await.expect("another path works");
        let other = server_in(mode, &[3, 4], quick());
        let connected = within(duo.client.connect(peer(&duo.client, &other), quick())).await;
        let later = connected.expect("connected");
        active_from(&later, &[end(12)]).await;
        within(monitor.restore_local(end(11))).await.expect("it is there");
        active_from(&later, &[end(11), end(12)]).await;
    })
    .await;
}

#[tokio::test]
async fn accepting_endpoint_takes_an_address_out_for_all_associations_and_back() {
    in_both_modes(async |mode| {
        let duo = Duo::connected_in(mode, 2, quick()).await;
        let earlier = client_in(mode, &[21, 22]);
        let earlier = within(earlier.connect(peer(&earlier, &duo.server), quick())).await.expect("connected");
        let accepted = within(duo.server.accept()).await.expect("accepted");
        for association in [&duo.theirs, &accepted] {
            active_from(association, &[end(1), end(2)]).await;
        }
        let monitor = duo.server.monitor();
        within(monitor.withhold_local(end(1))).await.expect("another address works");
        let later = client_in(mode, &[31, 32]);
        // The packets of peers that know the address already are accepted for a second.
        tokio::time::sleep(Duration::from_millis(1100)).await;
        let later = within(later.connect(peer(&later, &duo.server), quick())).await.expect("connected");
        for association in [&duo.ours, &earlier, &later] {
            reaches(association, &[2]).await;
        }
        send(&duo.ours, "over the other address").await;
        expect(&duo.theirs, "over the other address").await;
        let refused = within(monitor.withhold_local(end(2))).await.expect_err("it is the last one");
        assert!(matches!(refused, LocalError::LastUsable(local) if local == ip(2)), "{refused}");
        within(monitor.restore_local(end(1))).await.expect("it is there");
        for association in [&duo.ours, &earlier, &later] {
            reaches(association, &[1, 2]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn accepting_endpoint_without_associations_keeps_its_last_address() {
    let server = server_in(Mode::Plain, &[1], quick());
    let refused = within(server.monitor().withhold_local(end(1))).await.expect_err("it is the only one");
    assert!(matches!(refused, LocalError::LastUsable(local) if local == ip(1)), "{refused}");
    let client = client_in(Mode::Plain, &[11]);
    within(client.connect(peer(&client, &server), quick())).await.expect("connected");
}
