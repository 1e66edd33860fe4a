//! Tests of a full disk at each step of receiving a file.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::machine::Machine;
use super::{Input, Mode, Receiving, Store};
use crate::accept::Accept;
use crate::block::{BLOCK_BYTES, Hash, Root};
use crate::cancel::Cancel;
use crate::framing::{IncomingMessage, OutgoingMessage};
use crate::moment::Activity;
use crate::part_lock::PartLock;
use crate::protocol::OnClash;
use crate::protocol::{
    Answer, Failure, FileTime, Kind, Message, Offer, Outcome, Reason, Run, Segment, read_block,
};
use crate::report::{Event, Report};
use crate::store::{Durability, Folder, Step};

const BLOCKS: usize = 3;

/// A receiver without a network.
struct Receiver {
    machine: Machine,
    outputs: mpsc::Receiver<OutgoingMessage>,
}

impl Receiver {
    fn new(folder: &Folder, report: &Report) -> Self {
        let (output, outputs) = mpsc::channel(1000);
        let receiving = Receiving {
            store: Store::Folder(folder.clone()),
            accept: Accept::default(),
            tally: None,
            window_blocks: 32,
            silence: Duration::from_secs(60),
            report: report.clone(),
            activity: Activity::now(),
            first_offer_within: None,
            part_lock: PartLock::uncontended(),
            mode: Mode::Store,
            deletion: None,
        };
        Receiver { machine: Machine::new(receiving, output, Cancel::default(), || {}), outputs }
    }

    fn receive_message(&mut self, incoming: IncomingMessage) {
        self.machine.take(Input::Heard(incoming)).expect("the protocol is kept to");
        self.machine.settle();
    }

    fn offer(&mut self, kind: Kind) -> Message {
        let changed = FileTime { seconds: 5, nanos: 0 };
        let offer = Offer { id: 0, name: "file".into(), kind, changed, mode: 0o400 };
        self.receive_message(IncomingMessage::Control(Message::Offer(offer)));
        self.take_sent().remove(0)
    }

    fn take_sent(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.outputs.try_recv().ok())
            .map(|said| match said {
                OutgoingMessage::Control(bytes) => Message::decode(&bytes).expect("a message"),
                OutgoingMessage::Data(_) => panic!("a receiver sends no data"),
            })
            .collect()
    }

    /// Sends the missing blocks and the end. Returns the outcome and the number of blocks that the receiver had.
    fn send(&mut self, content: &[u8]) -> (Outcome, u64) {
        let kind = Kind::File { size_bytes: content.len() as u64, first: None };
        let have = match self.offer(kind) {
            Message::Answer { answer: Answer::Take { have }, .. } => have,
            Message::Done { outcome, .. } => return (outcome, 0),
            other => panic!("{other:?}"),
        };
        let mut root = Root::default();
        for (index, mut block) in content.chunks(BLOCK_BYTES as usize).enumerate() {
            root.add(Hash::of(block));
            if has(&have, index as u64) {
                continue;
            }
            let fill = |buffer: &mut [u8]| std::io::Read::read_exact(&mut block, buffer);
            let messages = read_block(0, index as u64, BLOCK_BYTES, fill).expect("it is in memory").messages;
            for message in messages {
                self.receive_message(IncomingMessage::Data(Segment::decode(message).expect("a segment")));
            }
        }
        let end = Message::End { id: 0, size_bytes: content.len() as u64, root: root.finish() };
        self.receive_message(IncomingMessage::Control(end));
        let outcome = self.take_sent().into_iter().find_map(|message| match message {
            Message::Done { outcome, .. } => Some(outcome),
            _ => None,
        });
        (outcome.expect("it is done"), have.iter().map(|run| run.count).sum())
    }
}

fn has(have: &[Run], index: u64) -> bool {
    have.iter().any(|run| (run.first..run.first + run.count).contains(&index))
}

fn folder() -> (TempDir, Folder) {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
    (dir, folder)
}

fn content() -> Vec<u8> {
    let mut content = vec![0; BLOCKS * BLOCK_BYTES as usize];
    fastrand::Rng::with_seed(1).fill(&mut content);
    content
}

fn check_is_full(outcome: &Outcome) {
    let Outcome::Failed(Failure { reason: Reason::NoSpace, text }) = outcome else { panic!("{outcome:?}") };
    let text = text.to_string();
    assert!(text.contains("/file: ") && text.contains("make room and send it again to resume"), "{text}");
}

