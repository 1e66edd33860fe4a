//! Failures are reported, and no file is lost or partially written under its final name.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use anabranch_net::{Association, Endpoint, SendOptions};
use anabranch_transfer::protocol::{
    FileTime, Intent, Kind, Links, Message, Offer, Outcome, Reason, Segment, SenderRequests, Terms,
};
use anabranch_transfer::{Allow, Hash, OnClash, SendSource, SenderId, ServerOptions, TransferError};

use crate::loopback::support::{PART_ENDING, Serving, connect, folder, identity, names, noise, rate, run};

#[test]
fn clash_follows_the_rule_of_the_receiver() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        // Both have the same size, and differ in their content.
        let (old, new) = (noise(1, 1_200_000), noise(2, 1_200_000));
        fs::write(&file, &new).expect("written");
        for (on_clash, expected) in [
            (OnClash::Refuse, vec![("file", &old)]),
            (OnClash::Rename, vec![("file", &old), ("file.1", &new)]),
            (OnClash::Overwrite, vec![("file", &new)]),
        ] {
            let serving = Serving::start(on_clash, ServerOptions::default());
            fs::write(serving.dir.path().join("file"), &old).expect("written");
            let (ended, totals, events) = serving.send(vec![SendSource::path(&file)]).await;
            ended.expect("the transfer itself goes well");
            assert_eq!(totals.failed_files, u64::from(on_clash == OnClash::Refuse), "{}", events.text());
            let there: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
            assert_eq!(names(serving.dir.path()), there);
            for (name, content) in expected {
                assert!(
                    fs::read(serving.dir.path().join(name)).expect("there") == *content,
                    "{on_clash:?} {name}"
                );
            }
            if on_clash == OnClash::Refuse {
                assert!(events.text().contains("with other content"), "{}", events.text());
            }
        }
    });
}

#[test]
fn the_same_content_with_another_time_is_not_sent() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        fs::write(&file, noise(1, 3_000_000)).expect("written");
        fs::write(serving.dir.path().join("file"), noise(1, 3_000_000)).expect("written");
        let (ended, totals, _) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("all there");
        assert_eq!((totals.done_files, totals.moved_bytes, totals.reused_bytes), (1, 0, 3_000_000));
    });
}

#[test]
fn file_changed_during_transfer_arrives_in_its_final_state() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("log");
        fs::write(&file, noise(1, 12_000_000)).expect("written");
        let append = async {
            let is_begun = || {
                let mut parts =
                    names(serving.dir.path()).into_iter().filter(|name| name.ends_with(PART_ENDING));
                parts.any(|part| fs::metadata(serving.dir.path().join(part)).is_ok_and(|part| part.len() > 0))
            };
            while !is_begun() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let mut log = fs::File::options().append(true).open(&file).expect("open");
            log.write_all(b"one more line").expect("written");
            std::future::pending::<()>().await;
        };
        let (ended, totals, events) = tokio::select! {
            sent = serving.send_at(vec![SendSource::path(&file)], Some(rate(12_000_000))) => sent,
            () = append => unreachable!(),
        };
        ended.expect("sent");
        assert!(
            events.text().contains("log was changed while it was sent; its transfer starts over"),
            "{}",
            events.text()
        );
        assert_eq!((totals.found_files, totals.done_files, totals.failed_files), (1, 1, 0));
        assert_eq!(totals.held_bytes, 12_000_013);
        assert!(fs::read(serving.dir.path().join("log")).expect("there") == fs::read(&file).expect("there"));
        assert_eq!(names(serving.dir.path()), ["log"]);
    });
}

#[test]
fn unwritable_folder_and_unreadable_file_are_named() {
    // Root ignores permissions.
    let is_root = fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if is_root {
        return;
    }
    run(async {
        let serving = Serving::usual();
        fs::create_dir(serving.dir.path().join("d")).expect("made");
        fs::set_permissions(serving.dir.path().join("d"), fs::Permissions::from_mode(0o500)).expect("set");
        let from = tempfile::tempdir().expect("a folder");
        fs::create_dir(from.path().join("d")).expect("made");
        fs::write(from.path().join("d/file"), "content").expect("written");
        let (ended, totals, events) = serving.send(vec![SendSource::path(from.path().join("d"))]).await;
        ended.expect("the transfer itself goes well");
        assert_eq!(totals.failed_files, 1);
        assert!(events.text().contains("Permission"), "{}", events.text());
    });
}

