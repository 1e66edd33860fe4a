//! Endpoints that crashed, and replacements that resume with stored keys.

use std::net::SocketAddr;

use anabranch_net::{
    Association, ConnectError, Endpoint, EndpointBuilder, Protection, RecvError, RestartKeys,
};
use anabranch_tests::credentials::{credentials, identity};
use tokio::runtime::{Builder, Runtime};

use crate::loopback::rig::{any_port, expect, peer, quick, send, within};

fn keeping(own: u8, peer: u8) -> Protection {
    Protection::dtls(credentials(own, &[peer])).with_restart()
}

/// Endpoint whose task can be stopped at any time.
struct Mortal {
    endpoint: Endpoint,
    runtime: Runtime,
}

impl Mortal {
    fn new(builder: EndpointBuilder) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let endpoint = {
            let _guard = runtime.enter();
            builder.bind().expect("an endpoint")
        };
        Mortal { endpoint, runtime }
    }

    /// Stops the task without sending packets. Returns its addresses and port.
    async fn crash(self) -> (Vec<SocketAddr>, u16) {
        let place = (self.endpoint.local_addresses().to_vec(), self.endpoint.sctp_port());
        self.runtime.shutdown_background();
        within(self.endpoint.monitor().gone()).await;
        place
    }
}

/// Returns a builder of an endpoint that replaces another one.
fn builder_at((locals, port): &(Vec<SocketAddr>, u16), protection: Protection) -> EndpointBuilder {
    let builder = Endpoint::builder(protection).sctp_port(*port);
    locals.iter().fold(builder, |builder, local| builder.local(*local))
}

/// Returns the bytes that an application stores.
async fn stored(association: &Association) -> Vec<u8> {
    within(association.restart_keys()).await.expect("both sides keep keys").to_bytes().to_vec()
}

/// Checks the association after a restart, and the identities known to both endpoints.
async fn continues(restarted: &Association, survivor: &Association) {
    assert_eq!(within(survivor.recv()).await, Err(RecvError::Restarted));
    send(restarted, "from the one that restarted").await;
    expect(survivor, "from the one that restarted").await;
    send(survivor, "from the other one").await;
    expect(restarted, "from the other one").await;
    // New keys exist.
    for association in [restarted, survivor] {
        assert_eq!(RestartKeys::from_bytes(&stored(association).await).map(|keys| keys.epoch()), Ok(3));
    }
}

#[tokio::test]
async fn crashed_client_resumes_with_stored_keys() {
    let server = Endpoint::builder(keeping(2, 1)).local(any_port(1)).local(any_port(2)).accept(quick());
    let server = server.bind().expect("a server");
    let client = Mortal::new(Endpoint::builder(keeping(1, 2)).local(any_port(11)).local(any_port(12)));
    let to = peer(&client.endpoint, &server);
    let (ours, theirs) = tokio::join!(within(client.endpoint.connect(to, quick())), within(server.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let bytes = stored(&ours).await;
    send(&ours, "before").await;
    expect(&theirs, "before").await;
    let place = client.crash().await;
    send(&theirs, "lost").await;
    let again = builder_at(&place, keeping(1, 2)).bind().expect("the same addresses");
    let keys = RestartKeys::from_bytes(&bytes).expect("as they were stored");
    let ours = within(again.restart(peer(&again, &server), quick(), keys)).await.expect("restarted");
    continues(&ours, &theirs).await;
    assert_eq!((ours.peer_identity(), theirs.peer_identity()), (Some(identity(2)), Some(identity(1))));
    let counters = (within(again.statistics()).await.keying, within(server.statistics()).await.keying);
    assert_eq!((counters.0.restarts, counters.1.restarts), (1, 1));
}

#[tokio::test]
async fn crashed_server_resumes_with_stored_keys() {
    let server = Mortal::new(Endpoint::builder(keeping(2, 1)).local(any_port(1)).accept(quick()));
    let client = Endpoint::builder(keeping(1, 2)).local(any_port(11)).bind().expect("a client");
    let to = peer(&client, &server.endpoint);
    let (ours, theirs) = tokio::join!(within(client.connect(to, quick())), within(server.endpoint.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let bytes = stored(&theirs).await;
    let place = server.crash().await;
    let again = builder_at(&place, keeping(2, 1)).accept(quick()).bind().expect("the same addresses");
    let keys = RestartKeys::from_bytes(&bytes).expect("as they were stored");
    let theirs = within(again.restart(peer(&again, &client), quick(), keys)).await.expect("restarted");
    continues(&theirs, &ours).await;
    assert_eq!((ours.peer_identity(), theirs.peer_identity()), (Some(identity(2)), Some(identity(1))));
    // Other peers are accepted as before.
    let other = Endpoint::builder(keeping(1, 2)).local(any_port(12)).bind().expect("a client");
    let to = peer(&other, &again);
    let (one, accepted) = tokio::join!(within(other.connect(to, quick())), within(again.accept()));
    assert!(one.is_ok() && accepted.is_ok());
}

#[tokio::test]
async fn host_without_restart_keys_refuses_restarts_and_returns_none() {
    let server = Endpoint::builder(Protection::dtls(credentials(2, &[1]))).local(any_port(1)).accept(quick());
    let server = server.bind().expect("a server");
    let elsewhere =
        Endpoint::builder(keeping(2, 1)).local(any_port(2)).accept(quick()).bind().expect("a server");
    let client = Endpoint::builder(keeping(1, 2)).local(any_port(11)).bind().expect("a client");
    let (one, two) = (peer(&client, &server), peer(&client, &elsewhere));
    let (ours, theirs) = tokio::join!(within(client.connect(one, quick())), within(server.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let with_keys = within(client.connect(two, quick())).await.expect("connected");
    let keys = RestartKeys::from_bytes(&stored(&with_keys).await).expect("as they were stored");
    ours.abort();
    assert!(within(ours.restart_keys()).await.is_none() && within(theirs.restart_keys()).await.is_none());
    let refused = within(client.restart(peer(&client, &server), quick(), keys)).await;
    let why = "the peer keeps no keys for a restart; open a new association";
    assert_eq!(refused.err(), Some(ConnectError::NotProtected(why)));
}

#[tokio::test]
async fn association_without_dtls_has_no_restart_keys() {
    let insecure = Endpoint::builder(Protection::Insecure).local(any_port(11)).bind().expect("a client");
    let server =
        Endpoint::builder(keeping(2, 1)).local(any_port(2)).accept(quick()).bind().expect("a server");
    let client = Endpoint::builder(keeping(1, 2)).local(any_port(12)).bind().expect("a client");
    let with_keys = within(client.connect(peer(&client, &server), quick())).await.expect("connected");
    let keys = RestartKeys::from_bytes(&stored(&with_keys).await).expect("as they were stored");
    let refused = within(insecure.restart(peer(&insecure, &server), quick(), keys)).await;
    assert!(matches!(refused, Err(ConnectError::Refused(_))), "{refused:?}");
}
