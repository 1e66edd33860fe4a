//! What a peer that breaks the rules can do to a receiver. For version 1 of the transfer protocol.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anabranch_net::{Protection, Association, Host, Peer, Route, SendOptions, config};
use anabranch_transfer::protocol::{Answer, Changed, Intent, Kind, Message, Offer, Outcome, Run};
use anabranch_transfer::{BLOCK_BYTES, Hash, OnClash, ServerOptions, Source};

use crate::support::{Serving, connect, noise, run};

const MIB: usize = BLOCK_BYTES as usize;
const PIECE: usize = 60 << 10;

/// A peer that says what it likes, and that it is there only when a test lets it.
struct Rogue(Association);

impl Rogue {
    async fn greet(serving: &Serving, session: u8) -> Rogue {
        let rogue = Rogue(connect(&serving.host).await);
        assert!(rogue.is_welcome(session).await);
        rogue
    }

    async fn is_welcome(&self, session: u8) -> bool {
        self.say(&Message::Hello { session: [session; 16], intent: Intent::Push }).await;
        matches!(self.hear().await, Some(Message::Welcome { .. }))
    }

    async fn say(&self, message: &Message) {
        // A server that has heard enough takes no more.
        let _ = self.0.send(message.encode(), SendOptions::default()).await;
    }

    /// The next message but signs of life; `None` once the association has ended.
    async fn hear(&self) -> Option<Message> {
        loop {
            let packet = self.0.recv().await.ok()??;
            match Message::decode(&packet.payload).or_else(|_| Message::decode_first(&packet.payload)) {
                Ok(Message::Alive) => {}
                message => return message.ok(),
            }
        }
    }

    async fn offer(&self, id: u32, name: &str, kind: Kind, seconds: i64) -> Option<Message> {
        let changed = Changed { seconds, nanos: 0 };
        self.say(&Message::Offer(Offer { id, name: name.to_owned(), kind, changed, mode: 0 })).await;
        self.hear().await
    }

    /// What the receiver says that it has of an offered file.
    async fn begin(&self, id: u32, name: &str, kind: Kind, seconds: i64) -> Vec<Run> {
        match self.offer(id, name, kind, seconds).await {
            Some(Message::Answer { answer: Answer::Take { have }, .. }) => have,
            other => panic!("{other:?}"),
        }
    }

    async fn block(&self, id: u32, index: u64, content: &[u8]) {
        for (number, piece) in content.chunks(PIECE).enumerate() {
            let at = number * PIECE;
            let mut bytes = [&id.to_be_bytes()[..], &index.to_be_bytes()].concat();
            bytes.extend((content.len() as u32).to_be_bytes());
            bytes.extend((at as u32).to_be_bytes());
            bytes.extend(piece);
            if at + piece.len() == content.len() {
                bytes.extend(Hash::of(content).0);
            }
            let options = SendOptions { stream: 1, unordered: true, ..SendOptions::default() };
            self.0.send(bytes, options).await.expect("taken");
        }
        let answer = self.hear().await;
        assert!(matches!(answer, Some(Message::Block { good: true, .. })), "{answer:?}");
    }
}

fn file(size_bytes: usize, first: Option<Hash>) -> Kind {
    Kind::File { size_bytes: size_bytes as u64, first }
}

fn date_back(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
    fs::File::open(path).expect("open").set_modified(time).expect("set");
}

#[test]
fn the_end_of_a_folder_leaves_files_as_they_are() {
    run(async {
        let serving = Serving::usual();
        let path = serving.dir.path().join("file");
        fs::write(&path, "content").expect("written");
        let mode = || fs::metadata(&path).expect("there").permissions().mode() & 0o7777;
        let before = mode();
        let rogue = Rogue::greet(&serving, 1).await;
        rogue.offer(0, "file", Kind::FolderEnd, 5).await;
        assert_eq!(mode(), before, "the permissions of a file were changed");
    });
}

#[test]
fn a_block_far_away_makes_no_long_journal() {
    run(async {
        let serving = Serving::usual();
        let rogue = Rogue::greet(&serving, 1).await;
        rogue.begin(0, "far", Kind::Stream { token: [3; 16] }, 5).await;
        // As far away as every file system of today takes it. The attack had 2^40, on one that takes more.
        rogue.block(0, 1 << 23, b"content").await;
        rogue.0.abort();
        serving.idle().await;
        for entry in fs::read_dir(serving.dir.path()).expect("a folder") {
            let entry = entry.expect("an entry");
            let (name, length) = (entry.file_name(), entry.metadata().expect("metadata").len());
            let is_journal = name.to_string_lossy().ends_with("journal");
            assert!(!is_journal || length < 1 << 20, "one block made a journal of {length} B");
        }
    });
}

