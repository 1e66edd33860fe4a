//! Sender of files, which schedules offers and blocks.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc as requests;
use std::time::Duration;

use anabranch_net::Association;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::count::Total;
use super::deletion::{Deletion, common_rules};
use super::files::{Entry, Sending, Stage};
use super::folders::OpenFolders;
use super::pace::RateLimit;
use super::queues::SendQueues;
use super::reader::{self, Reply, ReplyKind, Request};
use super::walk::{self, Item, Origin, SendSource, stream_kind};
use crate::block::{Hash, blocks_of};
use crate::cancel::{Cancel, CancelOnDrop};
use crate::descriptors::Share;
use crate::error::TransferError;
use crate::framing::{self, ALIVE_EVERY, IncomingMessage, OutgoingMessage};
use crate::identity::SenderId;
use crate::moment::Activity;
use crate::protocol::{
    Answer, BlockMessages, Failure, FileTime, Kind, MAX_OPEN_OFFERS, Message, Outcome, ProtocolError, Reason,
    Run, SenderRequests,
};
use crate::report::{Event, Report};
use crate::scarcity::Scarcity;
use crate::store::explain;

/// Maximum number of blocks that are read ahead of sending.
const READ_AHEAD: usize = 4;
/// Maximum number of segments that wait to be sent before further blocks are read.
const WAITING_SEGMENTS: usize = 40;
/// Memory with which a sender reads ahead as far as is useful, in blocks.
pub(crate) const SENDER_BLOCKS: u32 = 8;
/// Number of control messages that wait to be sent before further items are offered.
const WAITING_CONTROL: usize = 64;
/// Number of requests that wait for the reader before further items are offered.
const MOST_ASKED: usize = 4 * MAX_OPEN_OFFERS;
/// Maximum number of times that a file is offered again because it was changed while it was sent.
const MOST_CHANGES: u32 = 3;
/// Maximum number of blocks of a file that may arrive corrupt.
const MOST_WRONG: u32 = 16;

/// Sender of files, over successive associations if one is lost.
pub struct Sender {
    items: mpsc::Receiver<Item>,
    is_walked: bool,
    total: Total,
    /// Offers that are not done, in order.
    open: BTreeMap<u32, Entry>,
    folders: OpenFolders,
    deletion: Deletion,
    next_id: u32,
    /// Files that wait to be opened, in round-robin order.
    opening: VecDeque<u32>,
    descriptors: Share,
    /// Cancels the walk of the sources.
    _cancel_on_drop: CancelOnDrop,
    /// Files whose blocks are to be read, in round-robin order.
    sending: VecDeque<u32>,
    reader: requests::Sender<Request>,
    replies: mpsc::UnboundedReceiver<Reply>,
    /// Number of blocks requested from the reader.
    reading: usize,
    /// Number of requests of any kind that the reader has not answered.
    asked: usize,
    /// Blocks that arrived corrupt and are to be read again.
    wrong: VecDeque<(u32, u64)>,
    ahead: Ahead,
    rate: Option<RateLimit>,
    identity: Option<SenderId>,
    sender_requests: SenderRequests,
    report: Report,
}

/// Limits of reading ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ahead {
    blocks: usize,
    segments: usize,
}

impl Ahead {
    /// Returns the limits for this memory: segments that wait, and blocks that the reader adds to them.
    fn within(blocks: u32) -> Ahead {
        let blocks = usize::try_from(blocks).unwrap_or(usize::MAX);
        Ahead {
            blocks: (blocks / 2).clamp(1, READ_AHEAD),
            segments: blocks.saturating_mul(5).clamp(1, WAITING_SEGMENTS),
        }
    }
}

