//! State machine of a receiver.

mod offers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::time::Instant;

use tokio::sync::mpsc;

use super::deletion::{Context, Deletion};
use super::open::{Open, Resume, Stage, Wait, size_of};
use super::refusals::{corrupt, refusal};
use super::tally::Tally;
use super::{DeletionInitiator, Input, Mode, Receiving, Store};
use crate::accept::Accept;
use crate::block::Hash;
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::framing::{IncomingMessage, OutgoingMessage};
use crate::moment::Moment;
use crate::name::Name;
use crate::part_lock::PartLock;
use crate::protocol::{
    Answer, Failure, Kind, Listing, Message, Offer, Outcome, ProtocolError, Reason, Segment,
};
use crate::report::{Event, Report};
use crate::scarcity::{SCARCE_FOR, Scarcity};
use crate::store::{Assembly, Block, Committed, Committer, Complete, Content};

pub(super) struct Machine {
    store: Store,
    accept: Accept,
    /// Bounds of the accepted content; `None` if the user has not confirmed it.
    tally: Option<Tally>,
    mode: Mode,
    window_blocks: usize,
    report: Report,
    /// Time of the latest progress.
    progress: Moment,
    part_lock: PartLock,
    output: mpsc::Sender<OutgoingMessage>,
    next_id: u32,
    open: BTreeMap<u32, Open>,
    /// Open offers that wait for descriptors or memory, and those queued behind them.
    line: BTreeSet<u32>,
    /// Folders that a dry run would create in place of other entries.
    replaced: BTreeSet<Name>,
    /// Set once the shortage of descriptors or memory was reported to the user.
    is_scarcity_told: bool,
    assemblies: BTreeMap<(u32, u64), Assembly>,
    /// Offered folders whose end has not been offered.
    folders: BTreeMap<Name, Result<(), Failure>>,
    /// Folders whose end waits for their content.
    folder_ends: VecDeque<(Name, Offer)>,
    /// Time since which the first of these folders fails because the system lacks descriptors or memory.
    scarce_since: Option<Instant>,
    /// Set once a pipe was offered a folder, whose content it refuses.
    is_folder_refused: bool,
    is_finished: bool,
    /// Set once the source has announced the size of the transfer.
    has_total: bool,
    /// `None` for a pipe.
    committer: Option<Committer>,
    /// Removals of this transfer; `None` if they are not permitted.
    deletion: Option<Deletion>,
    /// Cancelled when the results of this receiver are no longer needed.
    cancel: Cancel,
}

impl Machine {
    /// Creates a receiver. The receiver calls `wake` when it has work that no input announces.
    pub(super) fn new(
        receiving: Receiving,
        output: mpsc::Sender<OutgoingMessage>,
        cancel: Cancel,
        wake: impl Fn() + Send + 'static,
    ) -> Self {
        let committer = match &receiving.store {
            Store::Folder(folder) => Some(Committer::new(folder.patient(&cancel), wake)),
            Store::Pipe(_) => None,
        };
        Machine {
            tally: receiving.tally,
            store: receiving.store,
            accept: receiving.accept,
            mode: receiving.mode,
            window_blocks: receiving.window_blocks as usize,
            report: receiving.report,
            progress: receiving.activity.progress,
            part_lock: receiving.part_lock,
            output,
            next_id: 0,
            open: BTreeMap::new(),
            line: BTreeSet::new(),
            is_scarcity_told: false,
            replaced: BTreeSet::new(),
            assemblies: BTreeMap::new(),
            folders: BTreeMap::new(),
            folder_ends: VecDeque::new(),
            scarce_since: None,
            is_folder_refused: false,
            is_finished: false,
            has_total: false,
            committer,
            deletion: receiving.deletion.map(|asked| Deletion::new(asked == DeletionInitiator::Source)),
            cancel,
        }
    }

    /// Runs until everything is done, or the inputs end.
    pub(super) fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> Result<(), TransferError> {
        while !self.is_finished {
            let Some(input) = inputs.blocking_recv() else {
                self.keep();
                return Err(TransferError::Lost("the peer has left".to_owned()));
            };
            if let Err(error) = self.take(input) {
                self.send_message(&Message::Fail(refusal(&error)));
                self.keep();
                return Err(error);
            }
        }
        self.report.all_found();
        Ok(())
    }

