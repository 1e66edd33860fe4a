//! A peer vanishes without a message at any stage of a transfer: its place, its memory and its files are free soon after.

use std::fs;
use std::time::Duration;

use anabranch_net::{Association, SendOptions};
use anabranch_transfer::protocol::{Answer, Intent, Kind, Links, Message, SenderRequests, Terms};
use anabranch_transfer::{
    Accept, Deadlines, Hash, OnClash, Report, SendSource, Sender, SenderId, ServerOptions, Timeouts,
    TransferError, pull, push,
};
use tokio::time::Instant;

use crate::loopback::failures::Rogue;
use crate::loopback::support::{Serving, connect, folder, identity, listener, names, run};

const SILENCE: Duration = Duration::from_secs(1);
/// The deadlines, with a large margin for a busy machine.
const FREE_WITHIN: Duration = Duration::from_secs(20);

/// Stage at which a peer that connects vanishes.
#[derive(Clone, Copy, Debug)]
enum Point {
    BeforeHello,
    AfterHello,
    AfterWelcome,
    AfterOffer,
    MidBlock,
    AfterEnd,
    BeforeFinished,
    AskedNothing,
    MidNames,
    AfterNames,
    MidFetch,
}

const POINTS: [Point; 11] = [
    Point::BeforeHello,
    Point::AfterHello,
    Point::AfterWelcome,
    Point::AfterOffer,
    Point::MidBlock,
    Point::AfterEnd,
    Point::BeforeFinished,
    Point::AskedNothing,
    Point::MidNames,
    Point::AfterNames,
    Point::MidFetch,
];

/// Runs `peer` on its own runtime, and drops that when it is done: the other side receives no packet.
async fn vanish<F: Future<Output = Rogue>>(peer: impl FnOnce() -> F + Send + 'static) {
    let gone = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        // Dropping it would abort the association.
        std::mem::forget(runtime.block_on(peer()));
        runtime.shutdown_background();
    });
    tokio::task::spawn_blocking(move || gone.join().expect("it did what it was to do"))
        .await
        .expect("joined");
}

fn half_a_block() -> Vec<u8> {
    let mut bytes = [&0_u32.to_be_bytes()[..], &0_u64.to_be_bytes(), &(1_u32 << 20).to_be_bytes()].concat();
    bytes.extend_from_slice(&0_u32.to_be_bytes());
    bytes.resize(bytes.len() + (60 << 10), 7);
    bytes
}

/// Proceeds to this stage.
async fn advance(endpoint: anabranch_net::Endpoint, point: Point, number: u8) -> Rogue {
    let rogue = Rogue(connect(&endpoint).await);
    if let Point::BeforeHello = point {
        return rogue;
    }
    let asks = matches!(point, Point::AskedNothing | Point::MidNames | Point::AfterNames | Point::MidFetch);
    let intent = if asks {
        Intent::Pull { window_blocks: 4, links: Links::Copy, delete: false }
    } else {
        Intent::Push { sender: identity(), sender_requests: SenderRequests::default() }
    };
    rogue.send_message(&Message::Hello { session: [number; 16], intent }).await;
    if let Point::AfterHello = point {
        return rogue;
    }
    assert!(matches!(rogue.receive_message().await, Message::Welcome { .. }), "{point:?}");
    if asks {
        return ask(rogue, point).await;
    }
    if let Point::AfterWelcome = point {
        return rogue;
    }
    let size_bytes = if let Point::BeforeFinished = point { 0 } else { 3 << 20 };
    rogue.offer(0, &format!("file-{number}"), Kind::File { size_bytes, first: None }).await;
    assert!(matches!(rogue.receive_message().await, Message::Answer { .. }), "{point:?}");
    match point {
        Point::MidBlock => rogue.data(half_a_block()).await,
        Point::AfterEnd => rogue.send_message(&Message::End { id: 0, size_bytes, root: Hash::of(b"") }).await,
        Point::BeforeFinished => {
            rogue.send_message(&Message::End { id: 0, size_bytes, root: Hash::of(b"") }).await;
            assert!(matches!(rogue.receive_message().await, Message::Done { .. }));
        }
        _ => {}
    }
    rogue
}

async fn ask(rogue: Rogue, point: Point) -> Rogue {
    if let Point::AskedNothing = point {
        return rogue;
    }
    rogue.send_message(&Message::Want("offered".to_owned())).await;
    if let Point::MidNames = point {
        return rogue;
    }
    rogue.send_message(&Message::WantEnd).await;
    // The size of the transfer may be announced before it.
    while !matches!(rogue.receive_message().await, Message::Offer(_)) {}
    if let Point::MidFetch = point {
        rogue.send_message(&Message::Answer { id: 0, answer: Answer::Take { have: Vec::new() } }).await;
        rogue.0.recv().await.expect("open");
    }
    rogue
}