#[test]
fn full_disk_fails_the_file_by_name_and_a_later_attempt_resumes() {
    let every = [
        (Step::OpenPart, 0),
        (Step::CreateJournal, 0),
        (Step::WriteBlock, 0),
        // Blocks on the disk that are not in the journal are sent again.
        (Step::SyncJournal, 0),
        (Step::Seal, BLOCKS as u64),
        (Step::Commit, BLOCKS as u64),
    ];
    for (step, kept) in every {
        let ((dir, folder), content) = (folder(), content());
        folder.disk().fill_at(Some(step));
        let (outcome, _) = Receiver::new(&folder, &Report::default()).send(&content);
        check_is_full(&outcome);
        assert!(!dir.path().join("file").exists(), "{step:?}");
        folder.disk().fill_at(None);
        let (outcome, reused) = Receiver::new(&folder, &Report::default()).send(&content);
        assert_eq!((outcome, reused), (Outcome::Stored { renamed: None }, kept), "{step:?}");
        assert!(fs::read(dir.path().join("file")).expect("there") == content, "{step:?}");
    }
}

#[test]
fn blocks_that_arrived_before_the_disk_was_full_are_kept() {
    let ((dir, folder), content) = (folder(), content());
    let size_bytes = content.len() as u64;
    let mut receiver = Receiver::new(&folder, &Report::default());
    receiver.offer(Kind::File { size_bytes, first: None });
    for (index, mut block) in content.chunks(BLOCK_BYTES as usize).enumerate() {
        if index == BLOCKS - 1 {
            folder.disk().fill_at(Some(Step::WriteBlock));
        }
        let fill = |buffer: &mut [u8]| std::io::Read::read_exact(&mut block, buffer);
        for message in read_block(0, index as u64, BLOCK_BYTES, fill).expect("it is in memory").messages {
            receiver.receive_message(IncomingMessage::Data(Segment::decode(message).expect("a segment")));
        }
    }
    let Some(Message::Done { outcome, .. }) = receiver.take_sent().pop() else { panic!("it is not done") };
    check_is_full(&outcome);
    drop(receiver);
    folder.disk().fill_at(None);
    let (outcome, reused) = Receiver::new(&folder, &Report::default()).send(&content);
    assert_eq!((outcome, reused), (Outcome::Stored { renamed: None }, BLOCKS as u64 - 1));
    assert!(fs::read(dir.path().join("file")).expect("there") == content);
}

#[test]
fn failed_journal_write_fails_the_file_and_keeps_its_blocks() {
    let ((dir, folder), content) = (folder(), content());
    let mut receiver = Receiver::new(&folder, &Report::default());
    receiver.offer(Kind::File { size_bytes: content.len() as u64, first: None });
    folder.disk().fill_at(Some(Step::SyncJournal));
    let send_block = |receiver: &mut Receiver, index: u64| {
        let mut block = &content[index as usize * BLOCK_BYTES as usize..];
        let fill = |buffer: &mut [u8]| std::io::Read::read_exact(&mut block, buffer);
        for message in read_block(0, index, BLOCK_BYTES, fill).expect("it is in memory").messages {
            receiver.receive_message(IncomingMessage::Data(Segment::decode(message).expect("a segment")));
        }
    };
    send_block(&mut receiver, 0);
    // Ticks arrive as they do while nothing is received. They detect the failure by a second block that waits for the journal.
    let mut said = receiver.take_sent();
    for tick in 1..600 {
        if let Some(Message::Done { .. }) = said.last() {
            break;
        }
        if tick == 30 {
            send_block(&mut receiver, 1);
        }
        std::thread::sleep(Duration::from_millis(50));
        receiver.machine.take(Input::Tick).expect("time passes");
        said.extend(receiver.take_sent());
    }
    let Some(Message::Done { outcome, .. }) = said.pop() else { panic!("it is not done") };
    check_is_full(&outcome);
    drop(receiver);
    folder.disk().fill_at(None);
    let (outcome, _) = Receiver::new(&folder, &Report::default()).send(&content);
    assert_eq!(outcome, Outcome::Stored { renamed: None });
    assert!(fs::read(dir.path().join("file")).expect("there") == content);
}

