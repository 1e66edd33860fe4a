//! Tests of offers that wait for another transfer or for the system, and of the steps that they resume with.

use std::fs;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::machine::Machine;
use super::{DeletionInitiator, Input, Mode, Receiving, Store};
use crate::accept::Accept;
use crate::block::{Hash, Root};
use crate::cancel::Cancel;
use crate::descriptors::Share;
use crate::framing::{IncomingMessage, OutgoingMessage};
use crate::moment::Activity;
use crate::name::Name;
use crate::part_lock::PartLock;
use crate::protocol::{
    Answer, FileTime, Kind, Listing, Message, Offer, OnClash, Outcome, Segment, read_block,
};
use crate::report::Report;
use crate::store::{Begin, Folder, Part};

/// Content of the stored file, of the offered one, and of one of the same size.
const OLD: &[u8] = b"old content";
const NEW: &[u8] = b"new content";
const OTHER: &[u8] = b"another one";

struct Receiver {
    machine: Machine,
    outputs: mpsc::Receiver<OutgoingMessage>,
}

fn file(content: &[u8]) -> Kind {
    Kind::File { size_bytes: content.len() as u64, first: None }
}

fn offer(id: u32, name: &str, kind: Kind) -> Offer {
    Offer { id, name: name.into(), kind, changed: FileTime { seconds: 5, nanos: 0 }, mode: 0o750 }
}

fn root(content: &[u8]) -> Hash {
    let mut root = Root::default();
    root.add(Hash::of(content));
    root.finish()
}

impl Receiver {
    fn new(folder: &Folder, mode: Mode) -> Self {
        let (output, outputs) = mpsc::channel(1000);
        let receiving = Receiving {
            store: Store::Folder(folder.clone()),
            accept: Accept::default(),
            tally: None,
            window_blocks: 300,
            silence: Duration::from_secs(60),
            report: Report::default(),
            activity: Activity::now(),
            first_offer_within: None,
            part_lock: PartLock::uncontended(),
            mode,
            deletion: Some(DeletionInitiator::Source),
        };
        Receiver { machine: Machine::new(receiving, output, Cancel::default(), || {}), outputs }
    }

    /// Handles a message, and returns the messages that answer it.
    fn receive_message(&mut self, message: Message) -> Vec<Message> {
        self.take(Input::Heard(IncomingMessage::Control(message)))
    }

    fn tick(&mut self) -> Vec<Message> {
        self.take(Input::Tick)
    }

    fn take(&mut self, input: Input) -> Vec<Message> {
        self.machine.take(input).expect("the protocol is kept to");
        self.machine.settle();
        // Other offers may begin after files were committed.
        self.machine.take(Input::Wake).expect("the protocol is kept to");
        std::iter::from_fn(|| self.outputs.try_recv().ok())
            .map(|said| match said {
                OutgoingMessage::Control(bytes) => Message::decode(&bytes).expect("a message"),
                OutgoingMessage::Data(_) => panic!("a receiver sends no data"),
            })
            .collect()
    }

    /// Sends a file of one block, and returns the answers.
    fn send(&mut self, id: u32, content: &[u8]) -> Vec<Message> {
        let fill = |mut buffer: &mut [u8]| std::io::Write::write_all(&mut buffer, content);
        let block = read_block(id, 0, u32::try_from(content.len()).expect("short"), fill).expect("read");
        for message in block.messages {
            self.take(Input::Heard(IncomingMessage::Data(Segment::decode(message).expect("a segment"))));
        }
        self.receive_message(Message::End { id, size_bytes: content.len() as u64, root: root(content) })
    }
}

fn folder(on_clash: OnClash) -> (TempDir, Folder) {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), on_clash).expect("a folder");
    (dir, folder)
}

/// Holds the part file of an offer, as another transfer does.
fn hold(folder: &Folder, offer: &Offer) -> Box<Part> {
    let name = Name::new(offer.name.raw()).expect("a name");
    match folder.take(&name, offer, &Cancel::default()).expect("opened") {
        Begin::Take(part) => part,
        other => panic!("{other:?}"),
    }
}

