//! Tests of the memory that a receiver can occupy at a sender, and of the sender's reactions to its answers.

use std::sync::{Arc, Mutex};

use bytes::Bytes;

use std::collections::BTreeSet;

use super::super::queues::MOST_CONTROL;
use super::*;
use crate::block::{BLOCK_BYTES, Root};
use crate::protocol::MAX_SEGMENT_BYTES;

/// Number of segments of a block.
const SEGMENTS: usize = (BLOCK_BYTES as usize).div_ceil(MAX_SEGMENT_BYTES);
const WINDOW_BLOCKS: u32 = 32;
/// Number of blocks that a pipe yields before it ends.
const PIPED_BLOCKS: u64 = 2;

/// A sender that sends nothing, and whose reader answers on request.
struct Stalled {
    sender: Sender,
    queues: SendQueues,
    requests: requests::Receiver<Request>,
}

impl Stalled {
    fn new(memory_blocks: u32) -> Self {
        let mut sender = Sender::new(Vec::new(), None, Report::default()).with_memory(memory_blocks);
        let (reader, requests) = requests::channel();
        sender.reader = reader;
        Stalled { sender, queues: SendQueues::new(WINDOW_BLOCKS, None), requests }
    }

    /// Offers a file if the sender would.
    fn offer(&mut self, blocks: u64) -> bool {
        let may_offer = self.sender.may_offer(&self.queues);
        if may_offer {
            let kind = Kind::File { size_bytes: blocks * u64::from(BLOCK_BYTES), first: None };
            self.find(kind, Origin::None);
        }
        may_offer
    }

    fn find(&mut self, kind: Kind, origin: Origin) {
        let changed = FileTime { seconds: 5, nanos: 0 };
        let item =
            Item::Found { name: "file".to_owned(), kind, changed, mode: 0o644, origin: Box::new(origin) };
        self.sender.on_item(&mut self.queues, Some(item));
    }

    fn receive_message(&mut self, message: Message) -> Result<(), ProtocolError> {
        self.sender.on_message(&mut self.queues, IncomingMessage::Control(message)).map(|_| ())
    }

    fn hear_take(&mut self, id: u32) {
        self.receive_message(Message::Answer { id, answer: Answer::Take { have: Vec::new() } })
            .expect("it was offered");
    }

    fn hear_stored(&mut self, id: u32, index: u64) {
        self.receive_message(Message::Block { id, index, good: true }).expect("it was sent");
    }

    /// Removes and returns the messages that wait to be sent.
    fn take_sent(&mut self) -> Vec<Message> {
        self.queues
            .control
            .drain(..)
            .map(|said| match said {
                OutgoingMessage::Control(bytes) => Message::decode(&bytes).expect("a message"),
                OutgoingMessage::Data(_) => panic!("data has a queue of its own"),
            })
            .collect()
    }

    /// Answers all requests to the reader, and returns the number of blocks that it read.
    fn read(&mut self) -> usize {
        let mut blocks = 0;
        self.sender.ask_for_blocks(&mut self.queues);
        while let Ok(request) = self.requests.try_recv() {
            let reply = answer(&request);
            blocks += usize::from(reply.is_block);
            self.sender.on_reply(&mut self.queues, reply);
            self.sender.ask_for_blocks(&mut self.queues);
        }
        blocks
    }

    /// Does the same, and sends all queued segments immediately.
    fn read_all(&mut self) -> usize {
        let mut blocks = 0;
        loop {
            let more = self.read();
            if more == 0 {
                return blocks;
            }
            blocks += more;
            self.queues.data.clear();
        }
    }
}

fn answer(request: &Request) -> Reply {
    match *request {
        Request::Block { id, index, .. } => {
            let messages = vec![Bytes::from_static(b"segment"); SEGMENTS];
            let block = BlockMessages { messages, hash: Hash::of(b"block") };
            Reply { id, is_block: true, what: ReplyKind::Block { index, block } }
        }
        Request::Open { id, .. } => Reply { id, is_block: false, what: ReplyKind::Opened },
        Request::Check { id, .. } => Reply { id, is_block: false, what: ReplyKind::Checked },
        Request::Close { id } => Reply { id, is_block: false, what: ReplyKind::Closed },
        Request::Hash { id, .. } => Reply { id, is_block: true, what: ReplyKind::Hashed(Hash::of(b"block")) },
        Request::Next { id, index, .. } => {
            let messages = vec![Bytes::from_static(b"segment"); SEGMENTS];
            let block = BlockMessages { messages, hash: Hash::of(b"block") };
            let is_last = index == PIPED_BLOCKS;
            let bytes = if is_last { 0 } else { BLOCK_BYTES };
            Reply { id, is_block: true, what: ReplyKind::Next { index, block, bytes, is_last } }
        }
    }
}

