//! A peer cannot harm the files and the disk of a receiver.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anabranch_net::SendOptions;
use anabranch_transfer::protocol::{Answer, FileTime, Kind, Message, Offer, Outcome, Reason};
use anabranch_transfer::{BLOCK_BYTES, Hash, OnClash, SendSource, SenderId, ServerOptions};

use crate::loopback::failures::Rogue;
use crate::loopback::support::{
    JOURNAL_ENDING, PART_ENDING, Serving, names, noise, rate, run, unfinished, until,
};

const MIB: usize = BLOCK_BYTES as usize;

/// Much longer than stopping takes, and much shorter than the stopped operation.
const LET_GO_WITHIN: Duration = Duration::from_secs(20);

impl Rogue {
    async fn end_folder(&self, id: u32, name: &str) -> Outcome {
        let changed = FileTime { seconds: 5, nanos: 0 };
        let end = Offer { id, name: name.into(), kind: Kind::FolderEnd, changed, mode: 0 };
        self.send_message(&Message::Offer(end)).await;
        match self.receive_message().await {
            Message::Done { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a block in segments of the standard size.
    async fn block(&self, id: u32, index: u64, content: &[u8]) {
        for (at, piece) in content.chunks(60 << 10).enumerate() {
            let offset = (at * (60 << 10)) as u32;
            let mut bytes = id.to_be_bytes().to_vec();
            bytes.extend(index.to_be_bytes());
            bytes.extend((content.len() as u32).to_be_bytes());
            bytes.extend(offset.to_be_bytes());
            bytes.extend(piece);
            if offset as usize + piece.len() == content.len() {
                bytes.extend(Hash::of(content).0);
            }
            let options = SendOptions { stream: 1, unordered: true, ..SendOptions::default() };
            // A server that refuses the first segment may end the association before the others are sent.
            let _ = self.0.send(bytes, options).await;
        }
    }

    async fn stream(&self, id: u32, name: &str) {
        self.offer(id, name, Kind::Stream { token: [3; 16] }).await;
        assert!(matches!(self.receive_message().await, Message::Answer { .. }));
    }

    async fn fails(&self) -> Reason {
        match self.receive_message().await {
            Message::Fail(failure) => failure.reason,
            other => panic!("{other:?}"),
        }
    }
}

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::open(path).expect("open").set_modified(time).expect("set");
}

fn state(path: &Path) -> (SystemTime, u32) {
    let metadata = fs::symlink_metadata(path).expect("metadata");
    (metadata.modified().expect("a time"), metadata.permissions().mode() & 0o7777)
}

#[test]
fn end_of_a_folder_changes_only_received_entries() {
    run(async {
        let serving = Serving::usual();
        let there = |name: &str| serving.dir.path().join(name);
        fs::create_dir(there("old")).expect("made");
        fs::write(there("file"), "content").expect("written");
        std::os::unix::fs::symlink("file", there("link")).expect("linked");
        for name in ["old", "file"] {
            set_time(&there(name), 1_000_000);
        }
        let before = ["old", "file", "link"].map(|name| state(&there(name)));
        let rogue = Rogue::greet(&serving).await;
        for (id, name) in (0..).zip(["old", "file", "link", "nothing"]) {
            assert!(matches!(rogue.end_folder(id, name).await, Outcome::Failed(_)), "{name} was not offered");
        }
        for (id, name) in [(10, "file"), (12, "link")] {
            rogue.offer(id, name, Kind::Folder).await;
            assert_eq!(rogue.refused().await, Reason::Clash);
            assert!(matches!(rogue.end_folder(id + 1, name).await, Outcome::Failed(_)), "{name} is none");
        }
        for (id, name) in [(20, "old"), (22, "new")] {
            rogue.offer(id, name, Kind::Folder).await;
            assert!(matches!(
                rogue.receive_message().await,
                Message::Done { outcome: Outcome::Stored { .. }, .. }
            ));
            assert_eq!(rogue.end_folder(id + 1, name).await, Outcome::Stored { renamed: None });
        }
        assert!(matches!(rogue.end_folder(30, "new").await, Outcome::Failed(_)), "a folder ends once");
        assert_eq!(["old", "file", "link"].map(|name| state(&there(name))), before);
        let five = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        assert_eq!(state(&there("new")), (five, 0o700), "its owner can still remove it");
    });
}

#[test]
fn a_folder_gets_its_time_although_the_association_was_lost_meanwhile() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let tree = from.path().join("tree");
        fs::create_dir_all(tree.join("sub")).expect("made");
        fs::write(tree.join("sub/file"), noise(1, 4 * MIB)).expect("written");
        for name in ["sub", "."] {
            fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o750)).expect("set");
            set_time(&tree.join(name), 1_000_000);
        }
        let cut = async {
            until(|| serving.server.running() > 0).await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            serving.server.abort_all();
            std::future::pending::<()>().await;
        };
        let (ended, totals, events) = tokio::select! {
            sent = serving.send_at(vec![SendSource::path(&tree)], Some(rate(5_000_000))) => sent,
            () = cut => unreachable!(),
        };
        ended.expect("sent");
        assert!(events.text().contains("Reconnected"), "{}", events.text());
        assert_eq!((totals.done_files, totals.failed_files), (1, 0), "{}", events.text());
        for name in ["tree", "tree/sub"] {
            assert_eq!(state(&serving.dir.path().join(name)), state(&tree), "{name}");
        }
    });
}

