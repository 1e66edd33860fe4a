//! Removal of entries that the source has removed from the folders that it sends.

use std::collections::BTreeSet;

use crate::accept::{Accept, Verdict};
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::filter::{Filters, MAX_RULES, Rule};
use crate::name::Name;
use crate::protocol::{Failure, Listing, Message, Outcome, ProtocolError, Reason};
use crate::report::Report;
use crate::store::{self, Folder, ListedNames};

use super::refusals::{excluded, hidden};

/// Maximum number of offered top-level folders from which entries may be removed.
const MAX_ROOTS: usize = 4096;

/// Input of a removal, besides the listings.
pub(super) struct Context<'a> {
    pub(super) folder: &'a Folder,
    pub(super) accept: &'a Accept,
    pub(super) report: &'a Report,
    pub(super) cancel: &'a Cancel,
    pub(super) is_dry: bool,
    pub(super) say: &'a dyn Fn(&Message),
}

/// Progress of the listings and removals.
pub(super) struct Deletion {
    /// Set if removals are reported to the source, which has requested this.
    tells: bool,
    /// Top-level folders among those that were offered on this association.
    roots: BTreeSet<Name>,
    rules: Vec<Rule>,
    begun: Option<DeletionState>,
    /// Folder whose listing is not complete, and the names received so far.
    open: Option<(Name, ListedNames)>,
}

/// State that is settled at the first listing.
struct DeletionState {
    /// Rules by which the source excludes names, which therefore stay.
    filters: Filters,
    /// Set if an entry was not transferred. The receiver then removes no entries.
    is_partial: bool,
}

impl Deletion {
    pub(super) fn new(tells: bool) -> Self {
        Deletion { tells, roots: BTreeSet::new(), rules: Vec::new(), begun: None, open: None }
    }

    /// Records a folder that was offered and accepted.
    pub(super) fn offered(&mut self, name: &Name) {
        if self.roots.len() < MAX_ROOTS && !self.is_offered(name) {
            self.roots.insert(name.clone());
        }
    }

    fn is_offered(&self, name: &Name) -> bool {
        let parents = name.parents().filter_map(|parent| Name::new(parent).ok());
        self.roots.contains(name) || parents.into_iter().any(|parent| self.roots.contains(&parent))
    }

    /// Returns `true` if a listing was received. No offers may follow it.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Returns `true` if the listing of a folder is incomplete.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Reports at the end of the transfer that no entries were removed because files have failed.
    pub(super) fn report_if_partial(&self, report: &Report) {
        if self.begun.is_none() && report.totals().failed_files > 0 {
            report.note("no file was removed, because files were omitted");
        }
    }

