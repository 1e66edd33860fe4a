//! Links with a cost or limit while associations are established.

use std::time::Duration;

use anabranch_net::{
    Association, CloseReason, ConnectError, Endpoint, LinkName, LinkUse, PathCost, PathState,
};
use anabranch_tests::credentials::Mode;

use crate::loopback::rig::{
    any_port, expect, in_both_modes, ip, peer, protection, quick, send, server_in, within,
};

fn link(node: u8) -> LinkName {
    LinkName::Address(ip(node))
}

/// Returns a client at 127.0.0.11 and 12 with these uses.
fn client_with(mode: Mode, uses: &[(u8, LinkUse)]) -> Endpoint {
    let builder = Endpoint::builder(protection(mode.of_client())).local(any_port(11)).local(any_port(12));
    let uses = uses.iter().map(|(node, usage)| (link(*node), *usage)).collect();
    builder.link_uses(uses).bind().expect("a client")
}

async fn connected(mode: Mode, uses: &[(u8, LinkUse)]) -> (Endpoint, Endpoint, Association, Association) {
    let (client, server) = (client_with(mode, uses), server_in(mode, &[1, 2], quick()));
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), quick())), within(server.accept()));
    (client, server, ours.expect("connected"), theirs.expect("accepted"))
}

/// Waits until the active paths of an association have these costs, in the order of their own addresses.
async fn active_at(association: &Association, costs: &[PathCost]) {
    within(async {
        loop {
            let mut paths = association.paths().await;
            paths.retain(|path| path.state == PathState::Active);
            paths.sort_by_key(|path| path.local);
            if paths.iter().map(|path| path.cost).eq(costs.iter().copied()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

/// Waits until active paths from or to this address exist, or until none does.
async fn uses(association: &Association, node: u8, is_used: bool) {
    within(async {
        loop {
            let paths = association.paths().await;
            let mut active = paths.iter().filter(|path| path.state == PathState::Active);
            if active.any(|path| path.local == ip(node) || path.remote.ip() == ip(node)) == is_used {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn cost_of_a_link_is_that_of_its_paths_on_both_sides() {
    in_both_modes(async |mode| {
        let backup = LinkUse::At(PathCost::Backup);
        let (client, _server, ours, theirs) = connected(mode, &[(11, backup)]).await;
        for side in [&ours, &theirs] {
            active_at(side, &[PathCost::Backup, PathCost::Free]).await;
        }
        let first = ours.paths().await.into_iter().find(|path| path.primary).expect("a primary path");
        assert_eq!(first.local, ip(12), "the handshake uses the cheapest path");
        client.monitor().set_link_use(link(11), LinkUse::At(PathCost::Free));
        for side in [&ours, &theirs] {
            active_at(side, &[PathCost::Free, PathCost::Free]).await;
        }
    })
    .await;
}

#[tokio::test]
async fn backup_link_carries_no_data_of_either_side() {
    in_both_modes(async |mode| {
        let backup = LinkUse::At(PathCost::Backup);
        let (_client, _server, ours, theirs) = connected(mode, &[(12, backup)]).await;
        for side in [&ours, &theirs] {
            active_at(side, &[PathCost::Free, PathCost::Backup]).await;
        }
        let before: Vec<u64> = [&ours.paths().await, &theirs.paths().await]
            .map(|paths| {
                paths.iter().filter(|path| path.cost == PathCost::Backup).map(|path| path.sent_bytes).sum()
            })
            .to_vec();
        for _ in 0..50 {
            send(&ours, "there").await;
            expect(&theirs, "there").await;
            send(&theirs, "and back").await;
            expect(&ours, "and back").await;
        }
        let after: Vec<u64> = [&ours.paths().await, &theirs.paths().await]
            .map(|paths| {
                paths.iter().filter(|path| path.cost == PathCost::Backup).map(|path| path.sent_bytes).sum()
            })
            .to_vec();
        assert_eq!(after, before);
    })
    .await;
}

#[tokio::test]
async fn barred_link_carries_nothing_until_it_is_permitted() {
    in_both_modes(async |mode| {
        let free = LinkUse::At(PathCost::Free);
        let (client, _server, ours, theirs) = connected(mode, &[(12, free)]).await;
        for side in [&ours, &theirs] {
            active_at(side, &[PathCost::Free, PathCost::Free]).await;
        }
        let monitor = client.monitor();
        monitor.set_link_use(link(12), LinkUse::Barred);
        uses(&ours, 12, false).await;
        uses(&theirs, 12, false).await;
        // The user cannot lift a limit, and a link that the user has taken out stays out when the limit ends.
        within(monitor.restore_local(ip(12).into())).await.expect("it is there");
        send(&ours, "still over the other link").await;
        expect(&theirs, "still over the other link").await;
        uses(&ours, 12, false).await;
        within(monitor.withhold_local(ip(12).into())).await.expect("it is there");
        monitor.set_link_use(link(12), free);
        send(&ours, "over the other link").await;
        expect(&theirs, "over the other link").await;
        uses(&ours, 12, false).await;
        within(monitor.restore_local(ip(12).into())).await.expect("it is there");
        uses(&ours, 12, true).await;
        uses(&theirs, 12, true).await;
    })
    .await;
}

#[tokio::test]
async fn association_whose_links_are_all_barred_ends_and_a_new_one_is_refused() {
    let free = LinkUse::At(PathCost::Free);
    let (client, server, ours, _theirs) = connected(Mode::Plain, &[(11, free), (12, free)]).await;
    active_at(&ours, &[PathCost::Free, PathCost::Free]).await;
    let monitor = client.monitor();
    monitor.set_link_use(link(11), LinkUse::Barred);
    monitor.set_link_use(link(12), LinkUse::Barred);
    assert_eq!(within(ours.closed()).await, Err(CloseReason::Barred));
    let refused = within(client.connect(peer(&client, &server), quick())).await.expect_err("no link is left");
    assert!(matches!(&refused, ConnectError::Barred(locals) if locals.len() == 2), "{refused}");
    monitor.set_link_use(link(11), free);
    let again = within(client.connect(peer(&client, &server), quick())).await.expect("one link is left");
    active_at(&again, &[PathCost::Free]).await;
}

#[tokio::test]
async fn bytes_of_a_link_are_those_of_its_ip_packets_also_after_the_end() {
    let (client, _server, ours, theirs) = connected(Mode::Plain, &[(11, LinkUse::At(PathCost::Free))]).await;
    for _ in 0..20 {
        send(&ours, "some bytes").await;
        expect(&theirs, "some bytes").await;
    }
    let monitor = client.monitor();
    let report = within(monitor.report()).await.expect("it runs");
    let [counted] = &report.links[..] else { panic!("{:?}", report.links) };
    // The other link is not counted.
    let all = report.statistics.bytes_sent + 28 * report.statistics.datagrams_sent;
    assert!(counted.sent_bytes > 0 && counted.sent_bytes <= all, "{counted:?} of {all}");
    let _ = within(ours.shutdown()).await;
    drop((client, ours));
    let last = within(monitor.links()).await;
    assert!(last[0].sent_bytes >= counted.sent_bytes && last[0].received_bytes > 0, "{last:?}");
}
