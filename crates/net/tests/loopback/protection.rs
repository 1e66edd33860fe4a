//! Protected associations between endpoints.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_core::AssociationId;
use anabranch_core::protection::{KeyManagementMethod, KeyManagementRoles, ProtectionMode};
use anabranch_core::time::{Span, Time};
use anabranch_core::trace::TraceEvent;
use anabranch_keying::KeyLog;
use anabranch_net::{
    CloseReason, Config, ConnectError, Credentials, DEFAULT_MTU, Datagram, DatagramOutcome, DtlsProtection,
    Endpoint, ExportError, KeyChange, KeyPolicy, Observer, PathAddress, Peer, Protection, RecvError,
    SendOptions, Started,
};
use anabranch_tests::credentials::{credentials, identity};
use anabranch_tests::middle::{Fate, Middle};
use anabranch_tests::network::Side;
use anabranch_tests::rewriting::{Change, InitField, Rewrite, Rewriter};
use anabranch_tests::seen_keys::SeenKeys;
use anabranch_wire::PacketView;

use crate::loopback::rig::{any_port, expect, ip, next, peer, quick, send, within};

const DATA: u8 = 0;
const COOKIE_ECHO: u8 = 10;

fn dtls(credentials: Credentials, policy: KeyPolicy) -> Protection {
    Protection::Dtls(DtlsProtection { credentials, policy, restart: false })
}

fn endpoint(nodes: &[u8], accept: Option<Config>, protection: Protection) -> Endpoint {
    let builder =
        nodes.iter().fold(Endpoint::builder(protection), |builder, node| builder.local(any_port(*node)));
    match accept {
        Some(config) => builder.accept(config).bind().expect("a server"),
        None => builder.bind().expect("a client"),
    }
}

/// Returns the configuration of an endpoint that negotiates the key management, but does not run it.
fn without_key_management(roles: KeyManagementRoles) -> Config {
    let (mode, methods) = (ProtectionMode::Strict, vec![KeyManagementMethod::TLS]);
    let wanted = anabranch_core::protection::Protection { mode, roles, methods, restart: false };
    quick().with_core(|core| core.protection = Some(wanted))
}

/// Returns a client with key 1 and a server with key 2 that accept each other.
fn endpoints(paths: u8, policy: &KeyPolicy) -> (Endpoint, Endpoint) {
    let servers: Vec<u8> = (1..=paths).collect();
    let clients: Vec<u8> = (11..=10 + paths).collect();
    let server = endpoint(&servers, Some(quick()), dtls(credentials(2, &[1]), policy.clone()));
    (endpoint(&clients, None, dtls(credentials(1, &[2]), policy.clone())), server)
}

#[tokio::test]
async fn both_sides_authenticate_and_exchange_messages() {
    let (client, server) = endpoints(2, &KeyPolicy::default());
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), quick())), within(server.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    assert_eq!(ours.peer_identity(), Some(identity(2)));
    assert_eq!(theirs.peer_identity(), Some(identity(1)));
    let export = |context: &'static [u8]| {
        let (ours, theirs) = (&ours, &theirs);
        async move {
            let label = b"EXPERIMENTAL test";
            let one =
                within(ours.export_keying_material(label, Some(context), 32)).await.expect("there are keys");
            assert_eq!(
                within(theirs.export_keying_material(label, Some(context), 32)).await,
                Ok(one.clone())
            );
            one
        }
    };
    assert_ne!(export(b"a").await, export(b"b").await);
    let reserved = SendOptions { ppid: 4242, ..SendOptions::default() };
    assert!(ours.send("not for users", reserved).await.is_err());
    send(&ours, "from the client").await;
    expect(&theirs, "from the client").await;
    send(&theirs, "from the server").await;
    expect(&ours, "from the server").await;
    let (one, other) = tokio::join!(within(ours.shutdown()), within(theirs.recv()));
    assert_eq!((one, other), (Ok(()), Ok(None)));
    let counters = within(server.statistics()).await.keying;
    assert_eq!((counters.established, counters.failed, counters.pending), (1, 0, 0));
}

/// Chunk types in each sent packet.
#[derive(Clone, Debug, Default)]
struct Sent(Arc<Mutex<Vec<Vec<u8>>>>);

impl Observer for Sent {
    fn datagram(&mut self, _: Time, datagram: &Datagram<'_>) {
        if datagram.outcome == DatagramOutcome::Sent {
            let packet = PacketView::parse(datagram.payload).expect("a packet");
            let kinds = packet.chunks().map(|chunk| chunk.expect("a chunk").kind().0).collect();
            self.0.lock().expect("not poisoned").push(kinds);
        }
    }
}

