//! A send opportunity: what opened it and how far it has come.
//!
//! Packets are drained one at a time, and the driver may call anything between two of them. So the walk over lost chunks is a
//! position in TSN space, not an iterator, and stays right whatever happens meanwhile.

use crate::path_id::{MAX_PATHS, PathId, PathSet};
use crate::policy::OpportunityCause;
use crate::time::Time;

/// Chunks of which copies are still to leave in this opportunity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingCopies {
    /// The first TSN.
    pub(crate) first: u64,
    /// The one after the last.
    pub(crate) after: u64,
    /// The paths that have not had theirs.
    pub(crate) others: PathSet,
}

/// What pacing kept from leaving in the latest opportunity.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Paced {
    /// The timer: when the first of the paths may send again for which something waits.
    pub(crate) at: Option<Time>,
    /// On each path, the first lost chunk that would have left there.
    pub(crate) resends: [Option<u64>; MAX_PATHS],
    /// Paths that are to send a tail probe.
    pub(crate) probes: PathSet,
    /// New data was to be offered to the scheduler.
    pub(crate) new_data: bool,
}

impl Paced {
    /// A lost chunk would have left on this path.
    pub(crate) fn hold_resend(&mut self, path: PathId, tsn: u64) {
        self.resends[path.index()].get_or_insert(tsn);
    }

    /// Whether a retransmission or a tail probe waits for this path.
    pub(crate) fn holds_repair(&self, path: PathId) -> bool {
        self.resends[path.index()].is_some() || self.probes.contains(path)
    }

    /// When the timer lets a path go on; `awaits_new_data` says that new data is to be offered to the scheduler then, and may leave
    /// there. A path can have become free before anything looked at the repairs that wait for it: it goes on at once. The scheduler
    /// has seen a free path, and left new data alone.
    pub(crate) fn release(
        &self,
        path: PathId,
        paced_until: Option<Time>,
        awaits_new_data: bool,
        now: Time,
    ) -> Option<Time> {
        if self.holds_repair(path) {
            paced_until.or(Some(now))
        } else {
            paced_until.filter(|_| awaits_new_data)
        }
    }
}

/// The state of the present send opportunity.
#[derive(Debug)]
pub(crate) struct SendOpportunity {
    /// Its event has been dispatched to the policies.
    pub(crate) announced: bool,
    pub(crate) cause: OpportunityCause,
    /// Lost chunks from this TSN on are still to be offered to the retransmission policy.
    pub(crate) resend_from: Option<u64>,
    /// New data is still to be offered to the scheduler.
    pub(crate) new_data: bool,
    /// A fast-retransmit event opened it, and its first packet has not left.
    pub(crate) after_loss_event: bool,
    /// The latest chunk of each of these paths is to be retransmitted as a tail probe.
    pub(crate) tail_probes: PathSet,
    pub(crate) copies: Option<PendingCopies>,
    /// The policy has left the head of line alone, and is not asked again before new data has left.
    pub(crate) head_of_line_declined: bool,
    /// New data has left since the policy was asked about the head of line.
    pub(crate) new_data_left: bool,
    /// The head of line that was moved in this opportunity: once is enough.
    pub(crate) moved: Option<u64>,
    /// When the next one opens because a policy waits until then. One that opens before does not change this: it may end before
    /// it has come to the chunk that waits.
    pub(crate) next_at: Option<Time>,
    /// What pacing kept from leaving, and when that may leave.
    pub(crate) paced: Paced,
    /// In one that goes on where pacing had stopped the one before: the paths that may send again. Empty in all others.
    released: PathSet,
    /// Whether opportunities may carry DATA yet (see [`Start`](crate::profile::Start)).
    pub(crate) data_allowed: bool,
    /// Whether the burst limit holds in this opportunity and those to come.
    pub(crate) burst_armed: bool,
}

impl SendOpportunity {
    /// No opportunity is open.
    pub(crate) fn closed() -> Self {
        SendOpportunity {
            announced: true,
            cause: OpportunityCause::Application,
            resend_from: None,
            new_data: false,
            after_loss_event: false,
            tail_probes: PathSet::EMPTY,
            copies: None,
            head_of_line_declined: false,
            new_data_left: false,
            moved: None,
            next_at: None,
            paced: Paced::default(),
            released: PathSet::EMPTY,
            data_allowed: false,
            burst_armed: false,
        }
    }

    /// Nothing more is to leave in this one.
    pub(crate) fn end(&mut self) {
        let SendOpportunity { announced, cause, next_at, paced, data_allowed, burst_armed, .. } = *self;
        *self = SendOpportunity {
            announced,
            cause,
            next_at,
            paced,
            data_allowed,
            burst_armed,
            ..SendOpportunity::closed()
        };
    }

