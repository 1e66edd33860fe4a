//! Future changes of a link.

use std::collections::VecDeque;

use anabranch_core::time::Time;

use crate::dynamics::LinkChange;
use crate::fading::FadingCursor;
use crate::trace::SeriesCursor;

/// Changes of one link in the order of their times. Changes at the same time keep their given order and precede those of series and
/// fading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    changes: VecDeque<(Time, LinkChange)>,
    series: Vec<SeriesCursor>,
    fading: Option<Box<FadingCursor>>,
}

impl Schedule {
    pub(crate) fn new(mut changes: Vec<(Time, LinkChange)>) -> Self {
        changes.sort_by_key(|(time, _)| *time);
        Schedule { changes: changes.into(), ..Schedule::default() }
    }

    /// Sets recorded and random changes.
    pub(crate) fn with(self, series: Vec<SeriesCursor>, fading: Option<FadingCursor>) -> Self {
        Schedule { series, fading: fading.map(Box::new), ..self }
    }

    /// Returns `true` if all changes are recorded and satisfy a condition.
    pub(crate) fn records_only(&self, condition: impl Fn(&LinkChange) -> bool) -> bool {
        self.changes.is_empty() && self.fading.is_none() && self.series.iter().all(|one| one.all(&condition))
    }

    /// Takes the series out whose changes satisfy a condition.
    pub(crate) fn take_series(&mut self, condition: impl Fn(&LinkChange) -> bool) -> Schedule {
        let (taken, kept) = std::mem::take(&mut self.series).into_iter().partition(|one| one.all(&condition));
        self.series = kept;
        Schedule { series: taken, ..Schedule::default() }
    }

    /// Returns the time of the next change.
    pub(crate) fn next_time(&self) -> Option<Time> {
        let listed = self.changes.front().map(|(time, _)| *time);
        let recorded = self.series.iter().filter_map(SeriesCursor::next_time);
        let faded = self.fading.as_ref().map(|fading| fading.next_time());
        listed.into_iter().chain(recorded).chain(faded).min()
    }

    /// Removes the next change if it is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<LinkChange> {
        let next = self.next_time().filter(|next| *next <= now)?;
        if self.changes.front().is_some_and(|(time, _)| *time == next) {
            return self.changes.pop_front().map(|(_, change)| change);
        }
        let series = self.series.iter_mut().find(|series| series.next_time() == Some(next));
        series.map(SeriesCursor::pop).or_else(|| self.fading.as_mut().map(|fading| fading.pop()))
    }
}