#[test]
fn blocks_that_were_planted_are_found_out() {
    run(async {
        let serving = Serving::usual();
        let from = tempfile::tempdir().expect("a folder");
        let path = from.path().join("file");
        let content = noise(1, 4 * MIB);
        fs::write(&path, &content).expect("written");
        date_back(&path);
        let rogue = Rogue::greet(&serving, 1).await;
        // Name, size, time and first hash are what its sender says aloud.
        rogue.begin(0, "file", file(4 * MIB, Some(Hash::of(&content[..MIB]))), 5).await;
        for index in [1, 2] {
            rogue.block(0, index, &noise(2, MIB)).await;
        }
        rogue.0.abort();
        serving.idle().await;
        serving.send(vec![Source::path(&path)]).await.0.expect("sent");
        let stored = fs::read(serving.dir.path().join("file")).expect("there");
        assert!(stored == content, "planted blocks were stored as verified");
    });
}

#[test]
fn another_sender_of_the_name_leaves_an_unfinished_file_alone() {
    run(async {
        let serving = Serving::usual();
        let kind = || file(4 * MIB, Some(Hash::of(b"first")));
        let first = Rogue::greet(&serving, 1).await;
        first.begin(0, "file", kind(), 5).await;
        for index in [1, 2] {
            first.block(0, index, &noise(1, MIB)).await;
        }
        first.0.abort();
        serving.idle().await;
        let other = Rogue::greet(&serving, 2).await;
        other.begin(0, "file", kind(), 6).await;
        other.0.abort();
        serving.idle().await;
        let first = Rogue::greet(&serving, 3).await;
        let have = first.begin(0, "file", kind(), 5).await;
        assert_eq!(have, [Run { first: 1, count: 2 }], "what was unfinished was thrown away");
    });
}

#[test]
fn a_stream_is_as_long_as_what_arrived_of_it() {
    run(async {
        for size_bytes in [3, 1_000] {
            let serving = Serving::usual();
            let rogue = Rogue::greet(&serving, 1).await;
            rogue.begin(0, "stream", Kind::Stream { token: [3; 16] }, 5).await;
            rogue.block(0, 0, b"content").await;
            let root = Hash::of(&Hash::of(b"content").0);
            rogue.say(&Message::End { id: 0, size_bytes, root }).await;
            let answer = rogue.hear().await;
            let is_stored = matches!(answer, Some(Message::Done { outcome: Outcome::Stored { .. }, .. }));
            assert!(!is_stored, "7 B were stored and verified as {size_bytes} B");
        }
    });
}

#[test]
fn a_peer_that_does_not_read_is_not_answered_without_limit() {
    run(async {
        let options = ServerOptions { silence: Duration::from_secs(1), ..ServerOptions::default() };
        let serving = Serving::start(OnClash::Refuse, options);
        let rogue = Rogue::greet(&serving, 1).await;
        let name = format!("../{}", "x".repeat(200));
        let changed = Changed { seconds: 5, nanos: 0 };
        let mut taken_bytes = 0;
        for id in 0..200_000 {
            // Refused with a text that is longer than the offer.
            let offer = Offer { id, name: name.clone(), kind: file(0, None), changed, mode: 0 };
            let message = Message::Offer(offer).encode();
            let length = message.len();
            if rogue.0.send(message, SendOptions::default()).await.is_err() {
                return;
            }
            taken_bytes += length;
        }
        panic!("{taken_bytes} B of offers were taken from a peer that read no answer");
    });
}

/// An association from this address.
async fn connect_from(serving: &Serving, local: IpAddr) -> Rogue {
    let host = Host::builder(Protection::Insecure).local(SocketAddr::new(local, 0)).bind().expect("bound");
    let route = Route { local, remote: serving.host.local_addresses()[0] };
    let connected = host.connect(Peer::new([route]), config("cmt").expect("a scheme")).await;
    Rogue(connected.expect("connected"))
}

#[test]
fn one_address_does_not_take_every_place() {
    run(async {
        let serving = Serving::usual();
        let mut idle = Vec::new();
        for session in 0..64 {
            let rogue = connect_from(&serving, [127, 0, 0, 3].into()).await;
            if rogue.is_welcome(session).await {
                idle.push(rogue);
            }
        }
        let other = connect_from(&serving, [127, 0, 0, 5].into()).await;
        let count = idle.len();
        assert!(
            other.is_welcome(100).await,
            "{count} idle transfers of one address left no place for another one"
        );
    });
}

#[test]
fn only_the_holder_of_a_contended_file_is_ended() {
    run(async {
        let serving = Serving::usual();
        let holder = Rogue::greet(&serving, 1).await;
        holder.begin(0, "wanted", file(4 * MIB, Some(Hash::of(b"first"))), 5).await;
        let innocent = Rogue::greet(&serving, 2).await;
        innocent.begin(0, "other", file(4 * MIB, Some(Hash::of(b"first"))), 5).await;
        // Both are silent for longer than the limit of 5 s.
        tokio::time::sleep(Duration::from_millis(5_500)).await;
        let from = tempfile::tempdir().expect("a folder");
        fs::write(from.path().join("wanted"), "content").expect("written");
        serving.send(vec![Source::path(from.path().join("wanted"))]).await.0.expect("the file is free");
        let further = innocent.offer(1, "further", file(4 * MIB, Some(Hash::of(b"first"))), 5).await;
        let goes_on = matches!(further, Some(Message::Answer { id: 1, .. }));
        assert!(goes_on, "a transfer was ended that did not hold the file: {further:?}");
    });
}