#[test]
fn a_file_that_cannot_be_recorded_is_stored_and_compared_next_time() {
    let ((dir, folder), content) = (folder(), content());
    let notes = Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = Arc::clone(&notes);
    let report = Report::new(move |event| {
        if let Event::Note(text) = event {
            list.lock().expect("a list").push(text.to_string());
        }
    });
    folder.disk().fill_at(Some(Step::Record));
    let (outcome, _) = Receiver::new(&folder, &report).send(&content);
    assert_eq!(outcome, Outcome::Stored { renamed: None });
    assert!(fs::read(dir.path().join("file")).expect("there") == content);
    assert!(notes.lock().expect("a list")[0].contains("compared next time"));
    folder.disk().fill_at(None);
    let kind = || Kind::File { size_bytes: content.len() as u64, first: None };
    let mut receiver = Receiver::new(&folder, &report);
    assert_eq!(receiver.offer(kind()), Message::Answer { id: 0, answer: Answer::Compare });
    let mut root = Root::default();
    content.chunks(BLOCK_BYTES as usize).for_each(|block| root.add(Hash::of(block)));
    let end = Message::End { id: 0, size_bytes: content.len() as u64, root: root.finish() };
    receiver.receive_message(IncomingMessage::Control(end));
    assert_eq!(receiver.take_sent(), [Message::Done { id: 0, outcome: Outcome::Identical }]);
    let known = Receiver::new(&folder, &report).offer(kind());
    assert_eq!(known, Message::Done { id: 0, outcome: Outcome::Identical }, "now it is recorded");
}

#[test]
fn refused_file_without_space_counts_its_stored_blocks() {
    let ((_dir, folder), content) = (folder(), content());
    let kind = || Kind::File { size_bytes: content.len() as u64, first: None };
    folder.disk().set_free_bytes(content.len() as u64 - 1);
    let Message::Done { outcome, .. } = Receiver::new(&folder, &Report::default()).offer(kind()) else {
        panic!("it is taken");
    };
    check_is_full(&outcome);
    folder.disk().set_free_bytes(content.len() as u64);
    folder.disk().fill_at(Some(Step::Commit));
    check_is_full(&Receiver::new(&folder, &Report::default()).send(&content).0);
    folder.disk().fill_at(None);
    folder.disk().set_free_bytes(1 << 20);
    let (outcome, _) = Receiver::new(&folder, &Report::default()).send(&content);
    assert_eq!(outcome, Outcome::Stored { renamed: None });
}

/// Files that are complete at the same time are synced together, and the failure of one affects no other.
#[test]
fn files_of_one_batch_get_their_names_each_for_itself() {
    const FILES: u32 = 20;
    let (dir, folder) = folder();
    for durability in [Durability::Batch, Durability::Each] {
        let report = Report::default();
        let mut receiver = Receiver::new(&folder.clone().with_durability(durability), &report);
        let name = |id: u32| {
            format!(
                "{durability:?}/{}",
                if id.is_multiple_of(2) { format!("{id}") } else { format!("d/{id}") }
            )
        };
        for id in 0..FILES {
            let kind = Kind::File { size_bytes: 1, first: None };
            let changed = FileTime { seconds: 5, nanos: 0 };
            let offer = Offer { id, name: name(id).into(), kind, changed, mode: 0o600 };
            receiver
                .machine
                .take(Input::Heard(IncomingMessage::Control(Message::Offer(offer))))
                .expect("it is taken");
        }
        // Another program creates one of the names first.
        fs::write(dir.path().join(name(7)), "theirs").expect("written");
        for id in 0..FILES {
            let fill = |buffer: &mut [u8]| {
                buffer.fill(7);
                std::io::Result::Ok(())
            };
            let message = read_block(id, 0, 1, fill).expect("it is in memory").messages.remove(0);
            let segment = Segment::decode(message).expect("a segment");
            receiver.machine.take(Input::Heard(IncomingMessage::Data(segment))).expect("it is wanted");
            let mut root = Root::default();
            root.add(Hash::of(&[7]));
            let end = Message::End { id, size_bytes: 1, root: root.finish() };
            receiver.machine.take(Input::Heard(IncomingMessage::Control(end))).expect("it fits");
        }
        receiver.machine.settle();
        let mut outcomes: Vec<(u32, bool)> = receiver
            .take_sent()
            .into_iter()
            .filter_map(|message| match message {
                Message::Done { id, outcome } => Some((id, matches!(outcome, Outcome::Stored { .. }))),
                _ => None,
            })
            .collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, (0..FILES).map(|id| (id, id != 7)).collect::<Vec<_>>());
        assert_eq!(report.totals().done_files, u64::from(FILES) - 1);
        for id in 0..FILES {
            let expected: &[u8] = if id == 7 { b"theirs" } else { &[7] };
            assert_eq!(fs::read(dir.path().join(name(id))).expect("there"), expected);
        }
        let in_all = |path: &str| fs::read_dir(dir.path().join(path)).expect("a folder").count();
        let top = format!("{durability:?}");
        // With the folder `d`, and without unfinished files.
        assert_eq!((in_all(&top), in_all(&format!("{top}/d"))), (11, 10));
    }
}