/// Returns the end of a file of `blocks` blocks, with the hashes that [`answer`] returns.
fn end_of(id: u32, blocks: u64) -> Message {
    let mut root = Root::default();
    (0..blocks).for_each(|_| root.add(Hash::of(b"block")));
    Message::End { id, size_bytes: blocks * u64::from(BLOCK_BYTES), root: root.finish() }
}

fn bad(id: u32, index: u64) -> Message {
    Message::Block { id, index, good: false }
}

#[tokio::test]
async fn pending_reports_of_omitted_files_are_bounded() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    for _ in 0..1000 {
        if stalled.sender.may_offer(&stalled.queues) {
            let failure = Failure::new(Reason::NotThere, "a symbolic link");
            let item = Item::Skipped { name: "link".to_owned(), failure };
            stalled.sender.on_item(&mut stalled.queues, Some(item));
        }
    }
    assert_eq!(stalled.queues.control.len(), 64);
}

#[tokio::test]
async fn keepalive_is_queued_once_and_only_alone() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    (0..100).for_each(|_| stalled.queues.queue_keepalive());
    assert_eq!(stalled.queues.control.len(), 1);
    assert!(stalled.offer(1));
    (0..100).for_each(|_| stalled.queues.queue_keepalive());
    assert_eq!(stalled.queues.control.len(), 2);
}

#[tokio::test]
async fn peer_that_reads_no_answers_is_not_read_further() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    let mut heard = 0;
    while stalled.queues.may_hear() && heard < 10_000 {
        stalled.queues.send_message(&Message::GiveUp {
            id: heard,
            failure: Failure::new(Reason::Corrupt, "it arrives wrong"),
            again: false,
        });
        heard += 1;
    }
    assert_eq!(heard, 1024, "four answers for each of 256 offers");
}

#[tokio::test]
async fn immediately_failing_files_queue_bounded_offers_and_answers() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    for _ in 0..1000 {
        while stalled.offer(1) {}
        let open: Vec<u32> = stalled.sender.open.keys().copied().collect();
        for id in open {
            if !stalled.queues.may_hear() {
                break;
            }
            let entry = stalled.sender.open.get_mut(&id).expect("it is open");
            (entry.wrong, entry.under_way) = (MOST_WRONG, BTreeSet::from([0]));
            stalled.receive_message(bad(id, 0)).expect("it was sent");
        }
        assert!(stalled.queues.control.len() <= MOST_CONTROL, "{}", stalled.queues.control.len());
    }
    assert!(stalled.sender.next_id <= 256, "no more is offered than can be said");
}

#[tokio::test]
async fn segments_that_wait_to_leave_fit_the_memory_of_the_sender() {
    for memory_blocks in 2..=SENDER_BLOCKS {
        let mut stalled = Stalled::new(memory_blocks);
        stalled.offer(100);
        stalled.hear_take(0);
        stalled.read();
        let waiting = stalled.queues.data.len();
        assert!(waiting > 0 && waiting <= memory_blocks as usize * SEGMENTS, "{waiting} of {memory_blocks}");
    }
}

#[tokio::test]
async fn no_more_blocks_are_under_way_than_the_window_has() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    stalled.offer(100);
    stalled.hear_take(0);
    assert_eq!(stalled.read_all(), WINDOW_BLOCKS as usize);
    stalled.receive_message(Message::Block { id: 0, index: 3, good: true }).expect("it was sent");
    assert_eq!(stalled.read_all(), 1);
}

