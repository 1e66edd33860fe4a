//! Strangers and a receiver with the code, at one offer on loopback addresses.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_identity::code::{
    BINDING_LABEL, ChannelBinding, CodeError, Initiator, LONGEST_MESSAGE, version_1_probe,
};
use anabranch_identity::{Admission, Home, KeyPair, OneTimeCode};
use anabranch_net::{Association, Config, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_transfer::{
    Accept, Folder, Offering, OnClash, Report, Request, SendSource, ServerOptions, Store, Timeouts,
    TransferError, pull,
};
use tempfile::TempDir;
use tokio::sync::Mutex;

use super::super::paths::Paths;
use super::exchange::{ExchangeError, is_sender_of_version_1, prove, resume};
use super::offer::MAX_UNPROVED_CLIENTS;
use super::offer::{Observer, Remainder, Shared, one_transfer};
use crate::exit::CommandError;

const CODE: &str = "7-apple-river";

const LOCAL: [u8; 4] = [127, 0, 0, 1];

/// An offer of one file, and clients that connect to it.
struct Rig {
    folder: TempDir,
    server: Endpoint,
    /// One host for each association: a host has no two with the same peer.
    clients: Mutex<Vec<Endpoint>>,
    shared: Arc<Shared>,
}

fn code(text: &str) -> OneTimeCode {
    text.parse().expect("a code")
}

fn host(keys: &Path, is_server: bool, address: [u8; 4]) -> Endpoint {
    let pair = KeyPair::load_or_create(&Home::at(keys).key()).expect("a key");
    let protection = Protection::dtls(pair.credentials(Admission::Anyone).expect("credentials"));
    let builder = Endpoint::builder(protection).local(SocketAddr::from((address, 0)));
    let builder = if is_server { builder.accept(Config::new("cmt").expect("a scheme")) } else { builder };
    builder.bind().expect("bound")
}

impl Rig {
    async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("film"), "content").expect("written");
        let offering = Offering::survey(vec![SendSource::path(folder.path().join("film"))]).await;
        let shared = Shared::new(code(CODE), offering.expect("an offer"), ServerOptions::default());
        let server = host(&folder.path().join("server"), true, LOCAL);
        Rig { folder, server, clients: Mutex::default(), shared: Arc::new(shared) }
    }

    /// Connects as a receiver that has not connected before.
    async fn connect(&self) -> Association {
        let number = self.clients.lock().await.len();
        self.connect_as(&format!("client-{number}")).await
    }

    /// Connects with the key of this receiver.
    async fn connect_as(&self, receiver: &str) -> Association {
        self.connect_from(LOCAL, receiver).await
    }

    async fn connect_from(&self, address: [u8; 4], receiver: &str) -> Association {
        let mut clients = self.clients.lock().await;
        let client = host(&self.folder.path().join(receiver), false, address);
        let (from, to) = (client.local_addresses()[0], self.server.local_addresses()[0]);
        let peer = Peer::new([PathAddress::over_udp(from.ip(), to)]).sctp_port(self.server.sctp_port());
        let association =
            client.connect(peer, Config::new("cmt").expect("a scheme")).await.expect("connected");
        clients.push(client);
        association
    }

    /// Fetches the offered file over an association on which the code was proved.
    async fn fetch(&self, association: Association) {
        let inbox = Folder::open(&self.folder.path().join("server"), OnClash::Refuse).expect("a folder");
        let request = Request::from(Accept::names(["film"]).expect("a name"));
        let again = || async { Err::<Association, _>(TransferError::Lost("once is enough".to_owned())) };
        let (timeouts, report) = (Timeouts::default(), Report::default());
        pull(&request, Store::Folder(inbox), association, again, timeouts, &report).await.expect("fetched");
        assert!(self.folder.path().join("server/film").exists());
    }

    /// Returns the result of the offer while `meanwhile` runs.
    async fn offering(&self, meanwhile: impl Future<Output = ()>) -> Result<(), CommandError> {
        let (report, paths) = (Report::default(), Mutex::new(Paths::default()));
        let remainder = Remainder::default();
        let offered = one_transfer(
            &self.server,
            &self.shared,
            Observer { report: &report, remainder: &remainder, waits: &|_| {} },
            &paths,
            Some(Duration::from_secs(60)),
        );
        let (ended, ()) = tokio::join!(offered, meanwhile);
        ended.map(|transfer| transfer.expect("a transfer"))
    }
}

async fn binding(association: &Association) -> ChannelBinding {
    let exported = association.export_keying_material(BINDING_LABEL, None, 32).await.expect("exported");
    ChannelBinding::new(exported.try_into().expect("32 bytes"))
}

