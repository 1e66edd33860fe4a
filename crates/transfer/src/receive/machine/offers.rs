//! Steps of an offer: from its arrival to an answer, through waits that resume the step that they interrupted.

use std::time::Duration;

use super::super::open::{Blocked, Open, Resume, Stage, Wait, size_of};
use super::super::refusals::{busy, excluded, hidden, refused_by_pipe};
use super::super::{Mode, Store};
use super::{Machine, report_unrecorded};
use crate::accept::Verdict;
use crate::block::Hash;
use crate::error::TransferError;
use crate::name::Name;
use crate::protocol::{
    Answer, Failure, Kind, MAX_OPEN_OFFERS, Message, Offer, Outcome, ProtocolError, Reason,
};
use crate::report::{Event, Report};
use crate::scarcity::{SCARCE_FOR, Scarcity};
use crate::store::{Begin, Comparison, Complete, Content, FileState, Folder, Preview};

/// Time for which another transfer may hold a part file before the offer of the same name is refused.
const BUSY_FOR: Duration = Duration::from_secs(12);

/// Maximum number of folders that may be offered without their end. Nested folders are fewer than [`MAX_PARTS`](crate::MAX_PARTS).
const MAX_OPEN_FOLDERS: usize = 1024;

/// Result of a step.
enum Next {
    Done(Outcome),
    Open(Stage, Option<Answer>),
    /// The step cannot be taken now. The failure is reported if the wait lasts too long.
    Wait(Resume, Blocked, Option<Failure>),
    /// The end of a folder, which waits for the offers before it.
    FolderEnd,
}

impl Next {
    fn failed(resume: Resume, failure: Failure) -> Self {
        if failure.is_scarcity() {
            Next::Wait(resume, Blocked::System, Some(failure))
        } else {
            Next::Done(Outcome::Failed(failure))
        }
    }

    fn begun(
        folder: &Folder,
        name: &Name,
        resume: Resume,
        begin: Result<Begin, Failure>,
        report: &Report,
    ) -> Self {
        match begin {
            Ok(Begin::Take(part)) => {
                let have = part.reported_blocks().to_vec();
                Next::Open(Stage::Part(part), Some(Answer::Take { have }))
            }
            Ok(Begin::Compare) => Next::Open(Stage::Comparing, Some(Answer::Compare)),
            Ok(Begin::Identical(refreshed)) => {
                if let Err(error) = refreshed {
                    let shown = folder.show(name.as_str());
                    report.note(format!(
                        "{shown} has the content that is sent, and keeps its time and permissions: {error}"
                    ));
                }
                Next::Done(Outcome::Identical)
            }
            Ok(Begin::Busy) => Next::Wait(resume, Blocked::PartFile, Some(busy(&folder.show(name.as_str())))),
            Ok(Begin::NoDescriptors) => Next::Wait(resume, Blocked::Share, None),
            Err(failure) => Next::failed(resume, failure),
        }
    }
}