fn take_all(id: u32) -> Message {
    Message::Answer { id, answer: Answer::Take { have: Vec::new() } }
}

fn stored(id: u32) -> Message {
    Message::Done { id, outcome: Outcome::Stored { renamed: None } }
}

/// Starts the comparison of a file that differs, while another transfer holds its part file.
fn compare_busy(dir: &TempDir, folder: &Folder) -> (Receiver, Box<Part>) {
    fs::write(dir.path().join("file"), OLD).expect("written");
    let part = hold(folder, &offer(0, "file", file(NEW)));
    let mut receiver = Receiver::new(folder, Mode::Store);
    let answers = receiver.receive_message(Message::Offer(offer(0, "file", file(NEW))));
    assert_eq!(answers, [Message::Answer { id: 0, answer: Answer::Compare }]);
    let end = Message::End { id: 0, size_bytes: NEW.len() as u64, root: root(NEW) };
    assert_eq!(receiver.receive_message(end), []);
    for _ in 0..3 {
        assert_eq!(receiver.tick(), [], "the source is not asked again");
    }
    (receiver, part)
}

#[test]
fn busy_part_resumes_interrupted_comparison() {
    let (dir, folder) = folder(OnClash::Overwrite);
    let (mut receiver, part) = compare_busy(&dir, &folder);
    drop(part);
    assert_eq!(receiver.tick(), [take_all(0)]);
    assert!(receiver.send(0, NEW).contains(&stored(0)));
    assert_eq!(fs::read(dir.path().join("file")).expect("there"), NEW);
}

#[test]
fn file_stored_by_others_during_wait_is_compared_again() {
    for (content, is_same) in [(NEW, true), (OTHER, false)] {
        let (dir, folder) = folder(OnClash::Overwrite);
        let (mut receiver, part) = compare_busy(&dir, &folder);
        fs::remove_file(dir.path().join("file")).expect("removed");
        fs::write(dir.path().join("file"), content).expect("written");
        drop(part);
        let identical = Message::Done { id: 0, outcome: Outcome::Identical };
        assert_eq!(receiver.tick(), [if is_same { identical } else { take_all(0) }]);
    }
}

#[test]
fn file_that_vanishes_during_wait_is_taken() {
    let (dir, folder) = folder(OnClash::Refuse);
    fs::write(dir.path().join("file"), OLD).expect("written");
    let mut receiver = Receiver::new(&folder, Mode::Store);
    receiver.receive_message(Message::Offer(offer(0, "file", file(NEW))));
    fs::remove_file(dir.path().join("file")).expect("removed");
    let end = Message::End { id: 0, size_bytes: NEW.len() as u64, root: root(NEW) };
    assert_eq!(receiver.receive_message(end), [take_all(0)]);
}

#[test]
fn busy_part_before_an_answer_resumes_with_a_comparison() {
    let (dir, folder) = folder(OnClash::Overwrite);
    let part = hold(&folder, &offer(0, "file", file(NEW)));
    let mut receiver = Receiver::new(&folder, Mode::Store);
    assert_eq!(receiver.receive_message(Message::Offer(offer(0, "file", file(NEW)))), []);
    fs::write(dir.path().join("file"), OLD).expect("written");
    drop(part);
    assert_eq!(receiver.tick(), [Message::Answer { id: 0, answer: Answer::Compare }]);
    let end = Message::End { id: 0, size_bytes: NEW.len() as u64, root: root(NEW) };
    assert_eq!(receiver.receive_message(end), [take_all(0)]);
    assert!(receiver.send(0, NEW).contains(&stored(0)));
}