    pub(super) fn take(&mut self, input: Input) -> Result<(), TransferError> {
        let is_tick = matches!(input, Input::Tick);
        match input {
            Input::Heard(IncomingMessage::Data(segment)) => self.on_segment(segment)?,
            Input::Heard(IncomingMessage::Control(message)) => self.on_message(message)?,
            Input::Tick => self.on_tick()?,
            Input::Wake => {}
        }
        let committed = self.committer.as_mut().map_or_else(Vec::new, Committer::poll);
        committed.into_iter().for_each(|committed| self.on_committed(committed));
        self.resume_line(is_tick)
    }

    /// Waits until every file that is complete has its name.
    pub(super) fn settle(&mut self) {
        let committed = self.committer.as_mut().map_or_else(Vec::new, Committer::settle);
        committed.into_iter().for_each(|committed| self.on_committed(committed));
    }

    fn on_message(&mut self, message: Message) -> Result<(), TransferError> {
        match message {
            Message::Offer(offer) => self.on_offer(offer),
            Message::End { id, size_bytes, root } => self.on_end(id, size_bytes, root),
            Message::GiveUp { id, failure, again } => {
                self.on_give_up(id, failure, again);
                Ok(())
            }
            Message::Passed { name, failure } => {
                self.report.passed(name, failure);
                Ok(())
            }
            Message::Rule(rule) => match &mut self.deletion {
                Some(deletion) => Ok(deletion.rule(rule)?),
                None => Err(ProtocolError::Unexpected("a pattern out of turn").into()),
            },
            Message::Total { files, bytes } => Ok(self.on_total(files, bytes)?),
            Message::Listing(listing) => self.on_listing(&listing),
            Message::Finished => {
                let is_listing = self.deletion.as_ref().is_some_and(Deletion::is_open);
                self.is_finished = !self.has_open_offers() && !is_listing;
                if !self.is_finished {
                    return Err(ProtocolError::Unexpected("an end before the end").into());
                }
                if let Some(deletion) = &self.deletion {
                    deletion.report_if_partial(&self.report);
                }
                Ok(())
            }
            _ => Err(ProtocolError::Unexpected("a message that only receivers send").into()),
        }
    }

    /// Displays the size of the transfer. The size affects neither memory nor decisions, because the peer controls it.
    fn on_total(&mut self, files: u64, bytes: Option<u64>) -> Result<(), ProtocolError> {
        if std::mem::replace(&mut self.has_total, true) {
            return Err(ProtocolError::Unexpected("a second total"));
        }
        self.report.expect(files, bytes);
        if let (Store::Folder(folder), Mode::Store, Some(bytes)) = (&self.store, self.mode, bytes)
            && let Some(free) = folder.missing_room_for_any(bytes)
        {
            self.report.note(format!(
                "{bytes} B are to come and {free} B are free: files that do not fit are omitted; free space meanwhile"
            ));
        }
        Ok(())
    }