impl Sender {
    /// Creates a sender, and starts the walk of its sources. Requires a tokio runtime.
    pub fn new(sources: Vec<SendSource>, rate: Option<RateLimit>, report: Report) -> Self {
        let (reply, replies) = mpsc::unbounded_channel();
        let rules = common_rules(&sources);
        let total = Total::new(&sources);
        let cancel = Cancel::default();
        let (items, roots) = walk::walk(sources, &cancel);
        Sender {
            items,
            is_walked: false,
            total,
            open: BTreeMap::new(),
            folders: OpenFolders::default(),
            deletion: Deletion::new(rules, roots),
            next_id: 0,
            opening: VecDeque::new(),
            descriptors: Share::of_client(),
            _cancel_on_drop: cancel.on_drop(),
            sending: VecDeque::new(),
            reader: reader::start(reply),
            replies,
            reading: 0,
            asked: 0,
            wrong: VecDeque::new(),
            ahead: Ahead::within(SENDER_BLOCKS),
            rate,
            identity: None,
            sender_requests: SenderRequests::default(),
            report,
        }
    }

    /// Sets the identity, so that a later sender with the same one resumes the unfinished files of this sender. The default is a
    /// random identity that only this sender has.
    #[must_use]
    pub fn with_identity(mut self, identity: SenderId) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the requests to the receiver.
    #[must_use]
    pub fn with_sender_requests(mut self, mut sender_requests: SenderRequests) -> Self {
        if sender_requests.delete && !self.deletion.has_common_rules() {
            self.report.note("no file is removed at the receiver, because sources have different filters");
            sender_requests.delete = false;
        }
        self.sender_requests = sender_requests;
        self.deletion.want(sender_requests.delete, sender_requests.dry_run);
        self
    }

    pub(crate) fn sender_requests(&self) -> SenderRequests {
        self.sender_requests
    }

    pub(crate) fn identity(&mut self) -> Result<SenderId, TransferError> {
        match self.identity {
            Some(identity) => Ok(identity),
            None => Ok(*self.identity.insert(SenderId::random()?)),
        }
    }

    /// Sets the descriptors for files that are open at the same time.
    pub(crate) fn with_descriptors(self, descriptors: Share) -> Self {
        Sender { descriptors, ..self }
    }

    /// Sets the memory for reading ahead, in blocks of 1 MiB.
    pub(crate) fn with_memory(self, blocks: u32) -> Self {
        Sender { ahead: Ahead::within(blocks), ..self }
    }

    /// Offers and sends until everything is done. After a transient error it may be called with another association, and resumes.
    pub(crate) async fn run(
        &mut self,
        association: &Association,
        window_blocks: u32,
        silence: Duration,
        activity: &Activity,
    ) -> Result<(), TransferError> {
        let mut queues = SendQueues::new(window_blocks, self.rate);
        if !self.deletion.is_done() {
            self.report.forget_deletable();
        }
        self.deletion.restart();
        self.deletion.rules().iter().for_each(|rule| queues.send_message(rule));
        self.offer_again(&mut queues);
        let mut tick = tokio::time::interval(ALIVE_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.ask_for_blocks(&mut queues);
            if self.is_all_offered_done() {
                self.deletion.begin(&self.report);
            }
            if self.is_done() && queues.control.is_empty() && queues.data.is_empty() {
                break;
            }
            let (may_offer, may_hear) = (self.may_offer(&queues), queues.may_hear());
            tokio::select! {
                came = framing::recv(association), if may_hear => {
                    let Some(message) = came? else {
                        return Err(TransferError::Lost("the peer ended it early".to_owned()));
                    };
                    activity.heard.mark();
                    if self.on_message(&mut queues, message)? == Step::Forward {
                        activity.progress.mark();
                    }
                }
                sent = queues.send_next(association) => self.report.moved(sent?),
                item = self.items.recv(), if may_offer => self.on_item(&mut queues, item),
                listed = self.deletion.next(), if queues.control.len() < WAITING_CONTROL => {
                    let message = self.deletion.on_listed(listed, &self.report);
                    message.iter().for_each(|message| queues.send_message(message));
                }
                total = self.total.next(&self.report) => queues.send_message(&total),
                Some(reply) = self.replies.recv() => self.on_reply(&mut queues, reply),
                _ = tick.tick() => {
                    if activity.heard.elapsed() >= silence {
                        return Err(TransferError::Silent(silence));
                    }
                    queues.queue_keepalive();
                    self.open_files();
                }
            }
        }
        framing::send(association, OutgoingMessage::from(&Message::Finished)).await
    }