#[test]
fn a_server_does_only_what_it_is_allowed_to() {
    run(async {
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("file"), "content").expect("written");
        let options = |allow| ServerOptions { allow, ..ServerOptions::default() };
        let reading = Serving::start(OnClash::Refuse, options(Allow::Read));
        let (ended, _, _) = reading.send(vec![SendSource::path(from.path().join("file"))]).await;
        let refused = |ended| matches!(ended, Err(TransferError::Peer(failure)) if failure.reason == Reason::NotAllowed);
        assert!(refused(ended));
        assert!(names(reading.dir.path()).is_empty());
        let writing = Serving::start(OnClash::Refuse, options(Allow::Write));
        fs::write(writing.dir.path().join("secret"), "content").expect("written");
        let (ended, _, _) = writing.fetch(&[], folder(from.path(), OnClash::Refuse)).await;
        assert!(refused(ended));
        assert_eq!(names(from.path()), ["file"]);
    });
}

/// Returns the request of the honest sender, which any host that sees the packets can repeat.
fn push() -> Intent {
    Intent::Push { sender: identity(), sender_requests: SenderRequests::default() }
}

/// A peer that sends arbitrary messages.
pub(crate) struct Rogue(pub(crate) Association);

impl Rogue {
    pub(crate) async fn greet(serving: &Serving) -> Rogue {
        Rogue::greet_as(serving, 1).await
    }

    /// Begins to push, as the transfer with this number.
    pub(crate) async fn greet_as(serving: &Serving, session: u8) -> Rogue {
        let rogue = Rogue::connect_as(serving, session).await;
        let welcome = rogue.0.recv().await.expect("open").expect("a message");
        assert!(matches!(Message::decode_first(&welcome.payload), Ok(Message::Welcome { .. })));
        rogue
    }

    /// Sends its request to push, and receives nothing yet.
    pub(crate) async fn connect_as(serving: &Serving, session: u8) -> Rogue {
        let rogue = Rogue(connect(&serving.endpoint).await);
        rogue.send_message(&Message::Hello { session: [session; 16], intent: push() }).await;
        rogue
    }

    /// Accepts a peer that fetches, and receives its request.
    pub(crate) async fn welcome(endpoint: &Endpoint) -> Rogue {
        let rogue = Rogue(endpoint.accept().await.expect("an association"));
        let hello = rogue.0.recv().await.expect("open").expect("a message");
        assert!(matches!(Message::decode_first(&hello.payload), Ok(Message::Hello { .. })));
        rogue
            .send_message(&Message::Welcome { terms: Terms::Give { sender: SenderId::from_bytes([8; 16]) } })
            .await;
        while rogue.receive_message().await != Message::WantEnd {}
        rogue
    }

    /// Begins to fetch.
    pub(crate) async fn ask(serving: &Serving) -> Rogue {
        let rogue = Rogue(connect(&serving.endpoint).await);
        rogue
            .send_message(&Message::Hello {
                session: [1; 16],
                intent: Intent::Pull { window_blocks: 4, links: Links::Copy, delete: false },
            })
            .await;
        assert!(matches!(rogue.receive_message().await, Message::Welcome { .. }));
        rogue
    }

    /// Receives until the association ends, and returns the reason of a refusal, if any.
    pub(crate) async fn last_failure(&self) -> Option<Reason> {
        let mut reason = None;
        while let Ok(Some(packet)) = self.0.recv().await {
            if let Ok(Message::Fail(failure)) = Message::decode(&packet.payload) {
                reason = Some(failure.reason);
            }
        }
        reason
    }

    pub(crate) async fn send_message(&self, message: &Message) {
        self.0.send(message.encode(), SendOptions::default()).await.expect("taken");
    }

    pub(crate) async fn data(&self, bytes: Vec<u8>) {
        let options = SendOptions { stream: 1, unordered: true, ..SendOptions::default() };
        self.0.send(bytes, options).await.expect("taken");
    }

    pub(crate) async fn offer(&self, id: u32, name: &str, kind: Kind) {
        self.offer_with_mode(id, name, kind, 0o644).await;
    }

    pub(crate) async fn offer_with_mode(&self, id: u32, name: &str, kind: Kind, mode: u16) {
        let changed = FileTime { seconds: 5, nanos: 0 };
        self.send_message(&Message::Offer(Offer { id, name: name.into(), kind, changed, mode })).await;
    }

    pub(crate) async fn receive_message(&self) -> Message {
        loop {
            let packet = self.0.recv().await.expect("open").expect("a message");
            match Message::decode(&packet.payload) {
                Ok(Message::Alive | Message::Total { .. }) => {}
                Ok(message) => return message,
                Err(_) => return Message::decode_first(&packet.payload).expect("a message"),
            }
        }
    }

    /// Aborts the association.
    pub(crate) fn end(&self) {
        self.0.abort();
    }