#[test]
fn busy_part_holds_up_folder_end_and_deletion_and_no_other_offer() {
    let (dir, folder) = folder(OnClash::Overwrite);
    let mut receiver = Receiver::new(&folder, Mode::Store);
    assert_eq!(receiver.receive_message(Message::Offer(offer(0, "d", Kind::Folder))), [stored(0)]);
    let part = hold(&folder, &offer(1, "d/busy", file(NEW)));
    assert_eq!(receiver.receive_message(Message::Offer(offer(1, "d/busy", file(NEW)))), []);
    let link = Kind::Link { target: "busy".into() };
    assert_eq!(receiver.receive_message(Message::Offer(offer(2, "d/link", link))), [stored(2)]);
    assert_eq!(receiver.receive_message(Message::Offer(offer(3, "d/file", file(NEW)))), [take_all(3)]);
    assert!(receiver.send(3, NEW).contains(&stored(3)));
    assert_eq!(receiver.receive_message(Message::Offer(offer(4, "d", Kind::FolderEnd))), []);
    drop(part);
    assert_eq!(receiver.tick(), [take_all(1)]);
    let ends = receiver.send(1, NEW);
    assert!(ends.contains(&stored(1)) && ends.ends_with(&[stored(4)]), "{ends:?}");
    fs::write(dir.path().join("d/surplus"), "").expect("written");
    // A part file that another transfer holds stays, and blocks no deletion.
    let _held = hold(&folder, &offer(9, "d/unfinished", file(NEW)));
    let names = ["busy", "file", "link"].map(Into::into).to_vec();
    let listing = Listing { folder: "d".into(), names, is_complete: true };
    let removed = Message::Deleted { name: "d/surplus".into(), failure: None };
    assert_eq!(receiver.receive_message(Message::Listing(listing)), [removed, Message::Compared]);
}

#[test]
fn offers_beyond_the_descriptor_share_wait_in_order_and_are_stored() {
    const FILES: u32 = 40;
    let (dir, folder) = folder(OnClash::Refuse);
    let folder = folder.with_descriptors(Share::of(2));
    let mut receiver = Receiver::new(&folder, Mode::Store);
    assert_eq!(receiver.receive_message(Message::Offer(offer(0, "d", Kind::Folder))), [stored(0)]);
    let mut said = Vec::new();
    for id in 1..=FILES {
        said.extend(receiver.receive_message(Message::Offer(offer(id, &format!("d/{id}"), file(NEW)))));
    }
    assert_eq!(said, [take_all(1), take_all(2)]);
    // These folders are offered behind the waiting files.
    said.extend(receiver.receive_message(Message::Offer(offer(FILES + 1, "d/e", Kind::Folder))));
    said.extend(receiver.receive_message(Message::Offer(offer(FILES + 2, "d/e", Kind::FolderEnd))));
    said.extend(receiver.receive_message(Message::Offer(offer(FILES + 3, "d", Kind::FolderEnd))));
    for id in 1..=FILES {
        assert!(said.contains(&take_all(id)), "{id} waits for ever: {said:?}");
        said.extend(receiver.send(id, NEW));
        assert!(said.contains(&stored(id)), "{id}");
    }
    for id in FILES + 1..=FILES + 3 {
        assert!(said.contains(&stored(id)), "{id}: {said:?}");
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(dir.path().join("d/e")).expect("there").permissions(),
    );
    assert_eq!(mode & 0o700, 0o700);
    assert_eq!(fs::read_dir(dir.path().join("d")).expect("a folder").count(), FILES as usize + 1);
}

#[test]
fn offer_given_up_while_it_waits_for_descriptors_lets_the_next_begin() {
    let (_dir, folder) = folder(OnClash::Refuse);
    let mut receiver = Receiver::new(&folder.with_descriptors(Share::of(2)), Mode::Store);
    assert_eq!(
        receiver.receive_message(Message::Offer(offer(0, "a", Kind::Stream { token: [1; 16] }))),
        [take_all(0)]
    );
    assert_eq!(receiver.receive_message(Message::Offer(offer(1, "b", file(NEW)))), []);
    assert_eq!(receiver.receive_message(Message::Offer(offer(2, "c", file(NEW)))), []);
    let failure = crate::protocol::Failure::new(crate::protocol::Reason::NotThere, "gone");
    receiver.receive_message(Message::GiveUp { id: 1, failure: failure.clone(), again: false });
    let said = receiver.receive_message(Message::GiveUp { id: 0, failure, again: false });
    assert_eq!(said, [take_all(2)]);
}
