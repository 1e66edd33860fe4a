//! Two endpoints that connect to each other at the same time (RFC 9260 section 5.2.1).

use anabranch_net::{Credentials, Endpoint};
use anabranch_tests::credentials::Mode;

use super::rig::{any_port, expect, in_both_modes, peer, protection, quick, send, within};

/// Returns an endpoint that accepts associations, with the key of a side.
fn endpoint(credentials: Option<Credentials>, nodes: [u8; 2]) -> Endpoint {
    let builder = Endpoint::builder(protection(credentials)).accept(quick());
    let builder = nodes.into_iter().fold(builder, |builder, node| builder.local(any_port(node)));
    builder.bind().expect("an endpoint")
}

#[tokio::test]
async fn endpoints_that_connect_at_once_get_one_association() {
    in_both_modes(async |mode: Mode| {
        let (one, other) = (endpoint(mode.of_client(), [1, 2]), endpoint(mode.of_server(), [3, 4]));
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
