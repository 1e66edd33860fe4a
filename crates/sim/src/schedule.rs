//! Future changes of a link.

use std::collections::VecDeque;

use anabranch_core::time::Time;

use crate::dynamics::LinkChange;
use crate::trace::{Playback, Series, SeriesCursor};

/// Changes of one link in the order of their times. Changes at the same time keep their given order and precede those of series.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    changes: VecDeque<(Time, LinkChange)>,
    series: Vec<SeriesCursor>,
}

impl Schedule {
    pub(crate) fn new(mut changes: Vec<(Time, LinkChange)>) -> Self {
        changes.sort_by_key(|(time, _)| *time);
        Schedule { changes: changes.into(), series: Vec::new() }
    }

    /// Adds the changes of series.
    pub(crate) fn with_series(self, series: Vec<Playback<Series>>) -> Self {
        Schedule { series: series.into_iter().map(SeriesCursor::new).collect(), ..self }
    }

    /// Returns the time of the next change.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let listed = self.changes.front().map(|(time, _)| *time);
        let recorded = self.series.iter().filter_map(SeriesCursor::next_time);
        listed.into_iter().chain(recorded).min()
    }

    /// Removes the next change if it is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<LinkChange> {
        let next = self.next_time().filter(|next| *next <= now)?;
        if self.changes.front().is_some_and(|(time, _)| *time == next) {
            return self.changes.pop_front().map(|(_, change)| change);
        }
        self.series.iter_mut().find(|series| series.next_time() == Some(next)).map(SeriesCursor::pop)
    }
}