    /// Calls `remove` with the deletion that this transfer may perform, if any.
    fn with_deletion<T>(&self, remove: impl FnOnce(&Deletion, &Context<'_>) -> T) -> Option<T> {
        let (Some(deletion), Store::Folder(folder)) = (&self.deletion, &self.store) else { return None };
        let folder = folder.patient(&self.cancel);
        let context = Context {
            folder: &folder,
            accept: &self.accept,
            report: &self.report,
            cancel: &self.cancel,
            is_dry: self.mode == Mode::DryRun,
            say: &|message| self.send_message(message),
        };
        Some(remove(deletion, &context))
    }

    /// Processes a listing. Removals begin only after all offers are done, because an offer may still fail.
    fn on_listing(&mut self, listing: &Listing) -> Result<(), TransferError> {
        let mut taken_out = self.deletion.take().filter(|_| !self.has_open_offers());
        let (Some(deletion), Store::Folder(folder)) = (&mut taken_out, &self.store) else {
            return Err(ProtocolError::Unexpected("a listing out of turn").into());
        };
        self.progress.mark();
        let patient = folder.patient(&self.cancel);
        let context = Context {
            folder: &patient,
            accept: &self.accept,
            report: &self.report,
            cancel: &self.cancel,
            is_dry: self.mode == Mode::DryRun,
            say: &|message| self.send_message(message),
        };
        deletion.listing(listing, &context)?;
        self.deletion = taken_out;
        Ok(())
    }

    fn has_open_offers(&self) -> bool {
        !self.open.is_empty() || !self.folder_ends.is_empty()
    }

    /// Handles the end of a folder. An end is valid only for an entry that was offered as a folder on this association.
    fn on_folder_end(&mut self, name: Name, offer: Offer) {
        match self.folders.remove(&name) {
            Some(Ok(())) => {
                self.folder_ends.push_back((name, offer));
                self.end_folders();
            }
            // The failure was reported when the folder was offered.
            Some(Err(failure)) => {
                self.send_message(&Message::Done { id: offer.id, outcome: Outcome::Failed(failure) });
            }
            None => {
                let text = format!("{name} was not offered as a folder before its end; it was left as it is");
                self.done(&offer, Outcome::Failed(Failure::new(Reason::Protocol, text)));
            }
        }
    }

    fn on_segment(&mut self, segment: Segment) -> Result<(), TransferError> {
        let (id, index) = (segment.id, segment.index);
        self.report.moved(segment.content.len() as u64);
        let Some(open) = self.open.get_mut(&id) else {
            // Segments in flight when this side abandoned the file.
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("data without an offer").into())
            };
        };
        open.check(index, segment.block_len, self.window_blocks)?;
        if let (Kind::Stream { .. }, Some(tally)) = (&open.offer.kind, &self.tally) {
            tally.stream_block(&open.name, index, segment.block_len)?;
        }
        if let Err(error) = open.check_room(index) {
            let failure = self.store.failure(&open.name, &error);
            self.fail(id, failure, Keep::Yes);
            return Ok(());
        }
        let block_len = segment.block_len;
        let assembly = self.assemblies.entry((id, index)).or_insert_with(|| Assembly::new(block_len));
        let complete = assembly.take(segment)?;
        if self.assemblies.len() + self.early_blocks() > self.window_blocks {
            return Err(ProtocolError::Unexpected("more blocks at a time than agreed").into());
        }
        if let Some(block) = complete {
            self.assemblies.remove(&(id, index));
            self.on_block(id, index, block);
        }
        Ok(())
    }

    /// Returns the number of complete blocks that wait for earlier blocks.
    fn early_blocks(&self) -> usize {
        let early = |open: &Open| match &open.stage {
            Stage::Flow(flow) => flow.early_blocks(),
            _ => 0,
        };
        self.open.values().map(early).sum()
    }

    fn on_block(&mut self, id: u32, index: u64, block: Block) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Some(hash) = block.verified() else {
            return self.send_message(&Message::Block { id, index, good: false });
        };
        let written = match &mut open.stage {
            Stage::Part(part) => part.write(index, &block, hash).map(|()| vec![(index, block.len())]),
            Stage::Flow(flow) => flow.write(index, block, hash),
            // `check` refuses blocks in these stages.
            Stage::Waiting(_) | Stage::Comparing | Stage::Committing => return,
        };
        match written {
            Ok(written) => {
                self.progress.mark();
                for (index, bytes) in written {
                    open.held_bytes += bytes;
                    self.report.held(bytes);
                    if matches!(open.offer.kind, Kind::Stream { .. }) {
                        self.report.found(0, bytes);
                    }
                    let message = Message::Block { id, index, good: true };
                    // Sending fails once the transfer has ended.
                    let _ = self.output.blocking_send(OutgoingMessage::from(&message));
                }
                self.finish_if_complete(id);
            }
            Err(error) => {
                let failure = self.store.failure(&open.name, &error);
                self.fail(id, failure, Keep::Yes);
            }
        }
    }

    fn on_end(&mut self, id: u32, size_bytes: u64, root: Hash) -> Result<(), TransferError> {
        let Some(open) = self.open.get_mut(&id) else {
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("an end without an offer").into())
            };
        };
        let is_expected = match &open.stage {
            Stage::Waiting(_) | Stage::Committing => false,
            Stage::Part(part) => part.may_end_at(size_bytes),
            Stage::Comparing | Stage::Flow(_) => true,
        };
        if !is_expected || open.end.is_some() || size_of(&open.offer).is_some_and(|size| size != size_bytes) {
            return Err(ProtocolError::Unexpected("an end that does not match its offer").into());
        }
        if matches!(open.stage, Stage::Comparing) {
            let Some(Open { name, offer, .. }) = self.open.remove(&id) else { return Ok(()) };
            let resume = Resume::Compared { end: (size_bytes, root), different: None };
            return self.advance(name, offer, Wait { resume, ..Wait::new() });
        }
        open.end = Some((size_bytes, root));
        if let Stage::Part(part) = &mut open.stage {
            part.end_at(size_bytes);
        }
        self.finish_if_complete(id);
        Ok(())
    }

    fn finish_if_complete(&mut self, id: u32) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Some((size_bytes, root)) = open.end else { return };
        match &mut open.stage {
            Stage::Part(part) if part.is_complete(size_bytes) => self.finish_part(id, size_bytes, root),
            Stage::Flow(flow) if flow.is_complete(size_bytes) => {
                if !flow.finish(size_bytes, root) {
                    let failure = corrupt(&open.name);
                    return self.fail(id, failure, Keep::No);
                }
                let Some(open) = self.open.remove(&id) else { return };
                self.done_with(&open.offer, Some(size_bytes), Outcome::Stored { renamed: None });
            }
            _ => {}
        }
    }

    /// Completes a part file whose blocks are all stored, if its root is the source's.
    fn finish_part(&mut self, id: u32, size_bytes: u64, root: Hash) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Stage::Part(part) = &mut open.stage else { return };
        match part.root(size_bytes) {
            Ok(found) if found == Some(root) => {
                let name = open.name.clone();
                if let Err(failure) = self.make_way(&name, false) {
                    return self.fail(id, failure, Keep::Yes);
                }
                let Some(open) = self.open.get_mut(&id) else { return };
                if let (Stage::Part(part), Some(committer)) =
                    (std::mem::replace(&mut open.stage, Stage::Committing), &mut self.committer)
                {
                    let (name, offer) = (open.name.clone(), open.offer.clone());
                    committer.add(Complete { id, name, offer, content: Content::File { part, size_bytes } });
                }
            }
            Ok(_) if part.reported_blocks().is_empty() => {
                let failure = corrupt(&open.name);
                self.fail(id, failure, Keep::No);
            }
            // Some blocks of the file were stored before this association.
            Ok(_) => self.take_again(id),
            Err(error) => {
                let failure = self.store.failure(&open.name, &error);
                self.fail(id, failure, Keep::Yes);
            }
        }
    }

    /// Handles a file or link that got its name, or failed to.
    fn on_committed(&mut self, committed: Committed) {
        let Committed { id, content, given, recorded } = committed;
        report_unrecorded(&self.report, recorded);
        match (given, content) {
            (Ok(renamed), content) => {
                let size_bytes = match content {
                    Content::File { size_bytes, .. } => Some(size_bytes),
                    Content::Link { .. } => None,
                };
                let Some(open) = self.open.remove(&id) else { return };
                let renamed = renamed.map(Into::into);
                if let Some(tally) = &self.tally {
                    tally.stored(&open.name, &open.offer.kind);
                }
                self.done_with(&open.offer, size_bytes, Outcome::Stored { renamed });
            }
            (Err(failure), Content::File { part, .. }) => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.stage = Stage::Part(part);
                }
                self.fail(id, failure, Keep::Yes);
            }
            (Err(failure), Content::Link { .. }) => self.fail(id, failure, Keep::No),
        }
    }

    /// Requests a file again in full, because the blocks stored before differ from those of the source. This happens at most once,
    /// because afterwards all blocks come from this source.
    fn take_again(&mut self, id: u32) {
        let Some(Open { name, offer, mut stage, held_bytes, reused_bytes, .. }) = self.open.remove(&id)
        else {
            return;
        };
        self.report.forget(reused_bytes, held_bytes);
        let restarted = match &mut stage {
            Stage::Part(part) => part.restart(&offer),
            Stage::Waiting(_) | Stage::Comparing | Stage::Committing | Stage::Flow(_) => Ok(()),
        };
        match restarted {
            Ok(()) => {
                let text = format!(
                    "{name}: the part that was kept differs from the file that is sent, and was discarded; the transfer of this file starts over"
                );
                self.report.note(text);
                self.open_offer(name, offer, stage, Some(Answer::Take { have: Vec::new() }));
            }
            Err(error) => self.done(&offer, Outcome::Failed(self.store.failure(&name, &error))),
        }
    }

    fn on_give_up(&mut self, id: u32, failure: Failure, again: bool) {
        if self.open.get(&id).is_some_and(|open| matches!(open.stage, Stage::Committing)) {
            // The file is complete and verified.
            return;
        }
        let keep = if failure.reason == Reason::Changed { Keep::No } else { Keep::Yes };
        let Some(open) = self.close(id, keep) else { return };
        let size_bytes = size_of(&open.offer);
        if again {
            if let Some(tally) = &self.tally {
                tally.given_up(&open.name, &open.offer.kind);
            }
            self.report.subtract_found(1, size_bytes.unwrap_or(0));
            self.report.emit(Event::Note(failure.text));
        } else {
            self.report.done(open.name.as_str(), size_bytes, Outcome::Failed(failure));
        }
        self.end_folders();
    }

    fn fail(&mut self, id: u32, failure: Failure, keep: Keep) {
        if let Some(open) = self.close(id, keep) {
            self.done(&open.offer, Outcome::Failed(failure));
        }
    }

    /// Closes a file that is not complete.
    fn close(&mut self, id: u32, keep: Keep) -> Option<Open> {
        self.assemblies.retain(|(of, _), _| *of != id);
        self.line.remove(&id);
        let mut open = self.open.remove(&id)?;
        if let (Stage::Part(part), Store::Folder(folder)) = (&mut open.stage, &self.store) {
            let is_kept = keep == Keep::Yes && part.is_resumable();
            if is_kept {
                // If the sync fails, the source sends a few more blocks again.
                let _ = part.sync();
            } else if let Stage::Part(part) = std::mem::replace(&mut open.stage, Stage::Waiting(Wait::new()))
            {
                let _ = folder.discard(*part);
            }
        }
        match keep {
            Keep::No => self.report.forget(open.reused_bytes, open.held_bytes),
            Keep::Yes => self.report.kept(open.reused_bytes + open.held_bytes),
        }
        Some(open)
    }

    /// Syncs every journal, before the end.
    fn keep(&mut self) {
        self.settle();
        let ids: Vec<u32> = self.open.keys().copied().collect();
        for id in ids {
            self.close(id, Keep::Yes);
        }
    }

    fn on_tick(&mut self) -> Result<(), TransferError> {
        let mut failed = Vec::new();
        for (id, open) in &mut self.open {
            if let Stage::Part(part) = &mut open.stage
                && let Err(error) = part.sync_if_due()
            {
                failed.push((*id, self.store.failure(&open.name, &error)));
            }
        }
        for (id, failure) in failed {
            self.fail(id, failure, Keep::Yes);
        }
        self.end_folders();
        self.resume_contended()
    }

    fn done(&mut self, offer: &Offer, outcome: Outcome) {
        self.done_with(offer, size_of(offer), outcome);
    }

    fn done_with(&mut self, offer: &Offer, size_bytes: Option<u64>, outcome: Outcome) {
        if self.cancel.is_cancelled() && matches!(outcome, Outcome::Failed(_)) {
            // The entry was skipped, which is not a failure.
            return;
        }
        if offer.kind != Kind::FolderEnd || matches!(outcome, Outcome::Failed(_)) {
            self.report.done(offer.name.clone(), size_bytes, outcome.clone());
        }
        if !matches!(outcome, Outcome::Failed(_)) {
            self.progress.mark();
        }
        self.send_message(&Message::Done { id: offer.id, outcome });
        self.end_folders();
    }

    /// Completes folders whose content is done, which is the case when all offers before their end are done.
    fn end_folders(&mut self) {
        while let (Some((_, offer)), Store::Folder(_)) = (self.folder_ends.front(), &self.store) {
            if self.open.keys().next().is_some_and(|id| *id < offer.id) {
                return;
            }
            let (Some((name, offer)), Store::Folder(folder)) = (self.folder_ends.pop_front(), &self.store)
            else {
                return;
            };
            let sealed = folder.seal_folder(&name, &offer);
            if sealed.as_ref().is_err_and(Scarcity::is_scarcity) && !self.is_scarce_for_too_long() {
                return self.folder_ends.push_front((name, offer));
            }
            self.scarce_since = None;
            self.done(&offer, sealed.map_or_else(Outcome::Failed, |()| Outcome::Stored { renamed: None }));
        }
    }

    fn is_scarce_for_too_long(&mut self) -> bool {
        self.scarce_since.get_or_insert_with(Instant::now).elapsed() >= SCARCE_FOR
    }

    fn send_message(&self, message: &Message) {
        // Sending fails once the transfer has ended, and then the inputs end, too.
        let _ = self.output.blocking_send(OutgoingMessage::from(message));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

/// Reports a file that could not be recorded. The file is stored correctly, but its content is compared at the next transfer.
fn report_unrecorded(report: &Report, recorded: io::Result<()>) {
    if let Err(error) = recorded {
        report.note(format!(
            "the record of stored files, or their time and permissions, cannot be kept ({error}); they are compared next time"
        ));
    }
}
