//! Removal at the receiver of entries that the source does not have.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use tokio::sync::mpsc;

use super::listing::{self, Listed};
use super::walk::{Root, Roots, SendSource};
use crate::filter::{Filters, Rule};
use crate::protocol::{Failure, Message, Outcome, ProtocolError, Reason};
use crate::report::Report;
use crate::text::PeerText;

/// Maximum number of listed folders that the receiver has not answered.
const MOST_UNANSWERED: usize = 16;

/// Last step of a sender. It begins when all offers are done and none has failed.
pub(super) struct Deletion {
    is_wanted: bool,
    is_dry: bool,
    roots: Roots,
    /// Filters of the sources; `None` if they differ, because the receiver then cannot determine the entries to keep.
    rules: Option<Vec<Rule>>,
    /// Set if all entries were transferred, on all associations before the deletion began.
    is_whole: Option<bool>,
    stage: Stage,
}

enum Stage {
    /// The deletion has not begun on this association.
    Waiting,
    Listing {
        /// `None` once everything is listed.
        listed: Option<mpsc::Receiver<Listed>>,
        unanswered: usize,
    },
    Done,
}

impl Deletion {
    pub(super) fn new(rules: Option<Vec<Rule>>, roots: Roots) -> Self {
        Deletion { is_wanted: false, is_dry: false, roots, rules, is_whole: None, stage: Stage::Waiting }
    }

    pub(super) fn want(&mut self, is_wanted: bool, is_dry: bool) {
        (self.is_wanted, self.is_dry) = (is_wanted, is_dry);
    }

    pub(super) fn is_done(&self) -> bool {
        !self.is_wanted || matches!(self.stage, Stage::Done)
    }

    /// Restarts the deletion on another association unless it is done, because the receiver keeps no record of earlier listings.
    pub(super) fn restart(&mut self) {
        if !self.is_done() {
            self.stage = Stage::Waiting;
        }
    }

    /// Returns `true` if one list of patterns determines the entries that stay at the receiver.
    pub(super) fn has_common_rules(&self) -> bool {
        self.rules.is_some()
    }

    /// Returns the patterns that the receiver needs before the first offer, because an offer may already cause a removal.
    pub(super) fn rules(&self) -> Vec<Message> {
        let rules = self.rules.iter().flatten().filter(|_| !self.is_done());
        rules.cloned().map(Message::Rule).collect()
    }

    /// Begins the deletion unless it has begun. Call it when no offer is open.
    pub(super) fn begin(&mut self, report: &Report) {
        if !self.is_wanted || !matches!(self.stage, Stage::Waiting) {
            return;
        }
        let is_whole = *self.is_whole.get_or_insert_with(|| report.totals().failed_files == 0);
        let roots = self.roots.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match merged(&roots) {
            None if is_whole => {
                self.stage = Stage::Listing { listed: Some(listing::list(roots)), unanswered: 0 };
                return;
            }
            Some(name) if is_whole => {
                let text = format!(
                    "two folders are sent as {name}, so no file is removed at the receiver; put them into one, or rename one"
                );
                report.passed(name, Failure::new(Reason::Clash, text));
            }
            _ => report.note("no file is removed at the receiver, because files were omitted"),
        }
        self.stage = Stage::Done;
    }

    /// Returns the next item to send; waits forever while there is none. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Listed> {
        match &mut self.stage {
            Stage::Listing { listed: Some(listed), unanswered } if *unanswered < MOST_UNANSWERED => {
                listed.recv().await
            }
            _ => std::future::pending().await,
        }
    }

    /// Returns the message for an item that [`next`](Self::next) returned.
    pub(super) fn on_listed(&mut self, item: Option<Listed>, report: &Report) -> Option<Message> {
        let Stage::Listing { listed, unanswered } = &mut self.stage else { return None };
        let message = match item {
            Some(Listed::Names(listing)) => {
                *unanswered += usize::from(listing.is_complete);
                Some(Message::Listing(listing))
            }
            Some(Listed::Failed { name, failure }) => {
                report.passed(name, failure);
                None
            }
            None => {
                *listed = None;
                None
            }
        };
        self.settle();
        message
    }

    /// Records that the receiver is done with the oldest unanswered folder.
    pub(super) fn on_compared(&mut self) -> Result<(), ProtocolError> {
        *self.unanswered()? -= 1;
        self.settle();
        Ok(())
    }

    pub(super) fn on_deleted(
        &mut self,
        name: PeerText,
        failure: Option<Failure>,
        report: &Report,
    ) -> Result<(), ProtocolError> {
        if !self.is_wanted {
            return Err(ProtocolError::Unexpected("a removal that was not asked for"));
        }
        match failure {
            None => report.deleted(name, self.is_dry),
            Some(failure) => report.done(name, None, Outcome::Failed(failure)),
        }
        Ok(())
    }

    fn unanswered(&mut self) -> Result<&mut usize, ProtocolError> {
        match &mut self.stage {
            Stage::Listing { unanswered, .. } if *unanswered > 0 => Ok(unanswered),
            _ => Err(ProtocolError::Unexpected("an answer to no listing")),
        }
    }

    fn settle(&mut self) {
        if let Stage::Listing { listed: None, unanswered: 0 } = self.stage {
            self.stage = Stage::Done;
        }
    }
}

/// Returns a name under which two different folders were sent. The deletion for each folder would remove the entries of the other.
fn merged(roots: &[Root]) -> Option<String> {
    let mut identities = BTreeMap::new();
    for root in roots {
        if identities.insert(&root.name, root.identity).is_some_and(|other| other != root.identity) {
            return Some(root.name.clone());
        }
    }
    None
}

/// Returns the filters of these sources, if they are the same.
pub(super) fn common_rules(sources: &[SendSource]) -> Option<Vec<Rule>> {
    let mut filters = sources.iter().map(SendSource::filters);
    let first = filters.next().map_or_else(Filters::default, Filters::clone);
    filters.all(|other| *other == first).then(|| first.rules().to_vec())
}
