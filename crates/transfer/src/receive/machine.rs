//! What a receiver does with what it hears.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::deletion::{Context, Deletion};
use super::open::{Open, Stage, is_link, size_of};
use super::refusals::{corrupt, excluded, hidden, refusal, refused_by_pipe};
use super::tally::Tally;
use super::{AskedBy, Input, Mode, Receiving, Store};
use crate::accept::{Accept, Verdict};
use crate::block::Hash;
use crate::cancel::Cancel;
use crate::claims::Claimant;
use crate::error::TransferError;
use crate::link::{Incoming, Outgoing};
use crate::moment::Moment;
use crate::name::Name;
use crate::protocol::{
    Answer, Failure, Kind, Listing, MAX_OPEN_OFFERS, Message, Offer, Outcome, ProtocolError, Reason, Segment,
};
use crate::report::{Event, Report};
use crate::store::{Assembly, Begin, Block, Committed, Committer, Comparison, Complete, Content, Preview};

/// How long a file may be in somebody else's hands before it is refused.
const BUSY_FOR: Duration = Duration::from_secs(12);

/// Most folders that may be offered without their end. Those that contain each other are fewer than [`MAX_PARTS`](crate::MAX_PARTS).
const MAX_OPEN_FOLDERS: usize = 1024;

/// What is known of an offer that may be done at once.
enum Next {
    Done(Outcome),
    Open(Stage, Option<Answer>),
}

pub(super) struct Machine {
    store: Store,
    accept: Accept,
    /// `None` unless a person has confirmed what is taken.
    tally: Option<Tally>,
    mode: Mode,
    window_blocks: usize,
    report: Report,
    /// When the transfer came further.
    progress: Moment,
    claimant: Claimant,
    output: mpsc::Sender<Outgoing>,
    next_id: u32,
    open: BTreeMap<u32, Open>,
    assemblies: BTreeMap<(u32, u64), Assembly>,
    /// Folders that were offered, and whose end was not.
    folders: BTreeMap<Name, Result<(), Failure>>,
    /// Folders that wait for what is in them.
    folder_ends: VecDeque<(Name, Offer)>,
    /// A pipe was offered a folder, and takes nothing of what is in it.
    is_folder_refused: bool,
    is_finished: bool,
    /// Set once the source has announced the size of the transfer.
    has_total: bool,
    /// `None` for a pipe.
    committer: Option<Committer>,
    /// `None` unless something may be removed.
    deletion: Option<Deletion>,
    /// Set when nobody waits for what is computed here any more.
    cancel: Cancel,
}

impl Machine {
    /// `wake` is called when there is something to be done that no input tells of.
    pub(super) fn new(
        receiving: Receiving,
        output: mpsc::Sender<Outgoing>,
        cancel: Cancel,
        wake: impl Fn() + Send + 'static,
    ) -> Self {
        let committer = match &receiving.store {
            Store::Folder(folder) => Some(Committer::new(folder.clone(), wake)),
            Store::Pipe(_) => None,
        };
        Machine {
            tally: receiving.accept.bounds().map(Tally::new),
            store: receiving.store,
            accept: receiving.accept,
            mode: receiving.mode,
            window_blocks: receiving.window_blocks as usize,
            report: receiving.report,
            progress: receiving.activity.progress,
            claimant: receiving.claimant,
            output,
            next_id: 0,
            open: BTreeMap::new(),
            assemblies: BTreeMap::new(),
            folders: BTreeMap::new(),
            folder_ends: VecDeque::new(),
            is_folder_refused: false,
            is_finished: false,
            has_total: false,
            committer,
            deletion: receiving.deletion.map(|asked| Deletion::new(asked == AskedBy::Source)),
            cancel,
        }
    }

    /// Runs until everything is done, or nothing more is heard.
    pub(super) fn run(mut self, mut inputs: mpsc::Receiver<Input>) -> Result<(), TransferError> {
        while !self.is_finished {
            let Some(input) = inputs.blocking_recv() else {
                self.keep();
                return Err(TransferError::Lost("the peer is gone".to_owned()));
            };
            if let Err(error) = self.take(input) {
                self.say(&Message::Fail(refusal(&error)));
                self.keep();
                return Err(error);
            }
        }
        self.report.all_found();
        Ok(())
    }