#[tokio::test]
async fn a_reader_that_is_slow_is_asked_for_few_blocks() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    stalled.offer(100);
    stalled.hear_take(0);
    let open = stalled.requests.try_recv().expect("it is to be opened");
    stalled.sender.on_reply(&mut stalled.queues, answer(&open));
    (0..100).for_each(|_| stalled.sender.ask_for_blocks(&mut stalled.queues));
    assert_eq!(stalled.requests.try_iter().count(), 4);
}

#[tokio::test]
async fn corrupt_blocks_are_reread_when_there_is_room_and_counted() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    for id in 0..4 {
        stalled.offer(10);
        stalled.hear_take(id);
    }
    assert_eq!(stalled.read_all(), WINDOW_BLOCKS as usize);
    stalled.queues.data.extend(vec![OutgoingMessage::Data(Bytes::from_static(b"segment")); WAITING_SEGMENTS]);
    for number in 0..u64::from(WINDOW_BLOCKS) {
        let (id, index) = ((number / 10) as u32, number % 10);
        stalled.receive_message(bad(id, index)).expect("it was sent");
        assert_eq!(
            stalled.receive_message(bad(id, index)),
            Err(ProtocolError::Unexpected("a block that was not sent")),
            "what is not sent again yet cannot have arrived"
        );
    }
    let least_wrong = WINDOW_BLOCKS as usize;
    assert_eq!((stalled.sender.wrong.len(), stalled.queues.in_flight), (least_wrong, least_wrong));
    assert_eq!(stalled.read(), 0, "nothing is read while so much waits to leave");
    stalled.queues.data.clear();
    assert_eq!(stalled.read_all(), WINDOW_BLOCKS as usize, "nothing but those is read");
    assert!(stalled.sender.wrong.is_empty());
}

#[tokio::test]
async fn file_with_too_many_corrupt_blocks_is_abandoned_and_queues_nothing() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    stalled.offer(100);
    stalled.hear_take(0);
    stalled.read_all();
    for index in 0..=u64::from(MOST_WRONG) {
        assert!(stalled.sender.wrong.len() <= MOST_WRONG as usize);
        stalled.receive_message(bad(0, index)).expect("it was sent");
    }
    assert!(stalled.sender.open.is_empty() && stalled.sender.wrong.is_empty());
    assert_eq!(stalled.queues.in_flight, 0);
}

#[tokio::test]
async fn a_reader_that_answers_nothing_has_few_requests_waiting() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    for id in 0..2000 {
        if !stalled.offer(1) {
            break;
        }
        stalled.hear_take(id);
        let outcome = Outcome::Failed(Failure::new(Reason::Clash, "there is another one"));
        stalled.receive_message(Message::Done { id, outcome }).expect("it was offered");
        // All messages are sent.
        stalled.queues.control.clear();
    }
    let waiting = stalled.requests.try_iter().count();
    assert_eq!(waiting, stalled.sender.asked, "as many replies can wait as requests");
    assert!(waiting <= 4 * MAX_OPEN_OFFERS + 2, "{waiting}");
}

#[tokio::test]
async fn concurrent_offers_stay_within_the_protocol_limit() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    for _ in 0..1000 {
        stalled.offer(1);
        // All messages are sent, and none is answered.
        stalled.queues.control.clear();
    }
    assert_eq!(stalled.sender.open.len(), MAX_OPEN_OFFERS);
    let outcome = Outcome::Failed(Failure::new(Reason::Clash, "there is another one"));
    stalled.receive_message(Message::Done { id: 5, outcome }).expect("it was offered");
    assert!(stalled.offer(1) && !stalled.offer(1), "there is room for one");
}

#[tokio::test]
async fn end_of_file_has_the_root_over_all_blocks_including_held_ones() {
    for have in [Vec::new(), vec![Run { first: 1, count: 2 }]] {
        let mut stalled = Stalled::new(SENDER_BLOCKS);
        stalled.offer(4);
        let held: u64 = have.iter().map(|run| run.count).sum();
        stalled
            .receive_message(Message::Answer { id: 0, answer: Answer::Take { have } })
            .expect("it was offered");
        assert!(matches!(stalled.take_sent()[..], [Message::Offer(_)]), "nothing is read");
        assert_eq!(stalled.read(), 4);
        assert_eq!(stalled.queues.data.len(), (4 - held as usize) * SEGMENTS);
        assert_eq!(stalled.take_sent(), [end_of(0, 4)]);
    }
}