    /// Opens the next one at this time, or earlier if something else does; whether that lies ahead. A time that does not would
    /// be no wait.
    pub(crate) fn resume_at(&mut self, at: Time, now: Time) -> bool {
        let ahead = at > now;
        if ahead {
            self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
        }
        ahead
    }

    pub(crate) fn is_open(&self) -> bool {
        self.resend_from.is_some() || self.new_data || !self.tail_probes.is_empty()
    }

    /// Opens one in which only new data may leave.
    pub(crate) fn open_for_new_data(&mut self, cause: OpportunityCause) {
        self.announced = false;
        self.cause = cause;
        self.new_data = true;
    }

    /// Opens one, or extends the one that is open.
    pub(crate) fn open(&mut self, cause: OpportunityCause, new_data: bool) {
        self.announced = false;
        self.cause = cause;
        self.resend_from = Some(0);
        self.new_data |= new_data;
        self.released = PathSet::EMPTY;
        self.paced.resends = [None; MAX_PATHS];
    }

    /// Goes on where pacing stopped: these paths may send again. Lost chunks that had other reasons to wait are not looked at
    /// again.
    pub(crate) fn resume(&mut self, released: PathSet) {
        // One that is open for all paths already stays so.
        if !self.is_open() || !self.released.is_empty() {
            self.released = self.released.iter().chain(released.iter()).collect();
        }
        let Paced { resends, probes, new_data, .. } = &mut self.paced;
        let held = released.iter().filter_map(|path| resends[path.index()].take());
        self.resend_from = held.chain(self.resend_from).min();
        self.new_data |= std::mem::take(new_data);
        for path in released.iter() {
            if probes.contains(path) {
                self.tail_probes.insert(path);
                probes.remove(path);
            }
        }
        self.head_of_line_declined = false;
    }

    /// The paths that may send again, where this one only goes on for them.
    pub(crate) fn released(&self) -> Option<PathSet> {
        (!self.released.is_empty()).then_some(self.released)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn an_opportunity_that_opens_before_takes_no_wait_back() {
        let mut opportunity = SendOpportunity::closed();
        assert!(opportunity.resume_at(at(20), at(10)));
        opportunity.open_for_new_data(OpportunityCause::Sack);
        opportunity.end();
        opportunity.open(OpportunityCause::Sack, true);
        opportunity.end();
        assert_eq!(opportunity.next_at, Some(at(20)));
    }

    #[test]
    fn paths_that_are_free_later_join_one_that_goes_on_and_not_one_that_is_open_for_all() {
        let only = |index| [PathId::new(index)].into_iter().collect::<PathSet>();
        let mut opportunity = SendOpportunity::closed();
        opportunity.paced.hold_resend(PathId::new(0), 7);
        opportunity.paced.hold_resend(PathId::new(1), 5);
        opportunity.resume(only(0));
        assert_eq!((opportunity.released(), opportunity.resend_from), (Some(only(0)), Some(7)));
        opportunity.resume(only(1));
        assert_eq!(opportunity.released(), Some([0, 1].map(PathId::new).into_iter().collect()));
        assert_eq!(opportunity.resend_from, Some(5));
        opportunity.open(OpportunityCause::Sack, true);
        opportunity.resume(only(1));
        assert_eq!(opportunity.released(), None);
    }

    #[test]
    fn repairs_that_wait_for_a_path_that_is_free_by_now_are_not_forgotten() {
        let (a, b, c) = (PathId::new(0), PathId::new(1), PathId::new(2));
        let mut paced = Paced::default();
        paced.hold_resend(a, 7);
        paced.probes.insert(b);
        for path in [a, b] {
            assert_eq!(paced.release(path, Some(at(20)), false, at(10)), Some(at(20)));
            assert_eq!(paced.release(path, None, false, at(10)), Some(at(10)));
        }
        assert_eq!(paced.release(c, Some(at(20)), true, at(10)), Some(at(20)));
        assert_eq!(paced.release(c, Some(at(20)), false, at(10)), None);
        assert_eq!(paced.release(c, None, true, at(10)), None, "no timer that is always due");
    }

    #[test]
    fn of_two_waits_the_shorter_one_counts_and_one_that_is_over_does_not() {
        let mut opportunity = SendOpportunity::closed();
        assert!(!opportunity.resume_at(at(10), at(10)));
        assert_eq!(opportunity.next_at, None);
        assert!(opportunity.resume_at(at(30), at(10)) && opportunity.resume_at(at(20), at(10)));
        assert!(opportunity.resume_at(at(40), at(10)));
        assert_eq!(opportunity.next_at, Some(at(20)));
    }
}