#[test]
fn vanished_client_frees_its_resources_in_time() {
    run(async {
        let deadlines = Deadlines { start: SILENCE, ..Deadlines::default() };
        let options = ServerOptions { silence: SILENCE, deadlines, ..ServerOptions::default() };
        let serving = Serving::start(OnClash::Refuse, options);
        let all = serving.server.free_memory_bytes();
        fs::write(serving.dir.path().join("offered"), vec![1; 8 << 20]).expect("written");
        let began = Instant::now();
        for (number, point) in (1..).zip(POINTS) {
            let endpoint = serving.endpoint.clone();
            vanish(move || advance(endpoint, point, number)).await;
        }
        while serving.server.present() > 0 {
            assert!(began.elapsed() < FREE_WITHIN, "{} are there still", serving.server.present());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(serving.server.free_memory_bytes(), all);
        // Another sender can store every file immediately.
        let from = tempfile::tempdir().expect("a folder");
        let files: Vec<_> = (4..=6).map(|number| from.path().join(format!("file-{number}"))).collect();
        files.iter().for_each(|file| fs::write(file, "content").expect("written"));
        let (ended, totals, events) = serving.send(files.iter().map(SendSource::path).collect()).await;
        ended.expect("sent");
        assert_eq!((totals.done_files, totals.failed_files), (3, 0), "{}", events.text());
    });
}

/// Accepts and proceeds by this number of steps, or vanishes at the beginning.
async fn accept(endpoint: anabranch_net::Endpoint, steps: u8) -> Rogue {
    let rogue = Rogue(endpoint.accept().await.expect("an association"));
    if steps >= 1 {
        rogue.0.recv().await.expect("open").expect("a hello");
        rogue
            .send_message(&Message::Welcome { terms: Terms::Give { sender: SenderId::from_bytes([8; 16]) } })
            .await;
    }
    if steps >= 2 {
        // A name or an offer.
        rogue.0.recv().await.expect("open").expect("a message");
        rogue.offer(0, "file", Kind::File { size_bytes: 3 << 20, first: None }).await;
    }
    if steps >= 3 {
        // Blocks are unordered: one that precedes its offer ends the transfer.
        while !matches!(rogue.receive_message().await, Message::Answer { .. }) {}
        rogue.data(half_a_block()).await;
    }
    rogue
}

async fn never() -> Result<Association, TransferError> {
    Err(TransferError::Lost("it is gone".to_owned()))
}

#[test]
fn vanished_server_ends_the_transfer_in_time() {
    run(async {
        let timeouts = Timeouts { silence: SILENCE, retry: SILENCE };
        for steps in 0..4 {
            let (tell, told) = tokio::sync::oneshot::channel();
            let server = vanish(move || async move {
                let endpoint = listener();
                tell.send(endpoint.clone()).expect("it is waited for");
                let rogue = accept(endpoint.clone(), steps).await;
                std::mem::forget(endpoint);
                rogue
            });
            let to = tempfile::tempdir().expect("a folder");
            let client = async {
                let first = connect(&told.await.expect("an endpoint")).await;
                let began = Instant::now();
                let names = Accept::names(["file"]).expect("a name");
                let store = folder(to.path(), OnClash::Refuse);
                let ended = pull(&names.into(), store, first, never, timeouts, &Report::default()).await;
                assert!(matches!(ended, Err(TransferError::Lost(_) | TransferError::Silent(_))), "{ended:?}");
                assert!(began.elapsed() < FREE_WITHIN);
            };
            tokio::join!(server, client);
            // The unfinished file is free for another transfer.
            let serving = Serving::usual();
            fs::write(serving.dir.path().join("file"), "content").expect("written");
            serving.fetch(&["file"], folder(to.path(), OnClash::Refuse)).await.0.expect("fetched");
            assert!(names(to.path()).contains(&"file".to_owned()));
        }
    });
}

#[test]
fn vanished_receiver_ends_the_transfer_in_time() {
    run(async {
        let timeouts = Timeouts { silence: SILENCE, retry: SILENCE };
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("file"), vec![1; 3 << 20]).expect("written");
        for steps in 0..3 {
            let (tell, told) = tokio::sync::oneshot::channel();
            let server = vanish(move || async move {
                let endpoint = listener();
                tell.send(endpoint.clone()).expect("it is waited for");
                let rogue = Rogue(endpoint.accept().await.expect("an association"));
                std::mem::forget(endpoint);
                if steps >= 1 {
                    assert!(matches!(rogue.receive_message().await, Message::Hello { .. }));
                    rogue.send_message(&Message::Welcome { terms: Terms::Take { window_blocks: 4 } }).await;
                }
                if steps >= 2 {
                    // On a busy machine the sender sends a keep-alive before.
                    assert!(matches!(rogue.receive_message().await, Message::Offer(_)));
                    rogue
                        .send_message(&Message::Answer { id: 0, answer: Answer::Take { have: Vec::new() } })
                        .await;
                    rogue.0.recv().await.expect("open").expect("data");
                }
                rogue
            });
            let client = async {
                let first = connect(&told.await.expect("an endpoint")).await;
                let report = Report::default();
                let mut sender =
                    Sender::new(vec![SendSource::path(from.path().join("file"))], None, report.clone());
                let began = Instant::now();
                let ended = push(&mut sender, first, never, timeouts, &report).await;
                assert!(matches!(ended, Err(TransferError::Lost(_) | TransferError::Silent(_))), "{ended:?}");
                assert!(began.elapsed() < FREE_WITHIN);
            };
            tokio::join!(server, client);
        }
    });
}

#[test]
fn silent_client_is_closed() {
    run(async {
        let deadlines = Deadlines { start: Duration::from_millis(200), ..Deadlines::default() };
        let serving =
            Serving::start(OnClash::Refuse, ServerOptions { deadlines, ..ServerOptions::default() });
        let mute = Rogue(connect(&serving.endpoint).await);
        while let Ok(Some(_)) = mute.0.recv().await {}
        let idle = Rogue::greet(&serving).await;
        // It sends keep-alives, and offers nothing.
        while idle.0.send(Message::Alive.encode(), SendOptions::default()).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let reader = Rogue::ask(&serving).await;
        while let Ok(Some(_)) = reader.0.recv().await {}
        serving.idle().await;
    });
}
