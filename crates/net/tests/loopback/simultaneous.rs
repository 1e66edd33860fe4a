//! Two endpoints that connect to each other at the same time (RFC 9260 section 5.2.1).

use anabranch_tests::credentials::Mode;

use super::rig::{expect, in_both_modes, peer, quick, send, server_in, within};

#[tokio::test]
async fn endpoints_that_connect_at_once_get_one_association() {
    in_both_modes(async |mode: Mode| {
        let (one, other) = (server_in(mode, &[1, 2], quick()), server_in(mode, &[3, 4], quick()));
        let (ours, theirs) = tokio::join!(
            within(one.connect(peer(&one, &other), quick())),
            within(other.connect(peer(&other, &one), quick()))
        );
        let (ours, theirs) = (ours.expect("connected"), theirs.expect("connected"));
        send(&ours, "there").await;
        expect(&theirs, "there").await;
        send(&theirs, "back").await;
        expect(&ours, "back").await;
        assert_eq!(ours.peer_identity().is_some(), mode != Mode::Plain);
    })
    .await;
}
