//! Bounds of the fields of the transfer protocol that a peer controls. The book's trust table names these tests.

use std::fs;
use std::io::Cursor;
use std::time::Duration;

use anabranch_hostile::{
    Heard, Inbox, MARKER, Packet, Peer, Serving, accepting, block, connect, resources, root,
};
use anabranch_transfer::protocol::{
    Answer, Intent, Kind, MAX_OPEN_OFFERS, Message, Offer, Outcome, Reason, Run, WINDOW_BLOCKS,
};
use anabranch_transfer::{
    BLOCK_BYTES, Hash, OnClash, Pipe, Report, SendSource, Sender, ServerOptions, Store, Timeouts, Totals,
    TransferError, push,
};

/// Time that exceeds all durations here, on any machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time to wait for messages that must not arrive.
const QUIET: Duration = Duration::from_millis(300);
const MIB: usize = BLOCK_BYTES as usize;

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("in time") })
}

/// Returns a server on an inbox, and a peer that has announced that it will offer files.
async fn pushing() -> (Inbox, Serving, Peer) {
    let inbox = Inbox::new().expect("made");
    let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
    let peer = Peer::push_to(&serving.endpoint, [1; 16]).await.expect("welcome");
    (inbox, serving, peer)
}

/// Returns a server that offers a file with this number of blocks, a peer that has requested it with this window, and the offer.
async fn pulling(blocks: usize, window_blocks: u32) -> (Inbox, Serving, Peer, Offer) {
    let inbox = Inbox::new().expect("made");
    fs::write(inbox.path().join("file"), noise(blocks)).expect("written");
    let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
    let peer = Peer::pull_from(&serving.endpoint, [1; 16], window_blocks, &["file"]).await.expect("welcome");
    let offer = peer.hear_until(|message| matches!(message, Message::Offer(_))).await.expect("an offer");
    let Message::Offer(offer) = offer else { unreachable!() };
    (inbox, serving, peer, offer)
}

fn noise(blocks: usize) -> Vec<u8> {
    let mut bytes = vec![0; blocks * MIB];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    bytes
}

fn hashes(content: &[u8]) -> Vec<Hash> {
    content.chunks(MIB).map(Hash::of).collect()
}

/// Accepts an offer, except for these blocks.
async fn take(peer: &Peer, id: u32, have: Vec<Run>) {
    peer.send_message(&Message::Answer { id, answer: Answer::Take { have } }).await.expect("said");
}

