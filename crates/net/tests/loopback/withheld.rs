//! Local addresses that are taken out of use and back while associations are established.

use std::time::Duration;

use anabranch_net::{Association, LocalEnd, LocalError, PathState};

use crate::loopback::rig::{Duo, expect, in_both_modes, ip, peer, quick, send, server_in, within};

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
    let accepting = within(duo.server.monitor().withhold_local(end(1))).await.expect_err("it accepts");
    assert!(matches!(accepting, LocalError::Accepts), "{accepting}");
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
