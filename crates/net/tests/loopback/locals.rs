//! Local addresses come and go while associations are up.

use std::time::Duration;

use anabranch_net::LocalError;

use crate::rig::{Duo, any_port, ip, quick, within};

#[tokio::test]
async fn an_association_that_does_not_follow_keeps_its_paths() {
    let mut config = quick();
    config.address_changes.follow = false;
    let duo = Duo::connected(1, config).await;
    within(duo.client.add_local(any_port(32))).await.expect("it is free");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(duo.ours.paths().await.len(), 1);
    within(duo.ours.shutdown()).await.expect("in good order");
}

#[tokio::test]
async fn addresses_that_cannot_be_added_or_removed_are_refused_with_a_reason() {
    let duo = Duo::connected(1, quick()).await;
    let own = duo.client.locals().await[0];
    let twice = duo.client.add_local(own).await.expect_err("it is there");
    assert!(twice.to_string().contains("given twice"), "{twice}");
    let every = duo.client.add_local(([0, 0, 0, 0], 0).into()).await.expect_err("it stands for all");
    assert!(every.to_string().contains("every address"), "{every}");
    let foreign = duo.client.add_local(([192, 0, 2, 1], 0).into()).await.expect_err("it is not ours");
    assert!(matches!(foreign, LocalError::Bind(_)), "{foreign}");
    let unknown = duo.client.remove_local(ip(99)).await.expect_err("it is not there");
    assert!(unknown.to_string().contains("127.0.0.99 is none of the host's addresses"), "{unknown}");
    within(duo.ours.shutdown()).await.expect("in good order");
}