#[test]
fn a_file_that_does_not_fit_is_refused_before_anything_is_sent() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::greet(&serving).await;
        for (id, size_bytes) in [(0, 1 << 50), (1, u64::MAX)] {
            rogue.offer(id, "file", Kind::File { size_bytes, first: None }).await;
            assert_eq!(rogue.refused().await, Reason::NoSpace);
        }
        assert!(names(serving.dir.path()).is_empty());
    });
}

#[test]
fn distant_block_ends_its_file_without_allocation() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::greet(&serving).await;
        rogue.stream(0, "far").await;
        rogue.block(0, 1 << 40, &noise(1, MIB)).await;
        assert_eq!(rogue.refused().await, Reason::NoSpace);
        drop(rogue);
        let let_go = tokio::time::timeout(LET_GO_WITHIN, serving.idle()).await;
        let_go.expect("the transfer's place is free");
        assert!(names(serving.dir.path()).is_empty());
    });
}

#[test]
fn a_block_that_is_held_or_behind_the_end_does_not_come() {
    run(async {
        let (full, short) = (noise(1, MIB), noise(2, 5));
        for second in [(0, &full), (1, &full), (0, &short), (2, &short)] {
            let serving = Serving::usual();
            let rogue = Rogue::greet(&serving).await;
            rogue.stream(0, "piped").await;
            // The second block is the last one.
            for (index, content) in [(0, &full), (1, &short)] {
                rogue.block(0, index, content).await;
                assert!(matches!(rogue.receive_message().await, Message::Block { good: true, .. }));
            }
            rogue.block(0, second.0, second.1).await;
            assert_eq!(rogue.fails().await, Reason::Protocol, "{}", second.0);
        }
    });
}

#[test]
fn a_comparison_ends_with_its_association() {
    run(async {
        let serving = Serving::usual();
        // It occupies no space, and takes longer to read than any test.
        let size_bytes = 1 << 42;
        let made = fs::File::create(serving.dir.path().join("huge")).expect("made");
        if made.set_len(size_bytes).is_err() {
            eprintln!("left out: no such files here");
            return;
        }
        let rogue = Rogue::greet(&serving).await;
        rogue.offer(0, "huge", Kind::File { size_bytes, first: None }).await;
        assert_eq!(rogue.receive_message().await, Message::Answer { id: 0, answer: Answer::Compare });
        rogue.send_message(&Message::End { id: 0, size_bytes, root: Hash::of(b"") }).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(serving.server.running(), 1, "it compares");
        rogue.0.abort();
        let let_go = tokio::time::timeout(LET_GO_WITHIN, serving.idle()).await;
        let_go.expect("the transfer's place is free");
    });
}

#[test]
fn planted_blocks_are_detected_and_the_file_restarts() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        let content = noise(1, 4 * MIB);
        fs::write(&file, &content).expect("written");
        set_time(&file, 5);
        // An attacker needs only what the sender transmits in the clear.
        let rogue = Rogue::greet(&serving).await;
        let first = Some(Hash::of(&content[..MIB]));
        rogue.offer(0, "file", Kind::File { size_bytes: 4 << 20, first }).await;
        assert!(matches!(rogue.receive_message().await, Message::Answer { answer: Answer::Take { .. }, .. }));
        for index in [1, 2] {
            rogue.block(0, index, &noise(2, MIB)).await;
            assert!(matches!(rogue.receive_message().await, Message::Block { good: true, .. }));
        }
        rogue.0.abort();
        serving.idle().await;
        unfinished(serving.dir.path(), JOURNAL_ENDING);
        let (ended, totals, events) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("sent");
        assert!(fs::read(serving.dir.path().join("file")).expect("there") == content);
        assert!(
            serving.events.text().contains("was discarded; the transfer of this file starts over"),
            "{}",
            serving.events.text()
        );
        assert!(events.text().contains(&format!("reused_bytes: {}", 2 * MIB)), "they were believed at first");
        assert_eq!((totals.done_files, totals.failed_files), (1, 0));
        assert_eq!((totals.held_bytes, totals.reused_bytes), (4 << 20, 0), "and are not counted in the end");
    });
}

