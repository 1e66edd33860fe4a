//! Tests of the memory that a source can occupy at a receiver.

use tempfile::TempDir;
use tokio::sync::mpsc;

use super::machine::Machine;
use super::{Input, Mode, Receiving, Store, answers};
use crate::accept::Accept;
use crate::block::BLOCK_BYTES;
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::framing::{IncomingMessage, OutgoingMessage};
use crate::moment::Activity;
use crate::part_lock::PartLock;
use crate::protocol::OnClash;
use crate::protocol::{
    FileTime, Kind, MAX_CONTROL_BYTES, MAX_OPEN_OFFERS, MAX_SEGMENT_BYTES, Message, Offer, ProtocolError,
    Segment, read_block,
};
use crate::report::Report;
use crate::store::{Folder, Pipe};

const WINDOW_BLOCKS: u32 = 4;

fn machine(store: Store, output: mpsc::Sender<OutgoingMessage>) -> Machine {
    machine_with_report(store, output, Report::default())
}

fn machine_with_report(store: Store, output: mpsc::Sender<OutgoingMessage>, report: Report) -> Machine {
    let receiving = Receiving {
        store,
        accept: Accept::default(),
        tally: None,
        window_blocks: WINDOW_BLOCKS,
        silence: std::time::Duration::from_secs(60),
        report,
        activity: Activity::now(),
        first_offer_within: None,
        part_lock: PartLock::uncontended(),
        mode: Mode::Store,
        deletion: None,
    };
    Machine::new(receiving, output, Cancel::default(), || {})
}

fn folder() -> (TempDir, Store) {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = Folder::open(dir.path(), OnClash::Refuse).expect("a folder");
    (dir, Store::Folder(folder))
}

fn control(message: Message) -> Input {
    Input::Heard(IncomingMessage::Control(message))
}

fn offer(id: u32, name: &str, kind: Kind) -> Input {
    let changed = FileTime { seconds: 5, nanos: 0 };
    control(Message::Offer(Offer { id, name: name.into(), kind, changed, mode: 0o644 }))
}

fn refused_offer(id: u32) -> Input {
    offer(id, "../file", Kind::File { size_bytes: 1, first: None })
}

/// Returns the segments of a block.
fn block(id: u32, index: u64, block_len: u32) -> Vec<Input> {
    let fill = |buffer: &mut [u8]| {
        buffer.fill(7);
        std::io::Result::Ok(())
    };
    let messages = read_block(id, index, block_len, fill).expect("it is in memory").messages;
    let segment = |bytes| Input::Heard(IncomingMessage::Data(Segment::decode(bytes).expect("a segment")));
    messages.into_iter().map(segment).collect()
}

fn take(machine: &mut Machine, input: Input) -> Result<(), ProtocolError> {
    machine.take(input).map_err(|error| match error {
        TransferError::Protocol(error) => error,
        other => panic!("{other}"),
    })
}

#[test]
fn unread_answers_block_the_thread_until_the_reader_is_dropped() {
    let (output, outputs) = answers();
    let most = output.max_capacity();
    assert!(most * MAX_CONTROL_BYTES <= BLOCK_BYTES as usize, "{most} answers wait");
    let (_dir, store) = folder();
    let mut machine = machine(store, output.clone());
    for id in 0..u32::try_from(most).expect("few") {
        machine.take(refused_offer(id)).expect("it is refused, and that is all");
    }
    assert_eq!((outputs.len(), output.capacity()), (most, 0));
    // The channel is full, so every further answer waits. The thread ends because the receiver of its answers is dropped.
    let (input, inputs) = mpsc::channel(100);
    for id in 0..100 {
        input.try_send(refused_offer(1000 + id)).expect("there is room");
    }
    drop(input);
    let worker = std::thread::spawn(move || machine.run(inputs));
    assert_eq!(outputs.len(), most);
    drop(outputs);
    let ended = worker.join().expect("no panic");
    assert!(matches!(ended, Err(TransferError::Lost(_))), "{ended:?}");
}

#[test]
fn data_queued_for_the_thread_stays_within_its_memory() {
    assert!(super::WAITING_MESSAGES * MAX_SEGMENT_BYTES <= BLOCK_BYTES as usize);
}

#[test]
fn out_of_order_blocks_of_a_pipe_stay_within_the_window() {
    let (output, _outputs) = mpsc::channel(1000);
    let mut machine = machine(Store::Pipe(Pipe::new(std::io::sink())), output);
    machine.take(offer(0, "file", Kind::Stream { token: [1; 16] })).expect("it is taken");
    for index in 1..u64::from(WINDOW_BLOCKS) {
        for segment in block(0, index, 10) {
            machine.take(segment).expect("it is in the window");
        }
    }
    let beyond = block(0, u64::from(WINDOW_BLOCKS), 10).remove(0);
    assert_eq!(
        take(&mut machine, beyond),
        Err(ProtocolError::Unexpected("a block that was not requested")),
        "it is further ahead than the window"
    );
}