    pub(crate) async fn refused(&self) -> Reason {
        match self.receive_message().await {
            Message::Done { outcome: Outcome::Failed(failure), .. } => failure.reason,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn names_cannot_leave_the_folder() {
    run(async {
        let serving = Serving::usual();
        let outside = tempfile::tempdir().expect("a folder");
        symlink(outside.path(), serving.dir.path().join("out")).expect("linked");
        symlink(outside.path().join("target"), serving.dir.path().join("link")).expect("linked");
        let rogue = Rogue::greet(&serving).await;
        let file = || Kind::File { size_bytes: 0, first: None };
        let names_tried = ["../x", "/x", "a/../../x", "", ".x.anabranch-part", "a\0b", "out/../../x"];
        for (id, name) in (0..).zip(names_tried) {
            rogue.offer(id, name, file()).await;
            assert_eq!(rogue.refused().await, Reason::BadName, "{name:?}");
        }
        for (id, name, kind) in [(10, "out/x", file()), (11, "out/d", Kind::Folder), (12, "link", file())] {
            rogue.offer(id, name, kind).await;
            rogue.refused().await;
        }
        rogue.offer(13, "out", Kind::FolderEnd).await;
        rogue.refused().await;
        assert!(names(outside.path()).is_empty());
        assert_eq!(names(serving.dir.path()), ["link", "out"]);
    });
}

#[test]
fn a_block_that_arrives_wrong_is_asked_for_again_and_never_stored() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::greet(&serving).await;
        rogue.offer(0, "file", Kind::File { size_bytes: 4, first: None }).await;
        assert!(matches!(rogue.receive_message().await, Message::Answer { .. }));
        let segment = |content: &[u8], hash: Hash| {
            let mut bytes = [&0_u32.to_be_bytes()[..], &0_u64.to_be_bytes(), &4_u32.to_be_bytes()].concat();
            bytes.extend_from_slice(&0_u32.to_be_bytes());
            bytes.extend_from_slice(content);
            bytes.extend_from_slice(&hash.0);
            assert!(Segment::decode(bytes.clone().into()).is_ok());
            bytes
        };
        rogue.data(segment(b"evil", Hash::of(b"good"))).await;
        assert_eq!(rogue.receive_message().await, Message::Block { id: 0, index: 0, good: false });
        rogue.data(segment(b"good", Hash::of(b"good"))).await;
        assert_eq!(rogue.receive_message().await, Message::Block { id: 0, index: 0, good: true });
        // A file with a wrong root is not stored either.
        rogue.send_message(&Message::End { id: 0, size_bytes: 4, root: Hash::of(b"something else") }).await;
        assert_eq!(rogue.refused().await, Reason::Corrupt);
        assert!(names(serving.dir.path()).is_empty());
    });
}

#[test]
fn garbled_transfer_ends_alone_with_the_reason() {
    run(async {
        let serving = Serving::usual();
        let mut newer = Message::Hello { session: [1; 16], intent: push() }.encode();
        newer[5] = 77;
        for first in [noise(1, 100), b"GET / HTTP/1.1\r\n".to_vec(), newer, Message::Alive.encode()] {
            let rogue = Rogue(connect(&serving.endpoint).await);
            rogue.0.send(first, SendOptions::default()).await.expect("taken");
            assert!(
                matches!(rogue.receive_message().await, Message::Welcome { .. }),
                "with the version of the server"
            );
            assert!(
                matches!(rogue.receive_message().await, Message::Fail(failure) if failure.reason == Reason::Protocol)
            );
        }
        for (stream, bytes) in [(0, noise(2, 50)), (1, noise(3, 5)), (2, vec![1]), (0, vec![0; 200_000])] {
            let rogue = Rogue::greet(&serving).await;
            rogue.0.send(bytes, SendOptions { stream, ..SendOptions::default() }).await.expect("taken");
            while let Ok(Some(_)) = rogue.0.recv().await {}
        }
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("file"), "content").expect("written");
        serving.send(vec![SendSource::path(from.path().join("file"))]).await.0.expect("it still serves");
        assert_eq!(names(serving.dir.path()), ["file"]);
    });
}

/// A peer that violates the protocol during a transfer receives the reason in a message that it can decode.
#[test]
fn garbled_peer_mid_transfer_gets_the_reason_and_no_second_welcome() {
    run(async {
        let serving = Serving::usual();
        for pushes in [true, false] {
            let rogue = if pushes { Rogue::greet(&serving).await } else { Rogue::ask(&serving).await };
            rogue.0.send(vec![0xff; 50], SendOptions::default()).await.expect("taken");
            let heard = rogue.receive_message().await;
            assert!(
                matches!(&heard, Message::Fail(failure) if failure.reason == Reason::Protocol),
                "{heard:?}"
            );
        }
    });
}