    fn may_offer(&self, queues: &SendQueues) -> bool {
        !self.is_walked
            && self.open.len() < MAX_OPEN_OFFERS
            && queues.control.len() < WAITING_CONTROL
            && self.asked < MOST_ASKED
    }

    fn is_all_offered_done(&self) -> bool {
        self.is_walked && self.open.is_empty()
    }

    fn is_done(&self) -> bool {
        self.is_all_offered_done() && self.deletion.is_done()
    }

    /// Repeats offers that were not done on an earlier association. Replies of the reader for files are then obsolete, so files get
    /// new numbers. The content of a pipe cannot be read again, so a pipe keeps its number.
    fn offer_again(&mut self, queues: &mut SendQueues) {
        self.sending.clear();
        self.opening.clear();
        self.wrong.clear();
        self.total.restart();
        let before = std::mem::take(&mut self.open);
        for entry in self.folders.offers(!self.deletion.is_done()) {
            let id = self.new_id();
            self.offer(queues, id, entry);
        }
        let (kept, others): (Vec<_>, Vec<_>) = before.into_iter().partition(|(_, entry)| entry.is_stream());
        for (id, entry) in kept {
            self.offer(queues, id, entry);
        }
        for (old, entry) in others {
            self.ask(Request::Close { id: old });
            if entry.kind != Kind::Folder {
                let id = self.new_id();
                self.offer(queues, id, entry);
            }
        }
    }

    fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn ask(&mut self, request: Request) {
        self.asked += 1;
        // A reader that has ended sends no replies, and its thread has reported the reason.
        let _ = self.reader.send(request);
    }

    fn offer(&mut self, queues: &mut SendQueues, id: u32, mut entry: Entry) {
        entry.stage = Stage::Offered;
        entry.in_flight = 0;
        entry.repeats.clear();
        entry.under_way.clear();
        entry.takes = 0;
        (entry.held, entry.scarce_since) = (None, None);
        queues.send_message(&Message::Offer(entry.offer(id)));
        self.open.insert(id, entry);
    }

    fn on_item(&mut self, queues: &mut SendQueues, item: Option<Item>) {
        match item {
            None => {
                self.is_walked = true;
                self.report.all_found();
                self.total.complete_from_walk(&self.report);
            }
            Some(Item::Skipped { name, failure }) => {
                let mut end = name.len().min(crate::MAX_NAME_BYTES);
                while !name.is_char_boundary(end) {
                    end -= 1;
                }
                queues.send_message(&Message::Passed { name: name[..end].into(), failure: failure.clone() });
                self.report.passed(name, failure);
            }
            Some(Item::Found { name, kind, changed, mode, origin }) => {
                match &kind {
                    Kind::File { size_bytes, .. } => self.report.found(1, *size_bytes),
                    Kind::Stream { .. } => self.report.record_pipe(),
                    Kind::Folder => self.folders.begin(&name, changed, mode),
                    Kind::Link { .. } | Kind::FolderEnd => {}
                }
                let id = self.new_id();
                self.offer(queues, id, Entry::new(name, kind, changed, mode, *origin));
            }
        }
    }

    /// Handles a message of the receiver. Returns `true` if the transfer made progress.
    fn on_message(
        &mut self,
        queues: &mut SendQueues,
        message: IncomingMessage,
    ) -> Result<Step, ProtocolError> {
        let IncomingMessage::Control(message) = message else {
            return Err(ProtocolError::Unexpected("data from a receiver"));
        };
        match message {
            Message::Alive => Ok(Step::None),
            Message::Answer { id, answer } => self.on_answer(queues, id, answer).map(|()| Step::Forward),
            Message::Block { id, index, good } => {
                self.on_block(queues, id, index, good)?;
                Ok(if good { Step::Forward } else { Step::None })
            }
            Message::Done { id, outcome } => {
                let step = if matches!(outcome, Outcome::Failed(_)) { Step::None } else { Step::Forward };
                self.on_done(queues, id, outcome).map(|()| step)
            }
            Message::Deleted { name, failure } => {
                self.deletion.on_deleted(name, failure, &self.report).map(|()| Step::None)
            }
            Message::Compared => self.deletion.on_compared().map(|()| Step::Forward),
            _ => Err(ProtocolError::Unexpected("a message that only sources send")),
        }
    }