/// Returns the index of the next block that arrives completely, or `None` if none does for a while.
async fn next_block(peer: &Peer) -> Option<u64> {
    loop {
        match tokio::time::timeout(QUIET, peer.receive_message()).await {
            Ok(Heard::Data(segment)) if segment.hash.is_some() => return Some(segment.index),
            Ok(Heard::Ended) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}

async fn is_refused(peer: &Peer) -> bool {
    loop {
        match peer.receive_message().await {
            Heard::Control(Message::Fail(failure)) => return failure.reason == Reason::Protocol,
            Heard::Ended => return false,
            _ => {}
        }
    }
}

async fn outcome(peer: &Peer) -> Outcome {
    let done = peer.hear_until(|message| matches!(message, Message::Done { .. })).await.expect("an outcome");
    let Message::Done { outcome, .. } = done else { unreachable!() };
    outcome
}

/// Sends `sources` to a peer that sends `welcome` and is then passed to `peer`.
async fn pushed_to<F: Future<Output = ()>>(
    window_blocks: u32,
    source: SendSource,
    peer: impl FnOnce(Peer) -> F,
) -> (Result<(), TransferError>, Totals) {
    let host = accepting();
    let first = connect(&host).await.expect("connected");
    let report = Report::default();
    let mut sender = Sender::new(vec![source], None, report.clone());
    let again = || std::future::pending::<Result<_, TransferError>>();
    let timeouts = Timeouts { silence: TIMEOUT, retry: Duration::ZERO };
    let listens = async {
        let association = host.accept().await.expect("accepted");
        let (listener, intent) = Peer::welcome(association, window_blocks).await.expect("a hello");
        assert!(matches!(intent, Intent::Push { .. }), "{intent:?}");
        peer(listener).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = push(&mut sender, first, again, timeouts, &report) => (ended, report.totals()),
        () = listens => unreachable!(),
    }
}

#[test]
fn window_of_zero_allows_one_block_at_a_time() {
    run(async {
        let (_inbox, _serving, peer, offer) = pulling(3, 0).await;
        take(&peer, offer.id, Vec::new()).await;
        for index in 0..3 {
            assert_eq!(next_block(&peer).await, Some(index));
            assert_eq!(next_block(&peer).await, None);
            peer.send_message(&Message::Block { id: offer.id, index, good: true }).await.expect("said");
        }
        let file = Inbox::new().expect("made");
        fs::write(file.path().join("file"), noise(2)).expect("written");
        pushed_to(0, SendSource::path(file.path().join("file")), |peer| async move {
            let offer = peer.hear_until(|message| matches!(message, Message::Offer(_))).await;
            assert!(offer.is_ok());
            take(&peer, 0, Vec::new()).await;
            assert_eq!((next_block(&peer).await, next_block(&peer).await), (Some(0), None));
            peer.abort();
        })
        .await
        .0
        .expect_err("the peer went away");
    });
}

#[test]
fn files_outside_the_folder_are_never_offered() {
    run(async {
        let inbox = Inbox::new().expect("made");
        let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
        let absolute = inbox.outside().join("secret");
        let names = [
            "../outside/secret",
            "out/secret",
            "out",
            "out/folder",
            "absolute/secret",
            "link",
            "dangling",
            "loop",
            "kept/../../outside/secret",
            "/etc/passwd",
            "..",
            ".",
            absolute.to_str().expect("UTF-8"),
        ];
        let peer = Peer::pull_from(&serving.endpoint, [1; 16], 4, &names).await.expect("welcome");
        let mut passed = 0;
        loop {
            match peer.receive_message().await {
                Heard::Control(Message::Passed { .. }) => passed += 1,
                Heard::Control(Message::Finished) => break,
                Heard::Control(Message::Offer(offer)) => panic!("{offer:?}"),
                Heard::Data(segment) => {
                    assert!(!segment.content.windows(MARKER.len()).any(|part| part == MARKER));
                }
                Heard::Control(_) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(passed, names.len());
    });
}

#[test]
fn numbers_that_do_not_grow_and_too_many_offers_end_the_transfer() {
    run(async {
        let file = || Kind::File { size_bytes: 1, first: None };
        let (_inbox, _serving, peer) = pushing().await;
        peer.offer(3, "a", file()).await.expect("said");
        peer.offer(3, "b", file()).await.expect("said");
        assert!(is_refused(&peer).await);

        // No number follows the greatest one.
        let (_inbox, _serving, peer) = pushing().await;
        peer.offer(u32::MAX, "a", file()).await.expect("said");
        assert!(is_refused(&peer).await);

        let (_inbox, _serving, peer) = pushing().await;
        for id in 0..=u32::try_from(MAX_OPEN_OFFERS).expect("few") {
            peer.offer(id, &format!("f{id}"), file()).await.expect("said");
        }
        assert!(is_refused(&peer).await);
    });
}

#[test]
fn total_of_any_size_is_only_shown_and_second_one_ends_transfer() {
    run(async {
        let (_inbox, _serving, peer) = pushing().await;
        peer.send_message(&Message::Total { files: u64::MAX, bytes: Some(u64::MAX) }).await.expect("said");
        peer.offer(0, "folder", Kind::Folder).await.expect("said");
        assert_eq!(outcome(&peer).await, Outcome::Stored { renamed: None });
        peer.send_message(&Message::Total { files: 1, bytes: None }).await.expect("said");
        assert!(is_refused(&peer).await);
    });
}

#[test]
fn size_of_folder_is_announced_before_all_files_are_offered() {
    run(async {
        let inbox = Inbox::new().expect("made");
        fs::create_dir(inbox.path().join("many")).expect("a folder");
        for number in 0..MAX_OPEN_OFFERS + 50 {
            fs::write(inbox.path().join(format!("many/{number}")), b"abc").expect("written");
        }
        let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
        let peer = Peer::pull_from(&serving.endpoint, [1; 16], 4, &["many"]).await.expect("welcome");
        // No offer is answered, so the last files are never offered.
        let total = peer.hear_until(|message| matches!(message, Message::Total { .. })).await;
        let files = MAX_OPEN_OFFERS as u64 + 50;
        assert_eq!(total.expect("a total"), Message::Total { files, bytes: Some(3 * files) });
    });
}

#[test]
fn announced_size_allocates_no_memory_and_bounds_blocks() {
    run(async {
        let before = resources::peak_resident_bytes();
        let (inbox, _serving, peer) = pushing().await;
        for (id, size_bytes) in [1 << 40, 1 << 62, u64::MAX].into_iter().enumerate() {
            let id = u32::try_from(id).expect("few");
            peer.offer(id, &format!("f{id}"), Kind::File { size_bytes, first: None }).await.expect("said");
        }
        peer.offer(9, "small", Kind::File { size_bytes: 5, first: None }).await.expect("said");
        peer.hear_until(|message| matches!(message, Message::Answer { id: 9, .. })).await.expect("an answer");
        assert!(resources::peak_resident_bytes() - before < 32 << 20);
        peer.send_all(&block(9, 1, b"beyond", Hash::of(b"beyond"))).await.expect("sent");
        assert!(is_refused(&peer).await);
        assert_eq!(inbox.new_files().expect("read"), Vec::<String>::new());
    });
}

#[test]
fn more_blocks_at_a_time_than_agreed_end_the_transfer() {
    run(async {
        let (_inbox, _serving, peer) = pushing().await;
        let kind = Kind::File { size_bytes: 64 * u64::from(BLOCK_BYTES), first: None };
        peer.offer(0, "file", kind).await.expect("said");
        peer.hear_until(|message| matches!(message, Message::Answer { .. })).await.expect("an answer");
        let content = noise(1);
        for index in 0..=u64::from(WINDOW_BLOCKS) {
            let half = block(0, index, &content, Hash::of(&content));
            peer.send_all(&half[..1]).await.expect("sent");
        }
        assert!(is_refused(&peer).await);
    });
}

#[test]
fn early_blocks_of_a_pipe_are_bounded() {
    run(async {
        let serving = Serving::start(Store::Pipe(Pipe::new(std::io::sink())), ServerOptions::default());
        let peer = Peer::push_to(&serving.endpoint, [1; 16]).await.expect("welcome");
        peer.offer(0, "pipe", Kind::Stream { token: [7; 16] }).await.expect("said");
        peer.hear_until(|message| matches!(message, Message::Answer { .. })).await.expect("an answer");
        let content = noise(1);
        for index in 1..=u64::from(WINDOW_BLOCKS) + 8 {
            if peer.send_all(&block(0, index, &content, Hash::of(&content))).await.is_err() {
                break;
            }
        }
        assert!(is_refused(&peer).await);
    });
}

#[test]
fn claimed_blocks_beyond_the_file_are_ignored() {
    run(async {
        let (_inbox, _serving, peer, offer) = pulling(2, 4).await;
        take(&peer, offer.id, vec![Run { first: 2, count: u64::MAX - 2 }]).await;
        assert_eq!((next_block(&peer).await, next_block(&peer).await), (Some(0), Some(1)));

        for have in [vec![Run { first: 0, count: u64::MAX }], vec![Run { first: 1, count: 1 << 60 }]] {
            let source = SendSource::stream("pipe", Cursor::new(b"content".to_vec()));
            let (_, totals) = pushed_to(4, source, |peer| async move {
                let offer = peer.hear_until(|message| matches!(message, Message::Offer(_))).await;
                assert!(offer.is_ok());
                take(&peer, 0, have).await;
                let ended =
                    |message: &Message| matches!(message, Message::End { .. } | Message::GiveUp { .. });
                let _ = peer.hear_until(ended).await;
                peer.abort();
            })
            .await;
            assert!(totals.held_bytes <= totals.found_bytes, "{totals:?}");
        }
    });
}

#[test]
fn unsolicited_answer_ends_the_transfer() {
    run(async {
        let (_inbox, _serving, peer, offer) = pulling(1, 4).await;
        take(&peer, offer.id + 70, Vec::new()).await;
        assert!(is_refused(&peer).await);
        let (_inbox, _serving, peer, offer) = pulling(1, 4).await;
        take(&peer, offer.id, Vec::new()).await;
        take(&peer, offer.id, Vec::new()).await;
        assert!(is_refused(&peer).await);
    });
}

#[test]
fn a_block_that_was_not_sent_ends_the_transfer() {
    run(async {
        for good in [true, false] {
            let (_inbox, _serving, peer, offer) = pulling(1, 4).await;
            peer.send_message(&Message::Block { id: offer.id, index: 0, good }).await.expect("said");
            assert!(is_refused(&peer).await, "before it was asked for");

            let (_inbox, _serving, peer, offer) = pulling(4, 2).await;
            take(&peer, offer.id, Vec::new()).await;
            assert_eq!(next_block(&peer).await, Some(0));
            peer.send_message(&Message::Block { id: offer.id, index: 3, good }).await.expect("said");
            assert!(is_refused(&peer).await, "before it was its turn");

            let (_inbox, _serving, peer, offer) = pulling(2, 2).await;
            take(&peer, offer.id, Vec::new()).await;
            assert_eq!(next_block(&peer).await, Some(0));
            peer.send_message(&Message::Block { id: offer.id, index: u64::MAX, good }).await.expect("said");
            assert!(is_refused(&peer).await, "there is none");
        }
    });
}

#[test]
fn repeated_requests_for_a_block_abandon_the_file() {
    run(async {
        let (_inbox, _serving, peer, offer) = pulling(1, 4).await;
        take(&peer, offer.id, Vec::new()).await;
        let mut times = 0;
        while let Some(index) = next_block(&peer).await {
            times += 1;
            peer.send_message(&Message::Block { id: offer.id, index, good: false }).await.expect("said");
        }
        assert_eq!(times, 17);
    });
}

#[test]
fn block_requested_twice_at_once_keeps_the_root() {
    run(async {
        let (_inbox, _serving, peer, offer) = pulling(3, 1).await;
        take(&peer, offer.id, Vec::new()).await;
        assert_eq!(next_block(&peer).await, Some(0));
        let again = Packet::control(&Message::Block { id: offer.id, index: 0, good: false });
        // Either the block is refused, or the transfer succeeds. A refusal ends the association, and nothing more can be sent then.
        let _ = peer.send_all(&[again.clone(), again]).await;
        loop {
            match peer.receive_message().await {
                Heard::Data(segment) if segment.hash.is_some() => {
                    let message = Message::Block { id: offer.id, index: segment.index, good: true };
                    let _ = peer.send_message(&message).await;
                }
                Heard::Control(Message::End { root: said, .. }) => {
                    return assert_eq!(said, root(hashes(&noise(3))));
                }
                Heard::Control(Message::Fail(failure)) => {
                    return assert_eq!(failure.reason, Reason::Protocol);
                }
                Heard::Ended => panic!("it ended without a word"),
                _ => {}
            }
        }
    });
}

#[test]
fn length_of_a_stream_is_its_received_bytes() {
    run(async {
        let content = b"twenty bytes of this";
        let long = u64::from(BLOCK_BYTES) + content.len() as u64;
        let cases: [(&[&[u8]], u64); 4] =
            [(&[content], 7), (&[content], 61_440), (&[content, content], long), (&[content, content], 40)];
        for (blocks, size_bytes) in cases {
            let (inbox, _serving, peer) = pushing().await;
            peer.offer(0, "pipe", Kind::Stream { token: [7; 16] }).await.expect("said");
            peer.hear_until(|message| matches!(message, Message::Answer { .. })).await.expect("an answer");
            for (index, content) in (0..).zip(blocks) {
                peer.send_all(&block(0, index, content, Hash::of(content))).await.expect("sent");
            }
            let root = root(blocks.iter().map(|content| Hash::of(content)));
            peer.send_message(&Message::End { id: 0, size_bytes, root }).await.expect("said");
            let refused = async {
                loop {
                    match peer.receive_message().await {
                        Heard::Control(Message::Done { outcome, .. }) => {
                            return matches!(outcome, Outcome::Failed(_));
                        }
                        Heard::Control(Message::Fail(_)) => return true,
                        Heard::Ended => return false,
                        _ => {}
                    }
                }
            };
            assert!(refused.await, "{} blocks as {size_bytes} bytes", blocks.len());
            assert_eq!(inbox.new_files().expect("read"), Vec::<String>::new());
        }
    });
}

#[test]
fn a_name_that_was_stored_with_any_time_can_be_offered_again() {
    run(async {
        // A file system in memory stores 64 bits of a time. Others store fewer, and the test has no effect there.
        let memory = std::path::Path::new("/dev/shm");
        let inbox = if memory.is_dir() { Inbox::new_in(memory) } else { Inbox::new() }.expect("made");
        let serving = Serving::start(inbox.store(OnClash::Refuse), ServerOptions::default());
        let peer = Peer::push_to(&serving.endpoint, [1; 16]).await.expect("welcome");
        for (id, seconds) in (0..).step_by(2).zip([i64::MIN, i64::MIN + 1, i64::MAX]) {
            let changed = anabranch_transfer::protocol::FileTime { seconds, nanos: 999_999_999 };
            let kind = Kind::File { size_bytes: 0, first: None };
            let offer = |id| Offer {
                id,
                name: format!("f{seconds}").into(),
                kind: kind.clone(),
                changed,
                mode: 0o600,
            };
            peer.send_message(&Message::Offer(offer(id))).await.expect("said");
            peer.hear_until(|message| matches!(message, Message::Answer { .. })).await.expect("an answer");
            peer.send_message(&Message::End { id, size_bytes: 0, root: root([]) }).await.expect("said");
            assert_eq!(outcome(&peer).await, Outcome::Stored { renamed: None });
            peer.send_message(&Message::Offer(offer(id + 1))).await.expect("said");
            let again = |message: &Message| matches!(message, Message::Answer { .. } | Message::Done { .. });
            if let Message::Answer { id, .. } = peer.hear_until(again).await.expect("something") {
                peer.send_message(&Message::End { id, size_bytes: 0, root: root([]) }).await.expect("said");
                assert_eq!(outcome(&peer).await, Outcome::Identical);
            }
        }
    });
}

#[test]
fn peer_that_sends_keepalives_only_blocks_no_other() {
    run(async {
        let (inbox, serving, idle) = pushing().await;
        idle.offer(0, "mine", Kind::File { size_bytes: 5, first: None }).await.expect("said");
        let alive = idle.show_only_that_it_is_there(TIMEOUT);
        let other = async {
            let peer = Peer::push_to(&serving.endpoint, [2; 16]).await.expect("welcome");
            peer.offer(0, "other", Kind::File { size_bytes: 0, first: None }).await.expect("said");
            peer.hear_until(|message| matches!(message, Message::Answer { .. })).await.expect("an answer");
            peer.send_message(&Message::End { id: 0, size_bytes: 0, root: root([]) }).await.expect("said");
            outcome(&peer).await
        };
        let stored = tokio::select! { outcome = other => outcome, () = alive => panic!("too soon") };
        assert_eq!(stored, Outcome::Stored { renamed: None });
        assert_eq!(inbox.new_files().expect("read"), ["other"]);
    });
}

#[test]
fn repeated_recorded_messages_store_no_file_twice() {
    run(async {
        let (inbox, serving, peer) = pushing().await;
        let said = [
            vec![Packet::control(&Message::Offer(Offer {
                id: 0,
                name: "file".into(),
                kind: Kind::File { size_bytes: 7, first: None },
                changed: anabranch_transfer::protocol::FileTime { seconds: 5, nanos: 0 },
                mode: 0o644,
            }))],
            block(0, 0, b"content", Hash::of(b"content")),
            vec![Packet::control(&Message::End { id: 0, size_bytes: 7, root: root([Hash::of(b"content")]) })],
        ];
        for (step, packets) in said.iter().enumerate() {
            peer.send_all(packets).await.expect("sent");
            if step == 0 {
                peer.hear_until(|message| matches!(message, Message::Answer { .. }))
                    .await
                    .expect("an answer");
            }
        }
        assert_eq!(outcome(&peer).await, Outcome::Stored { renamed: None });
        let again = Peer::push_to(&serving.endpoint, [2; 16]).await.expect("welcome");
        again.send_all(&said.concat()).await.expect("sent");
        assert_eq!(outcome(&again).await, Outcome::Identical);
        assert_eq!(inbox.new_files().expect("read"), ["file"]);
        assert_eq!(fs::read(inbox.path().join("file")).expect("there"), b"content");
    });
}