#[tokio::test]
async fn the_first_message_of_the_key_management_leaves_with_the_cookie() {
    let sent = Sent::default();
    let policy = KeyPolicy::default();
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[1]), policy.clone()));
    let client = Endpoint::builder(dtls(credentials(1, &[2]), policy)).local(any_port(11));
    let client = client.observer(sent.clone()).bind().expect("a client");
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), quick())), within(server.accept()));
    assert!(ours.is_ok() && theirs.is_ok());
    let sent = sent.0.lock().expect("not poisoned");
    let cookies: Vec<_> = sent.iter().filter(|kinds| kinds[0] == COOKIE_ECHO).collect();
    assert!(cookies.len() >= 2 && cookies.iter().all(|kinds| kinds[1..].contains(&DATA)), "{sent:?}");
}

#[tokio::test]
async fn association_without_dtls_has_no_identity_or_exporter() {
    let (client, server) =
        (endpoint(&[11], None, Protection::Insecure), endpoint(&[1], Some(quick()), Protection::Insecure));
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), quick())), within(server.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    assert_eq!((ours.peer_identity(), theirs.peer_identity()), (None, None));
    let exported = within(ours.export_keying_material(b"EXPERIMENTAL test", None, 32)).await;
    assert_eq!(exported, Err(ExportError::NotEstablished));
    within(ours.send("4242 is anybody's", SendOptions { ppid: 4242, ..SendOptions::default() }))
        .await
        .expect("sent");
    assert_eq!(next(&theirs).await.ppid, 4242);
}

#[tokio::test]
async fn keys_change_under_data_on_two_paths() {
    let policy = KeyPolicy { rekey_records: 300, peer_burst: 10_000, ..KeyPolicy::default() };
    let (client, server) = endpoints(2, &policy);
    // The request for new keys waits behind earlier data.
    let config = quick().send_buffer_bytes(100_000..=100_000);
    // Larger packets would give too few records.
    let config = config.mtu_bytes(DEFAULT_MTU..=1500);
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), config)), within(server.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    let total = 400_u32;
    let sending = async {
        for number in 0..total {
            let mut payload = vec![number as u8; 20_000];
            payload[..4].copy_from_slice(&number.to_be_bytes());
            ours.send(payload, SendOptions::default()).await.expect("accepted");
        }
        ours.shutdown().await
    };
    let receiving = async {
        let mut count = 0_u32;
        while let Some(message) = theirs.recv().await.expect("no error") {
            assert_eq!((message.payload.len(), &message.payload[..4]), (20_000, &count.to_be_bytes()[..]));
            assert!(message.payload[4..].iter().all(|byte| *byte == count as u8));
            count += 1;
        }
        count
    };
    let (sent, received) = within(async { tokio::join!(sending, receiving) }).await;
    assert_eq!((sent, received), (Ok(()), total));
    let rekeys = within(client.statistics()).await.keying.rekeys;
    assert!(rekeys >= 3, "{rekeys} changes of keys");
}

#[tokio::test]
async fn server_with_another_identity_is_refused() {
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[1]), KeyPolicy::default()));
    let client = endpoint(&[11], None, dtls(credentials(1, &[9]), KeyPolicy::default()));
    let refused = within(client.connect(peer(&client, &server), quick())).await;
    let error = refused.expect_err("the server has another key");
    assert!(matches!(error, ConnectError::NotAccepted(_)) && !error.is_unproven(), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the association could not be protected: the peer's identity is not accepted here: TLS alert access_denied (49)"
    );
    // It must not be accepted either.
    within(async {
        while server.statistics().await.keying.failed == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    server.stop_accepting();
    assert!(within(server.accept()).await.is_err());
}

#[tokio::test]
async fn refused_client_learns_of_the_refusal() {
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[9]), KeyPolicy::default()));
    let client = endpoint(&[11], None, dtls(credentials(1, &[2]), KeyPolicy::default()));
    let refused = within(client.connect(peer(&client, &server), quick())).await;
    let Err(error @ ConnectError::Denied { .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(
        error.to_string(),
        "the peer does not accept this side's identity: TLS alert access_denied (49)"
    );
    let ConnectError::Denied { by, .. } = error else { unreachable!("it was matched") };
    assert_eq!(by.as_deref(), Some(&identity(2)), "the peer has proved its identity");
    assert!(!error.is_transient());
}

/// A server negotiates protection, and its application ends each association before there are keys.
#[tokio::test]
async fn abort_in_the_clear_is_no_verdict_on_the_identity() {
    let config = without_key_management(KeyManagementRoles::Server);
    let server = endpoint(&[1], Some(config), Protection::Insecure);
    let client = endpoint(&[11], None, dtls(credentials(1, &[2]), KeyPolicy::default()));
    let end = async { within(server.accept()).await.expect("accepted").abort() };
    let ((), refused) = tokio::join!(end, within(client.connect(peer(&client, &server), quick())));
    let Err(error @ ConnectError::KeysInterrupted(_)) = refused else { panic!("{refused:?}") };
    assert!(error.is_transient() && error.to_string().contains("possibly"), "{error}");
}

/// The client installs its first key before it is rejected. The alert counts, not the ABORT after it.
#[tokio::test]
async fn refusal_of_the_client_is_the_alert_and_not_the_abort() {
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[9]), KeyPolicy::default()));
    for _ in 0..10 {
        let client = endpoint(&[11], None, dtls(credentials(1, &[2]), KeyPolicy::default()));
        let refused = within(client.connect(peer(&client, &server), quick())).await;
        assert!(matches!(refused, Err(ConnectError::Denied { .. })), "{refused:?}");
    }
}