impl Machine {
    pub(super) fn on_offer(&mut self, offer: Offer) -> Result<(), TransferError> {
        self.check_order(&offer)?;
        if self.next_id == 0 {
            // Any offer shows that the peer has begun.
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
        if let (Verdict::Accepted, Some(tally)) = (verdict, &self.tally) {
            tally.offered(&name, &offer.kind)?;
        }
        match verdict {
            Verdict::Accepted if self.mode == Mode::List => self.list(offer),
            Verdict::Accepted => {
                self.count(&offer);
                // An offer must not overtake another one that waits for the system, because folders precede their content.
                if self.line.is_empty() {
                    self.advance(name, offer, Wait::new())?;
                } else {
                    self.wait(name, offer, Wait::new());
                }
            }
            Verdict::Excluded => self.done(&offer, Outcome::Failed(excluded(&name))),
            Verdict::Hidden => self.done(&offer, Outcome::Failed(hidden(&name))),
            Verdict::NotRequested => return Err(TransferError::NotRequested(name)),
        }
        Ok(())
    }

    fn check_order(&self, offer: &Offer) -> Result<(), ProtocolError> {
        if self.deletion.as_ref().is_some_and(super::Deletion::has_begun) {
            return Err(ProtocolError::Unexpected("an offer after a listing"));
        }
        // The greatest number is refused: no number is above it, so it could be offered repeatedly.
        if offer.id < self.next_id || offer.id == u32::MAX {
            return Err(ProtocolError::Unexpected("an offer out of order"));
        }
        if self.open.len() + self.folder_ends.len() >= MAX_OPEN_OFFERS {
            return Err(ProtocolError::Unexpected("more offers at a time than agreed"));
        }
        Ok(())
    }

    fn list(&mut self, offer: Offer) {
        self.send_message(&Message::Done { id: offer.id, outcome: Outcome::Planned });
        if offer.kind != Kind::FolderEnd {
            self.report.found(u64::from(size_of(&offer).is_some()), size_of(&offer).unwrap_or(0));
            self.report.emit(Event::Listed(Box::new(offer)));
        }
    }

    /// Performs the step with which `wait` resumes.
    pub(super) fn advance(&mut self, name: Name, offer: Offer, wait: Wait) -> Result<(), TransferError> {
        let next = match wait.resume {
            Resume::Compared { end, different } => self.after_comparison(&name, &offer, end, different),
            Resume::Begin if self.mode == Mode::DryRun => self.plan(&name, &offer),
            Resume::Begin => self.begin(&name, &offer),
        };
        match next {
            Next::Wait(_, reason, Some(failure)) if wait.blocked_for(reason) >= retries(reason) => {
                Ok(self.finish(name, &offer, Outcome::Failed(failure))?)
            }
            Next::Wait(resume, reason, failure) => {
                if let (Blocked::System, Some(failure), false) = (reason, failure, self.is_scarcity_told) {
                    self.is_scarcity_told = true;
                    self.report.note(format!("waiting for the system: {failure}"));
                }
                self.wait(name, offer, wait.blocked_by(resume, reason));
                Ok(())
            }
            Next::Done(outcome) => Ok(self.finish(name, &offer, outcome)?),
            Next::FolderEnd => {
                self.on_folder_end(name, offer);
                Ok(())
            }
            Next::Open(stage, answer) => {
                self.count_copy(&name, &offer, &stage)?;
                self.open_offer(name, offer, stage, answer);
                Ok(())
            }
        }
    }

    /// Counts a file that will be kept beside one of the same name from an earlier association.
    fn count_copy(&self, name: &Name, offer: &Offer, stage: &Stage) -> Result<(), TransferError> {
        match (&self.tally, &self.store, stage) {
            (Some(tally), Store::Folder(folder), Stage::Part(_)) if folder.keeps_both() => {
                tally.kept_beside(name, &offer.kind)
            }
            _ => Ok(()),
        }
    }

    /// Counts an offer as found.
    fn count(&self, offer: &Offer) {
        match (&offer.kind, &self.store) {
            (Kind::File { size_bytes, .. }, _) => self.report.found(1, *size_bytes),
            (Kind::Stream { .. }, _) => self.report.record_pipe(),
            (Kind::Link { .. } | Kind::Folder | Kind::FolderEnd, _) => {}
        }
    }

    /// Begins an offer that is to be stored.
    fn begin(&mut self, name: &Name, offer: &Offer) -> Next {
        let folder = match &self.store {
            Store::Folder(folder) => folder,
            Store::Pipe(_) => return self.begin_in_pipe(name, offer),
        };
        let makes_way = self.makes_way(name);
        match &offer.kind {
            Kind::Folder => match self.make_way(name, true).and_then(|()| folder.make_folder(name)) {
                Ok(()) => Next::Done(Outcome::Stored { renamed: None }),
                Err(failure) => Next::failed(Resume::Begin, failure),
            },
            Kind::FolderEnd => Next::FolderEnd,
            Kind::Link { target } => match folder.begin_link(name, target.raw(), makes_way) {
                Ok(true) => match self.make_way(name, false) {
                    Ok(()) => Next::Open(Stage::Committing, None),
                    Err(failure) => Next::failed(Resume::Begin, failure),
                },
                Ok(false) => Next::Done(Outcome::Identical),
                Err(failure) => Next::failed(Resume::Begin, failure),
            },
            Kind::File { .. } | Kind::Stream { .. } => {
                let begin = folder.begin(name, offer, makes_way, &self.cancel);
                Next::begun(folder, name, Resume::Begin, begin, &self.report)
            }
        }
    }

    fn begin_in_pipe(&mut self, name: &Name, offer: &Offer) -> Next {
        let Store::Pipe(pipe) = &self.store else { return Next::Done(Outcome::Planned) };
        let refused = |is_begun| Next::Done(Outcome::Failed(refused_by_pipe(name, is_begun)));
        match &offer.kind {
            Kind::Folder | Kind::FolderEnd => {
                self.is_folder_refused = true;
                let text = format!("{name} is a folder; a pipe takes one file only");
                Next::Done(Outcome::Failed(Failure::new(Reason::NotAllowed, text)))
            }
            Kind::Link { .. } => refused(false),
            Kind::File { .. } | Kind::Stream { .. } if self.is_folder_refused => refused(false),
            Kind::File { .. } | Kind::Stream { .. } => match pipe.open(offer) {
                Some(flow) => {
                    let have = flow.have();
                    Next::Open(Stage::Flow(Box::new(flow)), Some(Answer::Take { have }))
                }
                None => refused(pipe.is_begun()),
            },
        }
    }

    /// Returns the outcome that an offer would have.
    fn plan(&mut self, name: &Name, offer: &Offer) -> Next {
        let Store::Folder(folder) = &self.store else {
            return Next::Done(Outcome::Failed(refused_by_pipe(name, false)));
        };
        let planned = |preview: Result<(), Failure>| match preview {
            Ok(()) => Next::Done(Outcome::Planned),
            Err(failure) => Next::failed(Resume::Begin, failure),
        };
        if name.parents().any(|parent| self.replaced.iter().any(|replaced| replaced.as_str() == parent)) {
            return planned(Ok(()));
        }
        let makes_way = self.makes_way(name);
        match &offer.kind {
            Kind::FolderEnd => planned(Ok(())),
            Kind::Folder => {
                let preview = folder.preview_folder(name, makes_way);
                let planned = planned(preview.and_then(|()| self.make_way(name, true)));
                let is_replaced =
                    makes_way && !folder.metadata(name.as_str()).is_ok_and(|there| there.is_dir());
                if is_replaced && self.replaced.len() < MAX_OPEN_FOLDERS {
                    self.replaced.insert(name.clone());
                }
                planned
            }
            Kind::File { .. } | Kind::Stream { .. } | Kind::Link { .. } => {
                match folder.preview(name, offer, makes_way) {
                    Ok(Preview::Take) => planned(self.make_way(name, false)),
                    Ok(Preview::Same) => Next::Done(Outcome::Identical),
                    Ok(Preview::Compare) => Next::Open(Stage::Comparing, Some(Answer::Compare)),
                    Err(failure) => planned(Err(failure)),
                }
            }
        }
    }

    /// Compares the file of that name with the root that the source has sent, and accepts the offer if they differ. `different` is
    /// a state of the file that is known to differ. The file may have been replaced while the offer waited.
    fn after_comparison(
        &mut self,
        name: &Name,
        offer: &Offer,
        end: (u64, Hash),
        different: Option<FileState>,
    ) -> Next {
        let Store::Folder(folder) = &self.store else { return Next::Done(Outcome::Planned) };
        let is_dry = self.mode == Mode::DryRun;
        let mut resume = Resume::Compared { end, different };
        match folder.preview(name, offer, self.makes_way(name)) {
            Ok(Preview::Same) => return Next::Done(Outcome::Identical),
            Ok(Preview::Compare) if different.is_none_or(|state| !folder.is_in_state(name, state)) => {
                match folder.compare(name, offer, end, !is_dry, &self.cancel) {
                    Ok(Comparison::Same(recorded)) => {
                        report_unrecorded(&self.report, recorded);
                        return Next::Done(Outcome::Identical);
                    }
                    Ok(Comparison::Different(state)) => {
                        resume = Resume::Compared { end, different: Some(state) };
                        if let Err(failure) = folder.check_clash(name, "exists already with other content") {
                            return Next::Done(Outcome::Failed(failure));
                        }
                    }
                    Err(error) => return Next::failed(resume, folder.failure(name, &error)),
                }
            }
            Ok(Preview::Compare | Preview::Take) => {}
            Err(failure) => return Next::failed(resume, failure),
        }
        if is_dry {
            return Next::Done(Outcome::Planned);
        }
        Next::begun(folder, name, resume, folder.take(name, offer, &self.cancel), &self.report)
    }

    /// Returns `true` if an entry of another kind is removed for this offer: if the sender may delete, and the name is in a folder
    /// that it has offered, or it may overwrite.
    fn makes_way(&self, name: &Name) -> bool {
        let (Some(deletion), Store::Folder(folder)) = (&self.deletion, &self.store) else { return false };
        deletion.is_inside_offered(name) || folder.overwrites()
    }

    /// Removes an entry of another kind that has the name of an offer, if that is allowed.
    pub(super) fn make_way(&self, name: &Name, is_folder: bool) -> Result<(), Failure> {
        if !self.makes_way(name) {
            return Ok(());
        }
        let made = self.with_deletion(|deletion, context| deletion.make_way(name, is_folder, context));
        made.unwrap_or(Ok(()))
    }

    /// Ends an offer that needs no content.
    fn finish(&mut self, name: Name, offer: &Offer, outcome: Outcome) -> Result<(), ProtocolError> {
        if let (Outcome::Identical, Some(size)) = (&outcome, size_of(offer)) {
            self.report.reused(size);
        }
        if offer.kind == Kind::Folder && matches!(self.store, Store::Folder(_)) {
            self.on_folder(name, &outcome)?;
        }
        self.done(offer, outcome);
        Ok(())
    }

    fn on_folder(&mut self, name: Name, outcome: &Outcome) -> Result<(), ProtocolError> {
        let made = match outcome {
            Outcome::Failed(failure) => Err(failure.clone()),
            _ => Ok(()),
        };
        if let (Ok(()), Some(deletion)) = (&made, &mut self.deletion) {
            deletion.offered(&name);
        }
        if self.mode == Mode::Store {
            self.folders.insert(name, made);
        }
        if self.folders.len() > MAX_OPEN_FOLDERS {
            return Err(ProtocolError::Unexpected("more folders at a time than agreed"));
        }
        Ok(())
    }

    /// Registers an offer in progress, and sends the answer that requests its content.
    pub(super) fn open_offer(&mut self, name: Name, offer: Offer, stage: Stage, answer: Option<Answer>) {
        let id = offer.id;
        let reused_bytes = match &stage {
            Stage::Part(part) => part.reused_bytes(),
            Stage::Flow(flow) => flow.reused_bytes(),
            Stage::Waiting(_) | Stage::Comparing | Stage::Committing => 0,
        };
        if let Some(Answer::Take { .. }) = answer {
            self.report.reused(reused_bytes);
            if matches!(&stage, Stage::Part(part) if part.restarted) {
                let text = format!(
                    "{name} has changed since a part of it arrived; it is received from the beginning"
                );
                self.report.emit(Event::Note(text.into()));
            }
            let size_bytes = size_of(&offer);
            self.report.emit(Event::Begun { name: name.as_str().into(), size_bytes, reused_bytes });
        }
        let held = match &stage {
            Stage::Part(part) => Some(self.part_lock.hold(self.store.part_of(part.name()))),
            Stage::Flow(_) | Stage::Waiting(_) | Stage::Comparing | Stage::Committing => None,
        };
        if let (Kind::Link { target }, Stage::Committing, Some(committer)) =
            (&offer.kind, &stage, &mut self.committer)
        {
            let content = Content::Link { target: target.raw().to_owned() };
            committer.add(Complete { id, name: name.clone(), offer: offer.clone(), content });
        }
        self.open
            .insert(id, Open { name, offer, stage, end: None, held_bytes: 0, reused_bytes, _held: held });
        if let Some(answer) = answer {
            self.progress.mark();
            self.send_message(&Message::Answer { id, answer });
        }
    }

    fn wait(&mut self, name: Name, offer: Offer, wait: Wait) {
        if wait.is_queued() {
            self.line.insert(offer.id);
        } else {
            self.part_lock.contend(&self.store.part_of(&name));
        }
        self.open_offer(name, offer, Stage::Waiting(wait), None);
    }

    /// Resumes offers that wait for part files of other transfers. Call it at regular intervals.
    pub(super) fn resume_contended(&mut self) -> Result<(), TransferError> {
        let is_contended = |open: &Open| matches!(&open.stage, Stage::Waiting(wait) if !wait.is_queued());
        let ids: Vec<u32> =
            self.open.iter().filter(|(_, open)| is_contended(open)).map(|(id, _)| *id).collect();
        ids.into_iter().try_for_each(|id| self.resume(id))
    }

    /// Resumes offers that wait for descriptors or memory, in order, until one has to wait again. If the system itself has none
    /// left, an offer is resumed only if `is_due` is set.
    pub(super) fn resume_line(&mut self, is_due: bool) -> Result<(), TransferError> {
        while let Some(&id) = self.line.first() {
            let may_resume = |open: &Open| {
                let is_system =
                    matches!(&open.stage, Stage::Waiting(Wait { blocked: Some((Blocked::System, _)), .. }));
                let has_room = match &self.store {
                    Store::Folder(folder) => folder.has_descriptors(&open.offer),
                    Store::Pipe(_) => true,
                };
                has_room && (is_due || !is_system)
            };
            if !self.open.get(&id).is_some_and(may_resume) {
                return Ok(());
            }
            self.resume(id)?;
            if self.line.contains(&id) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn resume(&mut self, id: u32) -> Result<(), TransferError> {
        self.line.remove(&id);
        match self.open.remove(&id) {
            Some(Open { name, offer, stage: Stage::Waiting(wait), .. }) => self.advance(name, offer, wait),
            Some(other) => {
                self.open.insert(id, other);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Returns the time for which an offer waits for this reason before it fails.
fn retries(reason: Blocked) -> Duration {
    match reason {
        Blocked::PartFile => BUSY_FOR,
        Blocked::System => SCARCE_FOR,
        Blocked::Share => Duration::MAX,
    }
}
