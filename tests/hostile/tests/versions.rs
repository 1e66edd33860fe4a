//! Peers that speak another version of the transfer protocol: both sides report both versions.

use std::fs;
use std::time::Duration;

use anabranch_hostile::{Inbox, accepting, connect};
use anabranch_net::{Association, SendOptions};
use anabranch_transfer::protocol::{
    Intent, Links, Message, OnClash, PROTOCOL_VERSION, ProtocolError, SenderRequests, Terms,
};
use anabranch_transfer::{
    Accept, Report, Request, SendSource, Sender, SenderId, Server, ServerOptions, Timeouts, TransferError,
    pull, push,
};

/// Time that exceeds all steps on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Version of the releases before totals were announced.
const OLD: u16 = 4;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("in time") })
}

/// Returns the version in the first bytes of a first message, as every version reads it.
fn version_of(message: &[u8]) -> u16 {
    assert_eq!(&message[..4], b"ANBT", "{message:?}");
    u16::from_be_bytes([message[4], message[5]])
}

/// Returns a first message with another version.
fn with_version(first: &Message, version: u16) -> Vec<u8> {
    let mut bytes = first.encode();
    bytes[4..6].copy_from_slice(&version.to_be_bytes());
    bytes
}

/// Sends a first message of the old version, and returns the version in the answer.
async fn answer_to_old(association: &Association, intent: Intent) -> u16 {
    let hello = Message::Hello { session: [1; 16], intent };
    association.send(with_version(&hello, OLD), SendOptions::default()).await.expect("sent");
    let answer = association.recv().await.expect("an answer").expect("an answer");
    association.abort();
    version_of(&answer.payload)
}

fn assert_names_both(error: &TransferError) {
    assert!(matches!(error, TransferError::Protocol(ProtocolError::Version(OLD))), "{error:?}");
    let text = error.to_string();
    for version in [OLD, PROTOCOL_VERSION] {
        assert!(text.contains(&format!("version {version}")), "{text}");
    }
}

#[test]
fn old_client_and_server_read_the_version_of_each_other() {
    run(async {
        let inbox = Inbox::new().expect("made");
        let (endpoint, server) =
            (accepting(), Server::new(inbox.store(OnClash::Refuse), ServerOptions::default()));
        let sender = SenderId::from_bytes([9; SenderId::LEN]);
        for intent in [
            Intent::Push { sender, sender_requests: SenderRequests::default() },
            Intent::Pull { window_blocks: 4, links: Links::Copy, delete: false },
        ] {
            let (ours, theirs) = tokio::join!(connect(&endpoint), endpoint.accept());
            let (ours, theirs, report) =
                (ours.expect("connected"), theirs.expect("accepted"), Report::default());
            let (ended, version) = tokio::join!(server.serve(theirs, &report), answer_to_old(&ours, intent));
            assert_eq!(version, PROTOCOL_VERSION);
            assert_names_both(&ended.expect_err("the versions differ"));
        }
        assert_eq!(inbox.damage(), Vec::<String>::new());
    });
}

#[test]
fn client_of_an_old_server_reports_both_versions() {
    run(async {
        for pushes in [true, false] {
            let endpoint = accepting();
            let answers = async {
                let association = endpoint.accept().await.expect("accepted");
                let first = association.recv().await.expect("a hello").expect("a hello");
                assert_eq!(version_of(&first.payload), PROTOCOL_VERSION, "the old server names both as well");
                let refusal = Message::Welcome { terms: Terms::Refuse };
                association.send(with_version(&refusal, OLD), SendOptions::default()).await.expect("sent");
                while let Ok(Some(_)) = association.recv().await {}
            };
            let ends = async {
                let (dir, report) = (tempfile::tempdir().expect("a folder"), Report::default());
                let first = connect(&endpoint).await.expect("connected");
                let again = || std::future::pending::<Result<_, TransferError>>();
                if pushes {
                    fs::write(dir.path().join("file"), "content").expect("written");
                    let mut sender = Sender::new(vec![SendSource::path(dir.path())], None, report.clone());
                    push(&mut sender, first, again, Timeouts::default(), &report).await
                } else {
                    let inbox = Inbox::new().expect("made");
                    let request = Request::from(Accept::all(false));
                    let store = inbox.store(OnClash::Refuse);
                    pull(&request, store, first, again, Timeouts::default(), &report).await
                }
            };
            let (ended, ()) = tokio::join!(ends, answers);
            assert_names_both(&ended.expect_err("the versions differ"));
        }
    });
}