#[tokio::test]
async fn mismatch_of_protection_is_reported_on_both_sides() {
    let secure = || dtls(credentials(1, &[2]), KeyPolicy::default());
    for (here, there, why) in [
        (secure(), Protection::Insecure, "the peer does not protect its packets"),
        (Protection::Insecure, secure(), "the peer requires protection"),
    ] {
        let server = endpoint(&[1], Some(quick()), there);
        let client = endpoint(&[11], None, here);
        let refused = within(client.connect(peer(&client, &server), quick())).await;
        let Err(error @ ConnectError::NotProtected(text)) = refused else { panic!("{refused:?}") };
        assert!(text.starts_with(why), "{text}");
        assert!(error.is_unproven() && !error.is_transient(), "anyone on the path can answer so");
    }
}

#[tokio::test]
async fn a_peer_can_be_reached_with_other_credentials_than_the_hosts() {
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[3]), KeyPolicy::default()));
    let client = endpoint(&[11], None, Protection::Insecure);
    let to = peer(&client, &server).protection(Protection::dtls(credentials(3, &[2])));
    let (ours, theirs) = tokio::join!(within(client.connect(to, quick())), within(server.accept()));
    assert_eq!(ours.expect("connected").peer_identity(), Some(identity(2)));
    assert_eq!(theirs.expect("accepted").peer_identity(), Some(identity(3)));
}

/// Returns an endpoint whose handshakes never end: it negotiates the DTLS chunk and then stays silent.
fn mute(node: u8) -> (Endpoint, Config) {
    let config = without_key_management(KeyManagementRoles::Client);
    (endpoint(&[node], None, Protection::Insecure), config)
}

#[tokio::test]
async fn stalled_handshake_takes_no_accept_slot_and_is_abandoned() {
    let policy = KeyPolicy { handshake_timeout: Span::from_millis(500), ..KeyPolicy::default() };
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[1]), policy.clone()));
    let (stranger, config) = mute(12);
    let stalled = within(stranger.connect(peer(&stranger, &server), config)).await.expect("it is up");
    assert_eq!(within(server.statistics()).await.keying.pending, 1);
    let client = endpoint(&[11], None, dtls(credentials(1, &[2]), policy));
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), quick())), within(server.accept()));
    assert_eq!(theirs.expect("accepted").peer_identity(), Some(identity(1)));
    drop(ours);
    let ended = within(stalled.recv()).await;
    assert!(matches!(ended, Err(RecvError::Closed(CloseReason::Aborted(_)))), "{ended:?}");
    assert_eq!(within(server.statistics()).await.keying.failed, 1);
}

#[tokio::test]
async fn oldest_handshakes_are_abandoned_above_the_limit() {
    let builder =
        Endpoint::builder(Protection::dtls(credentials(2, &[1]))).local(any_port(1)).accept(quick());
    let server = builder.max_handshakes(4).bind().expect("a server");
    let mut strangers = Vec::new();
    for node in 20..30 {
        let (stranger, config) = mute(node);
        let to = peer(&stranger, &server);
        let association = within(stranger.connect(to, config)).await.expect("it is up");
        strangers.push((stranger, association));
    }
    let statistics = within(server.statistics()).await;
    assert_eq!((statistics.keying.pending, statistics.keying.failed), (4, 6));
    // Each address has one, so the oldest ones are evicted.
    for (_, association) in &strangers[..6] {
        assert!(within(association.closed()).await.is_err());
    }
    assert!(strangers[6..].iter().all(|(_, association)| !association.is_closed()));
}