    fn on_answer(&mut self, queues: &mut SendQueues, id: u32, answer: Answer) -> Result<(), ProtocolError> {
        let Some(entry) = self.open.get_mut(&id) else {
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("an answer to no offer"))
            };
        };
        match (answer, &entry.kind, &entry.stage) {
            (
                Answer::Take { have },
                Kind::File { .. } | Kind::Stream { .. },
                stage @ (Stage::Offered | Stage::Ended),
            ) if entry.may_take(stage, &have) => {
                entry.takes += 1;
                if entry.takes > 1 {
                    self.report.forget(entry.reused_bytes, entry.counted_bytes - entry.reused_bytes);
                    (entry.reused_bytes, entry.counted_bytes, entry.is_counted) = (0, 0, false);
                }
                self.begin(queues, id, have);
                Ok(())
            }
            (Answer::Compare, Kind::File { size_bytes, .. }, Stage::Offered) => {
                let all = Run { first: 0, count: blocks_of(*size_bytes) };
                entry.stage = Stage::Opening(vec![all]);
                self.open_file(id);
                Ok(())
            }
            _ => Err(ProtocolError::Unexpected("an answer that does not match its offer")),
        }
    }

    fn begin(&mut self, queues: &mut SendQueues, id: u32, have: Vec<Run>) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        let held = entry.bytes_in(&have);
        if std::mem::replace(&mut entry.is_counted, true) {
            self.report.recount(entry.counted_bytes, held);
        } else {
            self.report.reused(held);
            entry.reused_bytes = held;
        }
        entry.counted_bytes = held;
        let (name, size_bytes) = (entry.name.clone(), entry.size_bytes());
        self.report.emit(Event::Begun { name: name.into(), size_bytes, reused_bytes: held });
        if entry.is_stream() {
            self.begin_stream(queues, id, have);
        } else {
            entry.stage = Stage::Opening(have);
            self.open_file(id);
        }
    }

    /// Starts or resumes the content of a pipe. The content can be read only once, so the sender stores all blocks that the
    /// receiver lacks.
    fn begin_stream(&mut self, queues: &mut SendQueues, id: u32, have: Vec<Run>) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        let sending = Sending::new(have);
        entry.kept.blocks.retain(|index, _| !sending.has(*index));
        let is_lost =
            (0..entry.kept.read).any(|index| !sending.has(index) && !entry.kept.blocks.contains_key(&index));
        if is_lost {
            let text =
                format!("{}: the receiver has lost the content of the pipe; start it again", entry.name);
            return self.give_up(queues, id, Failure::new(Reason::Changed, text));
        }
        for (block, _) in entry.kept.blocks.values() {
            queues.data.extend(block.messages.iter().cloned().map(OutgoingMessage::Data));
        }
        let in_flight = entry.kept.blocks.len() + usize::from(entry.kept.is_reading);
        entry.in_flight = in_flight;
        entry.under_way = entry.kept.blocks.keys().copied().collect();
        entry.stage = Stage::Sending(sending);
        queues.in_flight += in_flight;
        self.sending.push_back(id);
        self.end_if_read(queues, id);
    }

    fn open_file(&mut self, id: u32) {
        self.opening.push_back(id);
        self.open_files();
    }

    /// Requests that files be opened, in round-robin order, while descriptors are available.
    fn open_files(&mut self) {
        while let Some(&id) = self.opening.front() {
            if let Some(entry) = self.open.get_mut(&id) {
                if entry.held.is_none() {
                    entry.held = self.descriptors.hold(1);
                }
                if entry.held.is_none() {
                    return;
                }
                let (origin, kind, changed) = (entry.origin.clone(), entry.kind.clone(), entry.changed);
                self.ask(Request::Open { id, origin, kind, changed });
            }
            self.opening.pop_front();
        }
    }

    /// Closes the file of an offer, so that another one can be opened.
    fn close_file(&mut self, id: u32) {
        self.ask(Request::Close { id });
        if let Some(entry) = self.open.get_mut(&id) {
            entry.held = None;
        }
        self.open_files();
    }

    /// Requests blocks from the reader until the receiver's window is used up.
    fn ask_for_blocks(&mut self, queues: &mut SendQueues) {
        while self.reading < self.ahead.blocks && queues.data.len() < self.ahead.segments {
            if let Some((id, index)) = self.wrong.pop_front() {
                self.read_again(queues, id, index);
                continue;
            }
            if queues.in_flight >= queues.window {
                return;
            }
            let Some(&id) = self.sending.front() else { return };
            let Some(request) = self.open.get_mut(&id).and_then(|entry| entry.next_request(id)) else {
                self.sending.pop_front();
                continue;
            };
            // A block that is only hashed is not sent, so it does not count in the window.
            if !matches!(request, Request::Hash { .. })
                && let Some(entry) = self.open.get_mut(&id)
            {
                entry.in_flight += 1;
                queues.in_flight += 1;
            }
            self.reading += 1;
            self.ask(request);
        }
    }

    fn on_reply(&mut self, queues: &mut SendQueues, reply: Reply) {
        let Reply { id, is_block, what } = reply;
        self.reading -= usize::from(is_block);
        self.asked = self.asked.saturating_sub(1);
        let Some(entry) = self.open.get_mut(&id) else { return };
        match (what, &mut entry.stage) {
            (ReplyKind::Opened, Stage::Opening(have)) => {
                entry.stage = Stage::Sending(Sending::new(std::mem::take(have)));
                self.sending.push_back(id);
                self.end_if_read(queues, id);
            }
            (ReplyKind::Block { index, block }, _) if entry.repeats.remove(&index) => {
                entry.under_way.insert(index);
                queues.data.extend(block.messages.into_iter().map(OutgoingMessage::Data));
            }
            (ReplyKind::Block { index, block }, Stage::Sending(sending)) => {
                entry.under_way.insert(index);
                // The reader replies in the order of requests, so the root covers the blocks in their order.
                sending.root.add(block.hash);
                sending.reading -= 1;
                queues.data.extend(block.messages.into_iter().map(OutgoingMessage::Data));
                self.end_if_read(queues, id);
            }
            (ReplyKind::Hashed(hash), Stage::Sending(sending)) => {
                sending.root.add(hash);
                sending.reading -= 1;
                self.end_if_read(queues, id);
            }
            (ReplyKind::Next { index, block, bytes, is_last }, _) => {
                self.on_piped(queues, id, index, block, bytes, is_last);
            }
            (ReplyKind::Checked, Stage::Checking(root)) => {
                let (root, size_bytes) = (root.finish(), entry.size_bytes().unwrap_or(0));
                self.end(queues, id, size_bytes, root);
            }
            (ReplyKind::Changed(now), _) => self.on_changed(queues, id, now),
            (ReplyKind::Failed(error), _) => self.on_failed(queues, id, &error),
            _ => {}
        }
    }

    /// Handles a block that was read from a pipe, on any association.
    fn on_piped(
        &mut self,
        queues: &mut SendQueues,
        id: u32,
        index: u64,
        block: BlockMessages,
        bytes: u32,
        is_last: bool,
    ) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        let kept = &mut entry.kept;
        kept.is_reading = false;
        kept.is_at_end = is_last;
        kept.bytes += u64::from(bytes);
        self.report.found(0, u64::from(bytes));
        if bytes > 0 {
            kept.root.add(block.hash);
            kept.read = index + 1;
        } else {
            entry.in_flight = entry.in_flight.saturating_sub(1);
            queues.in_flight = queues.in_flight.saturating_sub(1);
        }
        if let Stage::Sending(_) = &entry.stage {
            if bytes > 0 {
                entry.under_way.insert(index);
                queues.data.extend(block.messages.iter().cloned().map(OutgoingMessage::Data));
            }
            if !self.sending.contains(&id) {
                self.sending.push_back(id);
            }
        }
        if bytes > 0 {
            entry.kept.blocks.insert(index, (block, bytes));
        }
        self.end_if_read(queues, id);
    }

    /// Requests a check that a file is unchanged, if all of its blocks were read.
    fn end_if_read(&mut self, queues: &mut SendQueues, id: u32) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        let Stage::Sending(sending) = &mut entry.stage else { return };
        let is_read = match entry.kind {
            Kind::File { size_bytes, .. } => sending.is_read(blocks_of(size_bytes)),
            _ => entry.kept.is_at_end,
        };
        if !is_read {
            return;
        }
        let root = std::mem::take(&mut sending.root);
        if entry.is_stream() {
            let (size_bytes, root) = (entry.kept.bytes, entry.kept.root.finish());
            return self.end(queues, id, size_bytes, root);
        }
        entry.stage = Stage::Checking(root);
        let (kind, changed) = (entry.kind.clone(), entry.changed);
        self.ask(Request::Check { id, kind, changed });
    }

    fn end(&mut self, queues: &mut SendQueues, id: u32, size_bytes: u64, root: Hash) {
        if let Some(entry) = self.open.get_mut(&id) {
            entry.stage = Stage::Ended;
        }
        queues.send_message(&Message::End { id, size_bytes, root });
        // The receiver may take long to compare a file. The sender therefore closes the file, and opens it again if the receiver
        // requests its blocks.
        if self.open.get(&id).is_some_and(|entry| entry.takes == 0) {
            self.close_file(id);
        }
    }

    fn on_block(
        &mut self,
        queues: &mut SendQueues,
        id: u32,
        index: u64,
        good: bool,
    ) -> Result<(), ProtocolError> {
        let Some(entry) = self.open.get_mut(&id) else {
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("a block of no offer"))
            };
        };
        // A confirmation of a block that was never sent, or was confirmed before, is a protocol error.
        if !entry.under_way.remove(&index) {
            return Err(ProtocolError::Unexpected("a block that was not sent"));
        }
        entry.in_flight = entry.in_flight.saturating_sub(1);
        queues.in_flight = queues.in_flight.saturating_sub(1);
        if good {
            let bytes = u64::from(entry.block_len(index));
            entry.kept.blocks.remove(&index);
            entry.counted_bytes += bytes;
            self.report.held(bytes);
            return Ok(());
        }
        self.send_again(queues, id, index)
    }

    /// Sends a block again that arrived corrupt.
    fn send_again(&mut self, queues: &mut SendQueues, id: u32, index: u64) -> Result<(), ProtocolError> {
        let Some(entry) = self.open.get_mut(&id) else { return Ok(()) };
        entry.wrong += 1;
        if entry.wrong > MOST_WRONG {
            let text =
                format!("{}: it arrives wrong again and again; check the machines' memory", entry.name);
            self.give_up(queues, id, Failure::new(Reason::Corrupt, text));
            return Ok(());
        }
        if !entry.repeats.insert(index) {
            return Err(ProtocolError::Unexpected("a block that was wrong twice and sent once"));
        }
        entry.in_flight += 1;
        queues.in_flight += 1;
        self.wrong.push_back((id, index));
        Ok(())
    }

    /// Reads a block again, when the window has room for it.
    fn read_again(&mut self, queues: &mut SendQueues, id: u32, index: u64) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if entry.is_stream() {
            entry.repeats.remove(&index);
            if let Some((block, _)) = entry.kept.blocks.get(&index) {
                entry.under_way.insert(index);
                queues.data.extend(block.messages.iter().cloned().map(OutgoingMessage::Data));
            }
            return;
        }
        let block_len = entry.block_len(index);
        self.reading += 1;
        self.ask(Request::Block { id, index, block_len });
    }

    fn on_done(&mut self, queues: &mut SendQueues, id: u32, outcome: Outcome) -> Result<(), ProtocolError> {
        let Some(entry) = self.close(queues, id) else {
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("an end of no offer"))
            };
        };
        if let (Outcome::Identical, Some(size)) = (&outcome, entry.size_bytes()) {
            self.report.recount(entry.counted_bytes, 0);
            self.report.reused(size);
        }
        let is_failed = matches!(outcome, Outcome::Failed(_));
        let is_worth_telling = match entry.kind {
            Kind::Folder => {
                if is_failed {
                    self.folders.refuse(&entry.name);
                }
                !entry.is_counted
            }
            Kind::FolderEnd => !self.folders.end(&entry.name) && is_failed,
            Kind::File { .. } | Kind::Stream { .. } | Kind::Link { .. } => true,
        };
        if is_worth_telling {
            entry.report_end(&self.report, outcome);
        }
        Ok(())
    }

    /// Removes an offer and its queued work.
    fn close(&mut self, queues: &mut SendQueues, id: u32) -> Option<Entry> {
        let mut entry = self.open.remove(&id)?;
        queues.in_flight = queues.in_flight.saturating_sub(entry.in_flight);
        self.sending.retain(|other| *other != id);
        self.wrong.retain(|(other, _)| *other != id);
        self.opening.retain(|other| *other != id);
        entry.held = None;
        self.ask(Request::Close { id });
        self.open_files();
        Some(entry)
    }

    fn give_up(&mut self, queues: &mut SendQueues, id: u32, failure: Failure) {
        if let Some(entry) = self.close(queues, id) {
            queues.send_message(&Message::GiveUp { id, failure: failure.clone(), again: false });
            entry.report_end(&self.report, Outcome::Failed(failure));
        }
    }

    fn on_failed(&mut self, queues: &mut SendQueues, id: u32, error: &io::Error) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if error.is_scarcity() && entry.may_wait() {
            entry.held = None;
            return self.opening.push_front(id);
        }
        let shown = match &entry.origin {
            Origin::File { folder, path } => folder.show(path),
            Origin::Stream(_) | Origin::None => entry.name.clone(),
        };
        self.give_up(queues, id, explain(&shown, error));
    }

    /// Handles a file that has changed: the sender offers it again, a limited number of times.
    fn on_changed(&mut self, queues: &mut SendQueues, id: u32, now: Option<(Kind, FileTime)>) {
        let Some(entry) = self.close(queues, id) else { return };
        let text = format!("{} was changed while it was sent", entry.name);
        // An unchanged file whose content is longer or shorter than its size is read like a pipe.
        let now = match now {
            Some(same) if same == (entry.kind.clone(), entry.changed) => {
                stream_kind().ok().map(|kind| (kind, entry.changed))
            }
            now => now,
        };
        let (Some((kind, changed)), true) = (now, entry.changes < MOST_CHANGES) else {
            let text = format!("{text}, again and again; send it when no program writes to it");
            let failure = Failure::new(Reason::Changed, text);
            queues.send_message(&Message::GiveUp { id, failure: failure.clone(), again: false });
            return entry.report_end(&self.report, Outcome::Failed(failure));
        };
        let failure = Failure::new(Reason::Changed, format!("{text}; its transfer starts over"));
        self.report.emit(Event::Note(failure.text.clone()));
        queues.send_message(&Message::GiveUp { id, failure, again: true });
        self.report.subtract_found(1, entry.size_bytes().unwrap_or(0));
        self.report.recount(entry.counted_bytes, 0);
        match kind {
            Kind::File { size_bytes, .. } => self.report.found(1, size_bytes),
            _ => self.report.record_pipe(),
        }
        let id = self.new_id();
        let origin = match entry.origin {
            Origin::File { folder, path } => Origin::of_file(&kind, folder, path),
            origin => origin,
        };
        let mut fresh = Entry::new(entry.name, kind, changed, entry.mode, origin);
        fresh.changes = entry.changes + 1;
        self.offer(queues, id, fresh);
    }
}

/// Effect of a message on the transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The transfer made progress.
    Forward,
    None,
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
