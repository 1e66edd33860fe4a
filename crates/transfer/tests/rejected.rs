//! Memory of a server whose peer sends endless offers and reads no answer, compared with the figure in the book.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::{live_bytes, turn};
use anabranch_net::{Association, Config, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_transfer::protocol::{FileTime, Intent, Kind, Message, Offer};
use anabranch_transfer::{Folder, OnClash, Report, SenderId, SenderRequests, Server, ServerOptions, Store};

/// Total bytes of offers, if they were accepted.
const OFFERED_BYTES: usize = 40 << 20;
/// 8 MiB of buffer each way for the server's association, as much for a client whose initial buffers are 2 MiB, and the memory of
/// partial messages and tables.
const MOST_HELD_BYTES: usize = 32 << 20;
/// Time after which the test counts as hanging, generous even for a busy machine.
const STUCK_AFTER: Duration = Duration::from_secs(120);

/// Starts a server that ends a peer which reads nothing for 1 s.
fn serve(dir: &tempfile::TempDir) -> Endpoint {
    let options = ServerOptions { silence: Duration::from_secs(1), ..ServerOptions::default() };
    let endpoint = Endpoint::builder(Protection::Insecure)
        .local(SocketAddr::from(([127, 0, 0, 1], 0)))
        .max_associations(options.most_associations())
        .accept(options.share_buffers(Config::default()))
        .bind()
        .expect("bound");
    let store = Store::Folder(Folder::open(dir.path(), OnClash::Refuse).expect("a folder"));
    let (server, accepting) = (Server::new(store, options), endpoint.clone());
    tokio::spawn(async move {
        while let Ok(association) = accepting.accept().await {
            let server = server.clone();
            tokio::spawn(async move { server.serve(association, &Report::default()).await });
        }
    });
    endpoint
}

/// Connects a client with small buffers, whose push request is accepted.
async fn greet(server: &Endpoint) -> Association {
    let local = IpAddr::from([127, 0, 0, 2]);
    let endpoint =
        Endpoint::builder(Protection::Insecure).local(SocketAddr::new(local, 0)).bind().expect("bound");
    let route = PathAddress::over_udp(local, server.local_addresses()[0]);
    let small = Config::default().limit_buffers_bytes(0);
    let association = endpoint.connect(Peer::new([route]), small).await.expect("connected");
    let intent = Intent::Push {
        sender: SenderId::from_bytes([7; SenderId::LEN]),
        sender_requests: SenderRequests::default(),
    };
    let hello = Message::Hello { session: [1; 16], intent };
    association.send(hello.encode(), SendOptions::default()).await.expect("taken");
    let welcome = association.recv().await.expect("open").expect("a message");
    assert!(matches!(Message::decode_first(&welcome.payload), Ok(Message::Welcome { .. })));
    association
}

#[test]
fn answers_to_40_mb_of_refused_offers_stay_bounded() {
    let _turn = turn();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let offering = async {
        let dir = tempfile::tempdir().expect("a folder");
        let server = serve(&dir);
        let client = greet(&server).await;
        let before = live_bytes();
        let (mut most, mut taken_bytes, mut id) = (0, 0, 0);
        while taken_bytes < OFFERED_BYTES {
            let name = format!("../{}", "x".repeat(200)).into();
            let kind = Kind::File { size_bytes: 1, first: None };
            let changed = FileTime { seconds: 5, nanos: 0 };
            let offer = Message::Offer(Offer { id, name, kind, changed, mode: 0o644 }).encode();
            taken_bytes += offer.len();
            id += 1;
            if client.send(offer, SendOptions::default()).await.is_err() {
                break;
            }
            most = most.max(live_bytes().saturating_sub(before));
        }
        eprintln!("{taken_bytes} B of offers: at most {most} B were held");
        assert!(most < MOST_HELD_BYTES, "{most} B were held");
        assert!(taken_bytes < OFFERED_BYTES, "the client was never held up");
    };
    runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(STUCK_AFTER, offering).await.expect("the client is stuck") });
}