/// Begins an exchange, and returns the message that would prove the code.
async fn begin(association: &Association, typed: &str) -> Vec<u8> {
    let (initiator, first) = Initiator::start(&code(typed), binding(association).await);
    association.send(first, SendOptions::default()).await.expect("sent");
    let answer = association.recv().await.expect("an answer").expect("an answer");
    assert!(answer.payload.len() <= LONGEST_MESSAGE);
    initiator.prove(&answer.payload).expect("an answer").1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_clients_do_not_block_a_client_with_the_code() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let mut strangers = Vec::new();
        for _ in 0..MAX_UNPROVED_CLIENTS {
            strangers.push(rig.connect().await);
        }
        let association = rig.connect().await;
        prove(&association, &code(CODE)).await.expect("the code is right");
        // The oldest stranger was ended, and no other.
        assert!(strangers[0].recv().await.is_err());
        rig.fetch(association).await;
    };
    rig.offering(meanwhile).await.expect("one transfer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_from_another_address_does_not_end_the_exchange_of_the_code() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let association = rig.connect_from([127, 0, 0, 8], "person").await;
        let mut flood = Vec::new();
        for number in 0..3 * MAX_UNPROVED_CLIENTS {
            flood.push(rig.connect_from([127, 0, 0, 9], &format!("flood-{number}")).await);
        }
        prove(&association, &code(CODE)).await.expect("the code is right");
        assert!(flood[0].recv().await.is_err(), "it ended for a later one of its source");
        rig.fetch(association).await;
    };
    rig.offering(meanwhile).await.expect("one transfer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connection_that_ends_without_verdict_keeps_the_code() {
    let rig = Rig::new().await;
    let first = rig.connect().await;
    let wrong = code("8-apple-river");
    let end = async { rig.server.accept().await.expect("accepted").abort() };
    let ((), proved) = tokio::join!(end, prove(&first, &wrong));
    let error = proved.expect_err("the connection ended");
    assert!(matches!(error, ExchangeError::Gone) && !error.to_string().contains("wrong"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_client_with_a_wrong_code_ends_no_transfer() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let late = rig.connect().await;
        let proof = begin(&late, "8-apple-river").await;
        let association = rig.connect().await;
        prove(&association, &code(CODE)).await.expect("the code is right");
        late.send(proof, SendOptions::default()).await.expect("sent");
        let refused = late.recv().await.expect("a refusal").expect("a refusal");
        assert_eq!(refused.payload[..], CodeError::InUse.refusal(), "the code is another receiver's");
        rig.fetch(association).await;
    };
    rig.offering(meanwhile).await.expect("one transfer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn association_that_unknowingly_spent_the_code_ends_the_offer() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let refused = prove(&rig.connect().await, &code("8-apple-river")).await;
        assert!(matches!(refused, Err(ExchangeError::Code(CodeError::Wrong))), "{refused:?}");
    };
    let ended = rig.offering(meanwhile).await.expect_err("the code is used up");
    assert!(ended.to_string().contains("a wrong code was tried"), "{ended}");
}

/// Stops a receiver after it has proved the code, as Ctrl-C does.
async fn interrupt(association: Association) {
    association.abort();
    let _ = association.closed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_receiver_proves_the_code_again_and_fetches() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let first = rig.connect_as("receiver").await;
        prove(&first, &code(CODE)).await.expect("the code is right");
        interrupt(first).await;
        // Another receiver with the right code is refused, and spends nothing.
        let other = prove(&rig.connect().await, &code(CODE)).await;
        assert!(matches!(other, Err(ExchangeError::Code(CodeError::InUse))), "{other:?}");
        // A receiver that claims to resume is refused as well.
        let other = resume(&rig.connect().await).await;
        assert!(matches!(other, Err(ExchangeError::Code(CodeError::InUse))), "{other:?}");
        // A mistyped code of the same receiver spends nothing.
        let slip = prove(&rig.connect_as("receiver").await, &code("8-apple-river")).await;
        assert!(matches!(slip, Err(ExchangeError::Code(CodeError::Wrong))), "{slip:?}");
        let again = rig.connect_as("receiver").await;
        prove(&again, &code(CODE)).await.expect("the code is right");
        rig.fetch(again).await;
    };
    rig.offering(meanwhile).await.expect("one transfer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receiver_with_the_pinned_key_resumes_without_the_code() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let early = resume(&rig.connect_as("receiver").await).await;
        assert!(matches!(early, Err(ExchangeError::Code(CodeError::Unknown))), "{early:?}");
        let first = rig.connect_as("receiver").await;
        prove(&first, &code(CODE)).await.expect("the code is right");
        interrupt(first).await;
        let again = rig.connect_as("receiver").await;
        resume(&again).await.expect("its key is pinned");
        rig.fetch(again).await;
    };
    rig.offering(meanwhile).await.expect("one transfer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receiver_of_version_1_keeps_the_code_and_learns_the_version() {
    let rig = Rig::new().await;
    let meanwhile = async {
        let old = rig.connect().await;
        let probe = version_1_probe(binding(&old).await).expect("random");
        old.send(probe, SendOptions::default()).await.expect("sent");
        let refused = old.recv().await.expect("a refusal").expect("a refusal");
        assert_eq!(refused.payload[..], [2, 0]);
        assert!(!is_sender_of_version_1(&rig.connect().await).await);
        let association = rig.connect().await;
        prove(&association, &code(CODE)).await.expect("the code is right");
        rig.fetch(association).await;
    };
    rig.offering(meanwhile).await.expect("one transfer");
}

/// Serves as a sender of version 1, as far as receivers of later versions proceed.
async fn serve_version_1(server: &Endpoint) {
    loop {
        let association = server.accept().await.expect("listening");
        tokio::spawn(async move {
            let Ok(Some(first)) = association.recv().await else { return };
            if first.payload.len() == LONGEST_MESSAGE && first.payload[0] == 1 {
                let _ = association.send(first.payload.to_vec(), SendOptions::default()).await;
                let _ = association.recv().await;
            }
            association.abort();
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sender_of_version_1_is_recognised_without_the_code() {
    let rig = Rig::new().await;
    let recognised = async {
        let refused = prove(&rig.connect().await, &code(CODE)).await;
        assert!(matches!(refused, Err(ExchangeError::Gone)), "{refused:?}");
        is_sender_of_version_1(&rig.connect().await).await
    };
    tokio::select! {
        is_old = recognised => assert!(is_old),
        () = serve_version_1(&rig.server) => unreachable!("it serves for ever"),
    }
}