#[tokio::test]
async fn piped_data_is_sent_once_and_ends_with_size_and_root() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    let nothing: Box<dyn std::io::Read + Send> = Box::new(std::io::empty());
    stalled.find(Kind::Stream { token: [1; 16] }, Origin::Stream(Arc::new(Mutex::new(nothing))));
    stalled.hear_take(0);
    stalled.take_sent();
    // The last block that is read is empty, and marks the end.
    assert_eq!(stalled.read(), PIPED_BLOCKS as usize + 1);
    assert_eq!(stalled.queues.data.len(), PIPED_BLOCKS as usize * SEGMENTS);
    assert_eq!(stalled.queues.in_flight, PIPED_BLOCKS as usize);
    assert_eq!(stalled.take_sent(), [end_of(0, PIPED_BLOCKS)]);
    (0..PIPED_BLOCKS).for_each(|index| stalled.hear_stored(0, index));
    assert_eq!(stalled.queues.in_flight, 0);
    assert_eq!(stalled.sender.report.totals().held_bytes, PIPED_BLOCKS * u64::from(BLOCK_BYTES));
}

#[tokio::test]
async fn receiver_with_wrong_kept_data_gets_all_blocks_counted_once() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    stalled.offer(4);
    let take = |have| Message::Answer { id: 0, answer: Answer::Take { have } };
    let kept = vec![Run { first: 0, count: 2 }];
    stalled.receive_message(take(kept.clone())).expect("it was offered");
    stalled.read();
    (2..4).for_each(|index| stalled.hear_stored(0, index));
    let bytes = |blocks: u64| blocks * u64::from(BLOCK_BYTES);
    let counted = |stalled: &Stalled| {
        let totals = stalled.sender.report.totals();
        (totals.held_bytes, totals.reused_bytes)
    };
    assert_eq!(counted(&stalled), (bytes(4), bytes(2)));
    let misfit = Err(ProtocolError::Unexpected("an answer that does not match its offer"));
    assert_eq!(stalled.receive_message(take(kept)), misfit, "all of them or none");
    stalled.hear_take(0);
    assert_eq!(counted(&stalled), (0, 0));
    assert_eq!(stalled.read(), 4);
    (0..4).for_each(|index| stalled.hear_stored(0, index));
    assert_eq!(counted(&stalled), (bytes(4), 0));
    assert_eq!(stalled.receive_message(take(Vec::new())), misfit, "a third time");
}

#[tokio::test]
async fn the_end_of_a_folder_fails_it_unless_it_was_refused_before() {
    for is_refused in [false, true] {
        let mut stalled = Stalled::new(SENDER_BLOCKS);
        let failed = || Outcome::Failed(Failure::new(Reason::Clash, "there is a file"));
        stalled.find(Kind::Folder, Origin::None);
        let outcome = if is_refused { failed() } else { Outcome::Stored { renamed: None } };
        stalled.receive_message(Message::Done { id: 0, outcome }).expect("it was offered");
        assert_eq!(stalled.sender.report.totals().failed_files, u64::from(is_refused));
        stalled.find(Kind::FolderEnd, Origin::None);
        stalled.receive_message(Message::Done { id: 1, outcome: failed() }).expect("it was offered");
        assert_eq!(stalled.sender.report.totals().failed_files, 1, "refused: {is_refused}");
    }
}

#[tokio::test]
async fn refused_file_counts_as_skipped_without_bytes_that_receiver_keeps() {
    let mut stalled = Stalled::new(SENDER_BLOCKS);
    assert!(stalled.offer(3) && stalled.offer(1));
    stalled.hear_take(0);
    stalled.read_all();
    stalled.hear_stored(0, 0);
    for id in [0, 1] {
        let failure = Failure::new(Reason::NoSpace, "full");
        stalled
            .receive_message(Message::Done { id, outcome: Outcome::Failed(failure) })
            .expect("it was offered");
    }
    let totals = stalled.sender.report.totals();
    assert_eq!(totals.held_bytes, u64::from(BLOCK_BYTES));
    assert_eq!(totals.skipped_bytes, 3 * u64::from(BLOCK_BYTES));
}