    /// Records a pattern of the source.
    pub(super) fn rule(&mut self, rule: Rule) -> Result<(), ProtocolError> {
        if self.begun.is_some() || self.rules.len() >= MAX_RULES {
            return Err(ProtocolError::Unexpected("a pattern out of turn"));
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Handles a listing, and removes all other entries once it is complete.
    pub(super) fn listing(&mut self, listing: &Listing, context: &Context<'_>) -> Result<(), TransferError> {
        self.begin(context.report)?;
        let name = self.extend(listing, context)?;
        if !listing.is_complete {
            return Ok(());
        }
        let Some((_, listed)) = self.open.take() else { return Ok(()) };
        let done = self.check(&name, context)?.and_then(|()| self.delete(&name, &listed, context));
        if let Err(failure) = done {
            self.report_removal(&name, Some(failure), context);
        }
        (context.say)(&Message::Compared);
        Ok(())
    }

    fn begin(&mut self, report: &Report) -> Result<(), ProtocolError> {
        if self.begun.is_none() {
            let filters = Filters::new(std::mem::take(&mut self.rules));
            let filters = filters.map_err(|_| ProtocolError::Unexpected("a pattern that cannot be read"))?;
            self.begun = Some(DeletionState { filters, is_partial: report.totals().failed_files > 0 });
        }
        Ok(())
    }

    /// Extends the listing in progress, or begins one.
    fn extend(&mut self, listing: &Listing, context: &Context<'_>) -> Result<Name, ProtocolError> {
        let name = context.folder.admit(listing.folder.raw());
        let name = name.map_err(|_| ProtocolError::Unexpected("a listing of no folder"))?;
        let (open, listed) = self.open.get_or_insert_with(|| (name.clone(), ListedNames::default()));
        if *open != name {
            return Err(ProtocolError::Unexpected("a listing in the middle of another one"));
        }
        listing.names.iter().try_for_each(|name| listed.push(name.raw()))?;
        Ok(name)
    }

    /// Checks that entries of a folder may be removed.
    fn check(&self, name: &Name, context: &Context<'_>) -> Result<Result<(), Failure>, TransferError> {
        let refuse = |text: String| Ok(Err(Failure::new(Reason::NotAllowed, text)));
        match context.accept.judge(name, true) {
            Verdict::Accepted => {}
            Verdict::Excluded => return Ok(Err(excluded(name))),
            Verdict::Hidden => return Ok(Err(hidden(name))),
            Verdict::NotRequested => return Err(TransferError::NotRequested(name.clone())),
        }
        if !self.is_offered(name) {
            return refuse(format!("no file is removed from {name}, which is in no offered folder"));
        }
        if self.begun.as_ref().is_none_or(|begun| begun.is_partial) {
            return refuse(format!("no file is removed from {name}, because files were omitted"));
        }
        Ok(Ok(()))
    }

    /// Returns `true` if a name is in a folder that was offered.
    pub(super) fn is_inside_offered(&self, name: &Name) -> bool {
        name.parent().and_then(|parent| Name::new(parent).ok()).is_some_and(|parent| self.is_offered(&parent))
    }

    /// Removes an entry of another kind that has the name of an offer.
    pub(super) fn make_way(
        &self,
        name: &Name,
        is_folder: bool,
        context: &Context<'_>,
    ) -> Result<(), Failure> {
        let unread = |_| {
            let text = format!("no file is removed for {name}, because a pattern is invalid");
            Failure::new(Reason::NotAllowed, text)
        };
        let filters = Filters::new(self.rules.clone()).map_err(unread)?;
        let remove = |removal: &mut store::Deletion<'_>| context.folder.make_way(name, is_folder, removal);
        self.with_removal(Some(&filters), &ListedNames::default(), context, remove)
    }

    fn delete(&self, name: &Name, listed: &ListedNames, context: &Context<'_>) -> Result<(), Failure> {
        let filters = self.begun.as_ref().map(|begun| &begun.filters);
        let remove = |removal: &mut store::Deletion<'_>| context.folder.delete_unlisted(name, removal);
        self.with_removal(filters, listed, context, remove)
    }

    fn with_removal(
        &self,
        filters: Option<&Filters>,
        listed: &ListedNames,
        context: &Context<'_>,
        remove: impl FnOnce(&mut store::Deletion<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let protects = |name: &Name, is_folder: bool| {
            let takes = |filters: &Filters| filters.takes_all_of(name, is_folder);
            !takes(context.accept.filters()) || filters.is_some_and(|filters| !takes(filters))
        };
        let mut removal = store::Deletion {
            listed,
            protects: &protects,
            is_dry: context.is_dry,
            cancel: context.cancel,
            tell: &mut |name, failure| self.report_removal(name, failure, context),
        };
        remove(&mut removal)
    }

    fn report_removal(&self, name: &Name, failure: Option<Failure>, context: &Context<'_>) {
        if context.cancel.is_cancelled() && failure.is_some() {
            return;
        }
        match failure.clone() {
            None => context.report.deleted(name.as_str(), context.is_dry),
            Some(failure) => context.report.done(name.as_str(), None, Outcome::Failed(failure)),
        }
        if self.tells {
            (context.say)(&Message::Deleted { name: name.as_str().into(), failure });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        Name::new(name).expect("a name")
    }

    #[test]
    fn folders_with_removable_entries_stay_within_memory_limit() {
        let mut deletion = Deletion::new(true);
        // A folder in one of them adds no entry.
        for folder in (0..MAX_ROOTS).flat_map(|number| [format!("{number}"), format!("{number}/inside")]) {
            deletion.offered(&name(&folder));
        }
        deletion.offered(&name("further"));
        assert_eq!(deletion.roots.len(), MAX_ROOTS);
        assert!(deletion.is_offered(&name("0/inside")) && deletion.is_offered(&name("4095/inside/deep")));
        assert!(!deletion.is_offered(&name("further")), "nothing is removed from it");
    }
}