#[test]
fn equal_size_and_time_of_foreign_file_are_no_proof() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let (file, planted) = (from.path().join("file"), from.path().join("planted"));
        let content = noise(1, 2 * MIB);
        fs::create_dir(&planted).expect("made");
        fs::write(&file, &content).expect("written");
        fs::write(planted.join("file"), noise(2, 2 * MIB)).expect("written");
        for path in [&file, &planted.join("file")] {
            set_time(path, 1_000_000);
        }
        let stranger = SenderId::from_bytes([8; 16]);
        serving.send_as(stranger, vec![SendSource::path(planted.join("file"))], None).await.0.expect("sent");
        assert_eq!(state(&serving.dir.path().join("file")).0, state(&file).0, "the same size and time");
        let (ended, totals, events) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("the transfer itself goes well");
        assert_eq!((totals.done_files, totals.failed_files), (0, 1), "{}", events.text());
        assert!(events.text().contains("with other content"), "{}", events.text());
    });
}

#[test]
fn changed_and_backdated_stored_file_counts_as_different() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        fs::write(&file, noise(1, 2 * MIB)).expect("written");
        set_time(&file, 1_000_000);
        serving.send(vec![SendSource::path(&file)]).await.0.expect("sent");
        let there = serving.dir.path().join("file");
        // The file system's clock may need a moment to advance.
        tokio::time::sleep(Duration::from_millis(50)).await;
        fs::write(&there, noise(2, 2 * MIB)).expect("written");
        set_time(&there, 1_000_000);
        let (ended, totals, events) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("the transfer itself goes well");
        assert_eq!((totals.done_files, totals.failed_files), (0, 1), "{}", events.text());
    });
}

#[test]
fn unfinished_file_of_one_sender_is_not_used_for_another() {
    run(async {
        let serving = Serving::start(OnClash::Rename, ServerOptions::default());
        let from = tempfile::tempdir().expect("a folder");
        let (file, other) = (from.path().join("file"), from.path().join("other"));
        fs::create_dir(&other).expect("made");
        let (ours, theirs) = (noise(1, 8 * MIB), noise(2, 3 * MIB));
        fs::write(&file, &ours).expect("written");
        fs::write(other.join("file"), &theirs).expect("written");
        let first = serving.send_until(vec![SendSource::path(&file)], rate(20_000_000), 3 << 20).await;
        let part = unfinished(serving.dir.path(), PART_ENDING);
        let stranger = SenderId::from_bytes([8; 16]);
        let (ended, totals, _) =
            serving.send_as(stranger, vec![SendSource::path(other.join("file"))], None).await;
        ended.expect("sent");
        assert_eq!((totals.done_files, totals.reused_bytes), (1, 0));
        assert_eq!(unfinished(serving.dir.path(), PART_ENDING), part, "it is still there");
        let (ended, totals, _) = serving.send(vec![SendSource::path(&file)]).await;
        ended.expect("sent");
        assert!(totals.reused_bytes >= first.held_bytes, "{first:?} {totals:?}");
        assert!(fs::read(serving.dir.path().join("file")).expect("there") == theirs);
        assert!(fs::read(serving.dir.path().join("file.1")).expect("there") == ours);
    });
}

#[test]
fn two_senders_of_one_name_do_not_wait_for_each_other() {
    run(async {
        let serving = Serving::start(OnClash::Rename, ServerOptions::default());
        let from = tempfile::tempdir().expect("a folder");
        let file = from.path().join("file");
        let content = noise(1, 2 * MIB);
        fs::write(&file, &content).expect("written");
        let slow = serving.send_at(vec![SendSource::path(&file)], Some(rate(2_000_000)));
        let quick = async {
            while names(serving.dir.path()).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let stranger = SenderId::from_bytes([8; 16]);
            serving.send_as(stranger, vec![SendSource::path(&file)], None).await
        };
        let (slow, quick) = tokio::join!(slow, quick);
        for (ended, totals, events) in [slow, quick] {
            ended.expect("sent");
            assert_eq!((totals.done_files, totals.failed_files), (1, 0), "{}", events.text());
        }
        for name in ["file", "file.1"] {
            assert!(fs::read(serving.dir.path().join(name)).expect("there") == content, "{name}");
        }
    });
}