    pub(super) fn take(&mut self, input: Input) -> Result<(), TransferError> {
        match input {
            Input::Heard(Incoming::Data(segment)) => self.on_segment(segment)?,
            Input::Heard(Incoming::Control(message)) => self.on_message(message)?,
            Input::Tick => self.on_tick(),
            Input::Wake => {}
        }
        let committed = self.committer.as_mut().map_or_else(Vec::new, Committer::poll);
        committed.into_iter().for_each(|committed| self.on_committed(committed));
        Ok(())
    }

    /// Waits until every file that is complete has its name.
    pub(super) fn settle(&mut self) {
        let committed = self.committer.as_mut().map_or_else(Vec::new, Committer::settle);
        committed.into_iter().for_each(|committed| self.on_committed(committed));
    }

    fn on_message(&mut self, message: Message) -> Result<(), TransferError> {
        match message {
            Message::Offer(offer) => self.on_offer(offer),
            Message::End { id, size_bytes, root } => Ok(self.on_end(id, size_bytes, root)?),
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
                    deletion.tell_if_partial(&self.report);
                }
                Ok(())
            }
            _ => Err(ProtocolError::Unexpected("a message that only receivers send").into()),
        }
    }

    /// Shows the size of the transfer. Nothing is allocated or decided by it.
    fn on_total(&mut self, files: u64, bytes: Option<u64>) -> Result<(), ProtocolError> {
        if std::mem::replace(&mut self.has_total, true) {
            return Err(ProtocolError::Unexpected("a second total"));
        }
        self.report.expect(files, bytes);
        Ok(())
    }

    /// Nothing is removed as long as anything that was offered may still fail.
    fn on_listing(&mut self, listing: &Listing) -> Result<(), TransferError> {
        let mut taken_out = self.deletion.take().filter(|_| !self.has_open_offers());
        let (Some(deletion), Store::Folder(folder)) = (&mut taken_out, &self.store) else {
            return Err(ProtocolError::Unexpected("a listing out of turn").into());
        };
        self.progress.mark();
        let context = Context {
            folder,
            accept: &self.accept,
            report: &self.report,
            cancel: &self.cancel,
            is_dry: self.mode == Mode::DryRun,
            say: &|message| self.say(message),
        };
        deletion.listing(listing, &context)?;
        self.deletion = taken_out;
        Ok(())
    }

    fn has_open_offers(&self) -> bool {
        !self.open.is_empty() || !self.folder_ends.is_empty()
    }

    fn on_offer(&mut self, offer: Offer) -> Result<(), TransferError> {
        if self.deletion.as_ref().is_some_and(Deletion::has_begun) {
            return Err(ProtocolError::Unexpected("an offer after a listing").into());
        }
        // Nothing comes after the greatest number, so that one could be offered again and again.
        if offer.id < self.next_id || offer.id == u32::MAX {
            return Err(ProtocolError::Unexpected("an offer out of order").into());
        }
        if self.open.len() + self.folder_ends.len() >= MAX_OPEN_OFFERS {
            return Err(ProtocolError::Unexpected("more offers at a time than agreed").into());
        }
        if self.next_id == 0 {
            // Whatever it is, the peer has begun.
            self.progress.mark();
        }
        self.next_id = offer.id + 1;
        let name = match self.store.admit(offer.name.raw()) {
            Ok(name) => name,
            Err(bad) => {
                let text =
                    format!("the name `{}` is not taken: {bad}; send it under another one", offer.name);
                self.done(&offer, Outcome::Failed(Failure::new(Reason::BadName, text)));
                return Ok(());
            }
        };
        let is_folder = matches!(offer.kind, Kind::Folder | Kind::FolderEnd);
        let verdict = self.accept.judge(&name, is_folder);
        if let (Verdict::Accepted, Some(tally)) = (verdict, &mut self.tally) {
            tally.offered(&name, &offer.kind)?;
        }
        match verdict {
            Verdict::Accepted if self.mode == Mode::List => self.list(offer),
            Verdict::Accepted if self.mode == Mode::DryRun => self.plan(name, offer),
            Verdict::Accepted => self.on_accepted(name, offer)?,
            Verdict::Excluded => self.done(&offer, Outcome::Failed(excluded(&name))),
            Verdict::Hidden => self.done(&offer, Outcome::Failed(hidden(&name))),
            Verdict::NotRequested => return Err(TransferError::NotRequested(name)),
        }
        Ok(())
    }

    fn on_accepted(&mut self, name: Name, offer: Offer) -> Result<(), ProtocolError> {
        match (&offer.kind, &self.store) {
            (Kind::Folder, Store::Folder(folder)) => {
                let outcome = folder.make_folder(&name);
                if let (Ok(()), Some(deletion)) = (&outcome, &mut self.deletion) {
                    deletion.offered(&name);
                }
                self.folders.insert(name, outcome.clone());
                if self.folders.len() > MAX_OPEN_FOLDERS {
                    return Err(ProtocolError::Unexpected("more folders at a time than agreed"));
                }
                self.done(
                    &offer,
                    outcome.map_or_else(Outcome::Failed, |()| Outcome::Stored { renamed: None }),
                );
            }
            (Kind::FolderEnd, Store::Folder(_)) => self.on_folder_end(name, offer),
            (Kind::Link { target }, Store::Folder(folder)) => {
                let target = target.raw().to_owned();
                let next = match folder.begin_link(&name, &target) {
                    Ok(true) => Next::Open(Stage::Committing, None),
                    Ok(false) => Next::Done(Outcome::Identical),
                    Err(failure) => Next::Done(Outcome::Failed(failure)),
                };
                let is_made = matches!(next, Next::Open(..));
                let (id, content) = (offer.id, Content::Link { target });
                self.enter(name.clone(), offer.clone(), next);
                if let (true, Some(committer)) = (is_made, &mut self.committer) {
                    committer.add(Complete { id, name, offer, content });
                }
            }
            (Kind::Link { .. }, Store::Pipe(_)) => {
                self.done(&offer, Outcome::Failed(refused_by_pipe(&name, false)));
            }
            (Kind::Folder | Kind::FolderEnd, Store::Pipe(_)) => {
                self.is_folder_refused = true;
                let text = format!("{name} is a folder; a pipe takes one file only");
                self.done(&offer, Outcome::Failed(Failure::new(Reason::NotAllowed, text)));
            }
            (Kind::File { size_bytes, .. }, _) => {
                self.report.found(1, *size_bytes);
                self.begin(name, offer);
            }
            (Kind::Stream { .. }, _) => {
                self.report.found_pipe();
                self.begin(name, offer);
            }
        }
        Ok(())
    }

    fn list(&mut self, offer: Offer) {
        self.say(&Message::Done { id: offer.id, outcome: Outcome::Planned });
        if offer.kind != Kind::FolderEnd {
            self.report.found(u64::from(size_of(&offer).is_some()), size_of(&offer).unwrap_or(0));
            self.report.emit(Event::Listed(Box::new(offer)));
        }
    }

    /// Says what would become of an offer.
    fn plan(&mut self, name: Name, offer: Offer) {
        let Store::Folder(folder) = &self.store else {
            return self.done(&offer, Outcome::Failed(refused_by_pipe(&name, false)));
        };
        let outcome = match &offer.kind {
            Kind::FolderEnd => Outcome::Planned,
            Kind::Folder => {
                let preview = folder.preview_folder(&name);
                if let (Ok(()), Some(deletion)) = (&preview, &mut self.deletion) {
                    deletion.offered(&name);
                }
                preview.map_or_else(Outcome::Failed, |()| Outcome::Planned)
            }
            Kind::File { .. } | Kind::Stream { .. } | Kind::Link { .. } => {
                self.report.found(u64::from(!is_link(&offer)), size_of(&offer).unwrap_or(0));
                match folder.preview(&name, &offer) {
                    Ok(Preview::Take) => Outcome::Planned,
                    Ok(Preview::Same) => Outcome::Identical,
                    Ok(Preview::Compare) => {
                        return self.enter(name, offer, Next::Open(Stage::Comparing, Some(Answer::Compare)));
                    }
                    Err(failure) => Outcome::Failed(failure),
                }
            }
        };
        self.enter(name, offer, Next::Done(outcome));
    }

    /// Only what was offered as a folder on this association has an end.
    fn on_folder_end(&mut self, name: Name, offer: Offer) {
        match self.folders.remove(&name) {
            Some(Ok(())) => {
                self.folder_ends.push_back((name, offer));
                self.end_folders();
            }
            // It was reported when the folder was offered.
            Some(Err(failure)) => {
                self.say(&Message::Done { id: offer.id, outcome: Outcome::Failed(failure) });
            }
            None => {
                let text = format!("{name} was not offered as a folder before its end; it was left as it is");
                self.done(&offer, Outcome::Failed(Failure::new(Reason::Protocol, text)));
            }
        }
    }

    fn begin(&mut self, name: Name, offer: Offer) {
        let next = match &self.store {
            Store::Folder(folder) => match folder.begin(&name, &offer, &self.cancel) {
                Ok(begin) => next(begin),
                Err(failure) => Next::Done(Outcome::Failed(failure)),
            },
            Store::Pipe(_) if self.is_folder_refused => {
                Next::Done(Outcome::Failed(refused_by_pipe(&name, false)))
            }
            Store::Pipe(pipe) => match pipe.open(&offer) {
                Some(flow) => {
                    let have = flow.have();
                    Next::Open(Stage::Flow(Box::new(flow)), Some(Answer::Take { have }))
                }
                None => Next::Done(Outcome::Failed(refused_by_pipe(&name, pipe.is_begun()))),
            },
        };
        if matches!(next, Next::Open(Stage::Waiting { .. }, _)) {
            self.claimant.contend(&self.store.part_of(&name));
        }
        self.enter(name, offer, next);
    }

    fn enter(&mut self, name: Name, offer: Offer, next: Next) {
        let (stage, answer) = match next {
            Next::Done(outcome) => {
                if let (Outcome::Identical, Some(size)) = (&outcome, size_of(&offer)) {
                    self.report.reused(size);
                }
                return self.done(&offer, outcome);
            }
            Next::Open(stage, answer) => (stage, answer),
        };
        let id = offer.id;
        let reused_bytes = match &stage {
            Stage::Part(part) => part.reused_bytes(),
            Stage::Flow(flow) => flow.reused_bytes(),
            Stage::Waiting { .. } | Stage::Comparing | Stage::Committing => 0,
        };
        if let Some(Answer::Take { .. }) = answer {
            self.report.reused(reused_bytes);
            if matches!(&stage, Stage::Part(part) if part.restarted) {
                let text = format!("{name} has changed since a part of it arrived; it begins anew");
                self.report.emit(Event::Note(text.into()));
            }
            let size_bytes = size_of(&offer);
            self.report.emit(Event::Begun { name: name.as_str().into(), size_bytes, reused_bytes });
        }
        let claim = match &stage {
            Stage::Part(part) => Some(self.claimant.hold(self.store.part_of(part.name()))),
            Stage::Flow(_) | Stage::Waiting { .. } | Stage::Comparing | Stage::Committing => None,
        };
        self.open
            .insert(id, Open { name, offer, stage, end: None, held_bytes: 0, reused_bytes, _claim: claim });
        if let Some(answer) = answer {
            self.progress.mark();
            self.say(&Message::Answer { id, answer });
        }
    }

    fn on_segment(&mut self, segment: Segment) -> Result<(), TransferError> {
        let (id, index) = (segment.id, segment.index);
        self.report.moved(segment.content.len() as u64);
        let Some(open) = self.open.get_mut(&id) else {
            // What was under way when the file was given up here.
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("data of nothing offered").into())
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

    /// Blocks that are complete and wait for others before them.
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
            return self.say(&Message::Block { id, index, good: false });
        };
        let written = match &mut open.stage {
            Stage::Part(part) => part.write(index, &block, hash).map(|()| vec![(index, block.len())]),
            Stage::Flow(flow) => flow.write(index, block, hash),
            // `check` let nothing through.
            Stage::Waiting { .. } | Stage::Comparing | Stage::Committing => return,
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
                    // Whoever listened is gone when this fails.
                    let _ = self.output.blocking_send(Outgoing::from(&message));
                }
                self.finish_if_complete(id);
            }
            Err(error) => {
                let failure = self.store.failure(&open.name, &error);
                self.fail(id, failure, Keep::Yes);
            }
        }
    }

    fn on_end(&mut self, id: u32, size_bytes: u64, root: Hash) -> Result<(), ProtocolError> {
        let Some(open) = self.open.get_mut(&id) else {
            return if id < self.next_id {
                Ok(())
            } else {
                Err(ProtocolError::Unexpected("an end of nothing offered"))
            };
        };
        let is_expected = match &open.stage {
            Stage::Waiting { .. } | Stage::Committing => false,
            Stage::Part(part) => part.may_end_at(size_bytes),
            Stage::Comparing | Stage::Flow(_) => true,
        };
        if !is_expected || open.end.is_some() || size_of(&open.offer).is_some_and(|size| size != size_bytes) {
            return Err(ProtocolError::Unexpected("an end that does not fit its offer"));
        }
        if matches!(open.stage, Stage::Comparing) {
            self.compare(id, size_bytes, root);
            return Ok(());
        }
        open.end = Some((size_bytes, root));
        if let Stage::Part(part) = &mut open.stage {
            part.end_at(size_bytes);
        }
        self.finish_if_complete(id);
        Ok(())
    }

    /// Compares a file that is there with the root of the one that is offered.
    fn compare(&mut self, id: u32, size_bytes: u64, root: Hash) {
        let (Some(open), Store::Folder(folder)) = (self.open.remove(&id), &self.store) else { return };
        let Open { name, offer, .. } = open;
        let is_dry = self.mode == Mode::DryRun;
        let next = match folder.compare(&name, &offer, (size_bytes, root), !is_dry, &self.cancel) {
            Ok(Comparison::Same(recorded)) => {
                tell_unrecorded(&self.report, recorded);
                Next::Done(Outcome::Identical)
            }
            Ok(Comparison::Different) => {
                let may = folder.check_clash(&name, "is there already, with another content");
                let taken = may.and_then(|()| match is_dry {
                    true => Ok(Next::Done(Outcome::Planned)),
                    false => folder.take(&name, &offer, &self.cancel).map(next),
                });
                taken.unwrap_or_else(|failure| Next::Done(Outcome::Failed(failure)))
            }
            Err(error) => Next::Done(Outcome::Failed(folder.failure(&name, &error))),
        };
        self.enter(name, offer, next);
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

    /// Every block of a file is there: it is what its source has, or it is not.
    fn finish_part(&mut self, id: u32, size_bytes: u64, root: Hash) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let Stage::Part(part) = &mut open.stage else { return };
        match part.root(size_bytes) {
            Ok(found) if found == Some(root) => {
                if let (Stage::Part(part), Some(committer)) =
                    (std::mem::replace(&mut open.stage, Stage::Committing), &mut self.committer)
                {
                    let (name, offer) = (open.name.clone(), open.offer.clone());
                    committer.add(Complete { id, name, offer, content: Content::File { part, size_bytes } });
                }
            }
            Ok(_) if part.told().is_empty() => {
                let failure = corrupt(&open.name);
                self.fail(id, failure, Keep::No);
            }
            // Not all of it came on this association.
            Ok(_) => self.take_again(id),
            Err(error) => {
                let failure = self.store.failure(&open.name, &error);
                self.fail(id, failure, Keep::Yes);
            }
        }
    }

    /// A file or link has its name, or has not got it.
    fn on_committed(&mut self, committed: Committed) {
        let Committed { id, content, given, recorded } = committed;
        tell_unrecorded(&self.report, recorded);
        match (given, content) {
            (Ok(renamed), content) => {
                let size_bytes = match content {
                    Content::File { size_bytes, .. } => Some(size_bytes),
                    Content::Link { .. } => None,
                };
                let Some(open) = self.open.remove(&id) else { return };
                let renamed = renamed.map(Into::into);
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

    /// What was there of a file is not what its source has, so everything is asked for. This happens once: then nothing is
    /// there that did not come from this source.
    fn take_again(&mut self, id: u32) {
        let Some(Open { name, offer, mut stage, held_bytes, reused_bytes, .. }) = self.open.remove(&id)
        else {
            return;
        };
        self.report.forget(reused_bytes, held_bytes);
        let restarted = match &mut stage {
            Stage::Part(part) => part.restart(&offer),
            Stage::Waiting { .. } | Stage::Comparing | Stage::Committing | Stage::Flow(_) => Ok(()),
        };
        let next = match restarted {
            Ok(()) => {
                let text = format!(
                    "{name}: what was kept of it is not what is sent, and was thrown away; it begins anew"
                );
                self.report.note(text);
                Next::Open(stage, Some(Answer::Take { have: Vec::new() }))
            }
            Err(error) => Next::Done(Outcome::Failed(self.store.failure(&name, &error))),
        };
        self.enter(name, offer, next);
    }

    fn on_give_up(&mut self, id: u32, failure: Failure, again: bool) {
        if self.open.get(&id).is_some_and(|open| matches!(open.stage, Stage::Committing)) {
            // All of it is here and verified.
            return;
        }
        let keep = if failure.reason == Reason::Changed { Keep::No } else { Keep::Yes };
        let Some(open) = self.close(id, keep) else { return };
        let size_bytes = size_of(&open.offer);
        if again {
            if let Some(tally) = &mut self.tally {
                tally.given_up(&open.name, &open.offer.kind);
            }
            self.report.unfound(1, size_bytes.unwrap_or(0));
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

    /// Lets go of a file that is not complete.
    fn close(&mut self, id: u32, keep: Keep) -> Option<Open> {
        self.assemblies.retain(|(of, _), _| *of != id);
        let mut open = self.open.remove(&id)?;
        if let (Stage::Part(part), Store::Folder(folder)) = (&mut open.stage, &self.store) {
            let is_kept = keep == Keep::Yes && part.is_resumable();
            if is_kept {
                // There is nothing to be done if this fails, too: then a little more is sent again.
                let _ = part.sync();
            } else if let Stage::Part(part) =
                std::mem::replace(&mut open.stage, Stage::Waiting { since: Instant::now() })
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

    /// Brings every journal up to date, before the end.
    fn keep(&mut self) {
        self.settle();
        let ids: Vec<u32> = self.open.keys().copied().collect();
        for id in ids {
            self.close(id, Keep::Yes);
        }
    }

    fn on_tick(&mut self) {
        let (mut waiting, mut failed) = (Vec::new(), Vec::new());
        for (id, open) in &mut self.open {
            match &mut open.stage {
                Stage::Waiting { since } => waiting.push((*id, *since)),
                Stage::Part(part) => {
                    if let Err(error) = part.sync_if_due() {
                        failed.push((*id, self.store.failure(&open.name, &error)));
                    }
                }
                _ => {}
            }
        }
        for (id, failure) in failed {
            self.fail(id, failure, Keep::Yes);
        }
        for (id, since) in waiting {
            self.try_again(id, since);
        }
    }

    fn try_again(&mut self, id: u32, since: Instant) {
        let Some(Open { name, offer, .. }) = self.open.remove(&id) else { return };
        let Store::Folder(folder) = &self.store else { return };
        let next = match folder.begin(&name, &offer, &self.cancel) {
            Ok(Begin::Busy) if since.elapsed() >= BUSY_FOR => {
                let text = format!(
                    "{} is being received from somebody else; try again when that is done",
                    folder.show(name.as_str())
                );
                Next::Done(Outcome::Failed(Failure::new(Reason::Busy, text)))
            }
            Ok(Begin::Busy) => {
                self.claimant.contend(&self.store.part_of(&name));
                Next::Open(Stage::Waiting { since }, None)
            }
            Ok(begin) => next(begin),
            Err(failure) => Next::Done(Outcome::Failed(failure)),
        };
        self.enter(name, offer, next);
    }

    fn done(&mut self, offer: &Offer, outcome: Outcome) {
        self.done_with(offer, size_of(offer), outcome);
    }

    fn done_with(&mut self, offer: &Offer, size_bytes: Option<u64>, outcome: Outcome) {
        if self.cancel.is_cancelled() && matches!(outcome, Outcome::Failed(_)) {
            // It was left, and did not fail.
            return;
        }
        if offer.kind != Kind::FolderEnd || matches!(outcome, Outcome::Failed(_)) {
            self.report.done(offer.name.clone(), size_bytes, outcome.clone());
        }
        if !matches!(outcome, Outcome::Failed(_)) {
            self.progress.mark();
        }
        self.say(&Message::Done { id: offer.id, outcome });
        self.end_folders();
    }

    /// Completes folders whose content is done: everything that was offered before their end.
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
            self.done(&offer, sealed.map_or_else(Outcome::Failed, |()| Outcome::Stored { renamed: None }));
        }
    }

    fn say(&self, message: &Message) {
        // Whoever listened is gone when this fails, and then the inputs end, too.
        let _ = self.output.blocking_send(Outgoing::from(message));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Yes,
    No,
}

fn next(begin: Begin) -> Next {
    match begin {
        Begin::Take(part) => {
            let have = part.told().to_vec();
            Next::Open(Stage::Part(part), Some(Answer::Take { have }))
        }
        Begin::Compare => Next::Open(Stage::Comparing, Some(Answer::Compare)),
        Begin::Identical => Next::Done(Outcome::Identical),
        Begin::Busy => Next::Open(Stage::Waiting { since: Instant::now() }, None),
    }
}

/// A file that is not recorded is as good as any other, but for the time that it takes to compare it.
fn tell_unrecorded(report: &Report, recorded: io::Result<()>) {
    if let Err(error) = recorded {
        report.note(format!(
            "the record of stored files cannot be kept ({error}); they are compared next time"
        ));
    }
}