#[tokio::test]
async fn abandoned_attempt_leaves_no_state() {
    // The server never answers the key management, because it does not know of it.
    let config = without_key_management(KeyManagementRoles::Server);
    let server = endpoint(&[1], Some(config), Protection::Insecure);
    let client = endpoint(&[11], None, dtls(credentials(1, &[2]), KeyPolicy::default()));
    let attempt = client.connect(peer(&client, &server), quick());
    assert!(tokio::time::timeout(Duration::from_millis(300), attempt).await.is_err());
    within(async {
        while client.statistics().await.associations > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(within(client.statistics()).await.keying.failed, 1);
}

/// Log of all reports of an endpoint.
struct Scribe(Arc<Mutex<String>>);

impl Scribe {
    fn write(&self, shown: &dyn Debug) {
        let mut text = self.0.lock().expect("not poisoned");
        text.push_str(&format!("{shown:?}\n"));
    }
}

impl Observer for Scribe {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn started(&mut self, started: &Started) {
        self.write(started);
    }

    fn datagram(&mut self, _: Time, datagram: &Datagram<'_>) {
        self.write(datagram);
    }

    fn decided(&mut self, _: AssociationId, event: &TraceEvent) {
        self.write(event);
    }

    fn association(&mut self, _: Time, _: AssociationId, association: &anabranch_core::Association) {
        self.write(association);
    }

    fn keys(&mut self, _: Time, _: AssociationId, change: &KeyChange) {
        self.write(change);
    }

    fn closed(&mut self, _: Time, _: AssociationId, outcome: &Result<(), CloseReason>) {
        self.write(outcome);
    }
}

#[tokio::test]
async fn debug_output_of_a_host_has_no_keys() {
    let policy = KeyPolicy { rekey_records: 60, peer_burst: 1_000, ..KeyPolicy::default() };
    let (seen, text) = (Arc::new(SeenKeys::default()), Arc::new(Mutex::new(String::new())));
    let logged = credentials(2, &[1]).with_key_log(Arc::clone(&seen) as Arc<dyn KeyLog>);
    let protection = dtls(logged, policy.clone());
    let builder = Endpoint::builder(protection.clone()).local(any_port(1)).accept(quick());
    let server = builder.observer(Scribe(Arc::clone(&text))).bind().expect("a server");
    let client = endpoint(&[11], None, dtls(credentials(1, &[2]), policy));
    let (ours, theirs) =
        tokio::join!(within(client.connect(peer(&client, &server), quick())), within(server.accept()));
    let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
    for _ in 0..100 {
        send(&ours, "seen by an observer").await;
        expect(&theirs, "seen by an observer").await;
    }
    let printed = format!("{server:?} {ours:?} {theirs:?} {protection:?} {:?}", server.statistics().await);
    let (one, other) = tokio::join!(within(ours.shutdown()), within(theirs.recv()));
    assert_eq!((one, other), (Ok(()), Ok(None)));
    let text = text.lock().expect("not poisoned");
    assert!(text.contains("Updated { epoch: 4 }") && seen.beginnings().len() >= 12, "keys have changed");
    assert!(!seen.are_shown_in(&text), "an observer was shown a key");
    assert!(!seen.are_shown_in(&printed), "a handle shows a key");
}

/// An attacker changes the window in the INIT ACK, without effect on the handshake itself.
#[tokio::test]
async fn changed_handshake_is_an_interruption_and_not_a_verdict() {
    let server = endpoint(&[1], Some(quick()), dtls(credentials(2, &[1]), KeyPolicy::default()));
    let client = endpoint(&[11], None, dtls(credentials(1, &[2]), KeyPolicy::default()));
    let rule = Rewrite::Init { from: Side::B, field: InitField::Window, change: Change::Add(1_000) };
    let mut rewriter = Rewriter::new(&[rule]);
    let attack = move |from, packet: &mut Vec<u8>| {
        rewriter.rewrite(from, packet);
        Fate::Forwarded
    };
    let middle = Middle::start(ip(12), server.local_addresses()[0], attack).expect("a forwarder");
    let path = PathAddress::over_udp(ip(11), middle.address());
    let to = Peer::new([path]).sctp_port(server.sctp_port());
    let refused = within(client.connect(to, quick())).await;
    let Err(error @ ConnectError::KeysInterrupted(why)) = refused else { panic!("{refused:?}") };
    assert_eq!(why, "the peer has seen another INIT or INIT ACK than this side");
    assert!(error.is_transient());
}

/// Returns the configuration of a peer that implements only the draft: it does not offer to confirm the plaintext handshake.
fn draft_only() -> Config {
    without_key_management(KeyManagementRoles::Either)
}

#[tokio::test]
async fn peer_that_follows_the_draft_alone_is_connected() {
    for (here, there) in [(quick(), draft_only()), (draft_only(), quick())] {
        let server = endpoint(&[1], Some(there), dtls(credentials(2, &[1]), KeyPolicy::default()));
        let client = endpoint(&[11], None, dtls(credentials(1, &[2]), KeyPolicy::default()));
        let connecting = within(client.connect(peer(&client, &server), here));
        let (ours, theirs) = tokio::join!(connecting, within(server.accept()));
        let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
        send(&ours, "protected").await;
        expect(&theirs, "protected").await;
    }
}