#[test]
fn blocks_that_wait_and_blocks_that_are_incomplete_count_together() {
    let (output, _outputs) = mpsc::channel(1000);
    let mut machine = machine(Store::Pipe(Pipe::new(std::io::sink())), output);
    // A pipe continues with the same file, so both offers are open.
    for id in 0..2 {
        machine.take(offer(id, "file", Kind::Stream { token: [1; 16] })).expect("it is taken");
    }
    for (id, index) in [(0, 1), (0, 2), (0, 3), (1, 1)] {
        for segment in block(id, index, 10) {
            machine.take(segment).expect("it is in the window");
        }
    }
    let fifth = block(1, 2, 10).remove(0);
    assert_eq!(
        take(&mut machine, fifth),
        Err(ProtocolError::Unexpected("more blocks at a time than agreed"))
    );
}

#[test]
fn incomplete_blocks_of_all_files_are_within_the_window() {
    let ((_dir, store), (output, _outputs)) = (folder(), mpsc::channel(1000));
    let mut machine = machine(store, output);
    let size_bytes = 10 * u64::from(BLOCK_BYTES);
    for (id, name) in [(0, "a"), (1, "b")] {
        machine.take(offer(id, name, Kind::File { size_bytes, first: None })).expect("it is taken");
    }
    for (id, index) in [(0, 0), (0, 9), (1, 5), (1, 0)] {
        machine.take(block(id, index, BLOCK_BYTES).remove(0)).expect("it is in the window");
    }
    assert_eq!(
        take(&mut machine, block(1, 1, BLOCK_BYTES).remove(0)),
        Err(ProtocolError::Unexpected("more blocks at a time than agreed"))
    );
}

#[test]
fn open_files_and_waiting_folders_stay_within_the_agreed_limits() {
    let ((_dir, store), (output, _outputs)) = (folder(), mpsc::channel(1000));
    let mut machine = machine(store, output);
    let file = || Kind::File { size_bytes: 1, first: None };
    machine.take(offer(0, "folder", Kind::Folder)).expect("it is made");
    let most = u32::try_from(MAX_OPEN_OFFERS).expect("few");
    for id in 1..most {
        machine.take(offer(id, &format!("file-{id}"), file())).expect("it is taken");
    }
    machine.take(offer(most, "folder", Kind::FolderEnd)).expect("it waits for what was offered before");
    assert_eq!(
        take(&mut machine, offer(most + 1, "further", file())),
        Err(ProtocolError::Unexpected("more offers at a time than agreed"))
    );
}

#[test]
fn unfinished_folders_stay_within_the_agreed_limit() {
    let ((_dir, store), (output, _outputs)) = (folder(), mpsc::channel(2000));
    let mut machine = machine(store, output);
    for id in 0..1024 {
        machine.take(offer(id, &format!("folder-{id}"), Kind::Folder)).expect("it is made");
    }
    assert_eq!(
        take(&mut machine, offer(1024, "further", Kind::Folder)),
        Err(ProtocolError::Unexpected("more folders at a time than agreed"))
    );
}

#[test]
fn announced_total_is_reported_and_second_one_is_refused() {
    let (output, _outputs) = answers();
    let ((_dir, store), report) = (folder(), Report::default());
    let mut machine = machine_with_report(store, output, report.clone());
    assert_eq!((report.totals().all_files(), report.totals().all_bytes()), (None, None));
    let total = || control(Message::Total { files: 2001, bytes: Some(u64::MAX) });
    take(&mut machine, total()).expect("the first one");
    assert_eq!((report.totals().all_files(), report.totals().all_bytes()), (Some(2001), Some(u64::MAX)));
    assert_eq!(take(&mut machine, total()), Err(ProtocolError::Unexpected("a second total")));
}

#[test]
fn total_without_room_on_the_disk_is_reported_at_once() {
    for (bytes, is_reported) in [(1_000, false), (1_001, true)] {
        let (output, _outputs) = answers();
        let notes = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = std::sync::Arc::clone(&notes);
        let report = Report::new(move |event| {
            if let crate::report::Event::Note(text) = event {
                noted.lock().expect("no test panicked").push(text.to_string());
            }
        });
        let (_dir, store) = folder();
        let Store::Folder(folder) = &store else { unreachable!("it is one") };
        folder.disk().set_free_bytes(1_000);
        let mut machine = machine_with_report(store, output, report);
        take(&mut machine, control(Message::Total { files: 1, bytes: Some(bytes) })).expect("the first one");
        let notes = notes.lock().expect("no test panicked");
        assert_eq!(
            notes.iter().any(|note| note.contains("1001 B are to come and 1000 B are free")),
            is_reported
        );
        assert_eq!(notes.is_empty(), !is_reported, "{notes:?}");
    }
}
