//! Transmission of DATA: the send opportunity, and the sources of its packets.
//!
//! Packets are polled one at a time, and the driver may call any method between two of them. The walk over lost chunks is therefore
//! a position in TSN space, not an iterator, and stays valid across other calls.

mod bound;
mod cookie_echo;
mod duplicates;
mod head_of_line;
mod key_management;
mod limits;
mod new_data;
mod outlet;
mod pacing;
mod retransmissions;
mod tail_probes;

use crate::association::dispatch::Dispatcher;
use crate::association::recovery::{Losses, SackOutcome};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::{MAX_PATHS, PathId, PathSet};
use crate::policy::{Event, OpportunityCause};
use crate::profile::BurstArming;
use crate::time::{Time, earliest};

pub(crate) use outlet::Outlet;

/// Source of packets with DATA.
trait Source {
    /// Builds the next packet and returns its path; `None` if the source has none in this opportunity.
    fn next(&self, t: &mut Transmission, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId>;
}

/// Sources in the order in which core queries them for each packet.
const SOURCES: [&dyn Source; 7] = [
    &duplicates::Duplicates,
    &retransmissions::Retransmissions,
    &tail_probes::TailProbes,
    &head_of_line::HeadOfLine,
    &bound::BoundChunks,
    &new_data::NewData,
    &head_of_line::RepeatedHeadOfLine,
];

/// Sources of packets before a path carries user data.
const EARLY_SOURCES: [&dyn Source; 2] = [&cookie_echo::CookieEchoes, &key_management::UnvalidatedAddress];

/// Chunks of which copies are still to be sent in this opportunity.
#[derive(Clone, Copy, Debug)]
struct PendingCopies {
    /// First TSN.
    first: u64,
    /// TSN after the last one.
    after: u64,
    /// Paths on which the chunks have no copy so far.
    others: PathSet,
}

/// Time in which only the peer's window delays data.
#[derive(Clone, Copy, Debug, Default)]
struct PeerWindowBlock {
    since: Option<Time>,
    /// Path of the head-of-line chunk when it was last recorded.
    by: Option<PathId>,
}

/// Data that pacing delayed in the latest opportunity.
#[derive(Clone, Copy, Debug, Default)]
struct Paced {
    /// Timer: the time at which the first path with waiting data may send again.
    at: Option<Time>,
    /// First lost chunk that waits for each path.
    resends: [Option<u64>; MAX_PATHS],
    /// Paths with a waiting tail probe.
    probes: PathSet,
    /// `true` if new data was still to be offered to the scheduler.
    new_data: bool,
}

impl Paced {
    /// Records a lost chunk that pacing delays on this path.
    fn hold_resend(&mut self, path: PathId, tsn: u64) {
        self.resends[path.index()].get_or_insert(tsn);
    }

    /// Returns `true` if a retransmission or a tail probe waits for this path.
    fn holds_repair(&self, path: PathId) -> bool {
        self.resends[path.index()].is_some() || self.probes.contains(path)
    }

    /// Returns the time of the next opportunity to send on a path. If `awaits_new_data` is set, new data is offered to the
    /// scheduler at that time, and may be sent on the path. A path that became free before its repairs were offered to it again
    /// continues at once. New data does not wait for a free path: the scheduler has seen it, and declined.
    fn release(
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

/// State of the send opportunity, and state for the next ones.
#[derive(Clone, Debug)]
pub(crate) struct Transmission {
    /// Set if the event of the opportunity has been dispatched to the policies.
    announced: bool,
    cause: OpportunityCause,
    /// TSN from which on lost chunks are still to be offered to the retransmission policy.
    resend_from: Option<u64>,
    /// `true` if new data is still to be offered to the scheduler.
    new_data: bool,
    /// Set if a fast-retransmit event opened the opportunity, and its first packet has not been sent.
    after_loss_event: bool,
    /// Paths whose latest chunk is to be retransmitted as a tail probe.
    tail_probes: PathSet,
    copies: Option<PendingCopies>,
    /// `true` if the policy has declined an action for the head-of-line chunk. It is asked again after new data.
    head_of_line_declined: bool,
    /// `true` if new data was sent since the policy was asked about the head-of-line chunk.
    new_data_left: bool,
    /// Head-of-line chunk that was moved in this opportunity, and is not moved again.
    moved: Option<u64>,
    /// Time at which the next one opens because a policy waits until then. An earlier opportunity does not change it: that one may
    /// end before it reaches the chunk that waits.
    next_at: Option<Time>,
    /// Data that pacing delays, and the time at which it may be sent.
    paced: Paced,
    /// Paths that may send again in an opportunity that continues after pacing. Empty in all others.
    released: PathSet,
    /// `true` if opportunities may carry DATA (see [`Start`](crate::profile::Start)).
    data_allowed: bool,
    /// Set if the burst limit applies in this opportunity and the next ones.
    burst_armed: bool,
    block: PeerWindowBlock,
}

impl Transmission {
    /// Returns the state without an open opportunity.
    pub(crate) fn closed() -> Self {
        Transmission {
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
            block: PeerWindowBlock::default(),
        }
    }

    /// Ends the opportunity, and keeps the state for the next ones.
    fn end(&mut self) {
        let Transmission { announced, cause, next_at, paced, data_allowed, burst_armed, block, .. } = *self;
        *self = Transmission {
            announced,
            cause,
            next_at,
            paced,
            data_allowed,
            burst_armed,
            block,
            ..Transmission::closed()
        };
    }

    /// Schedules the next opportunity for this time, unless an earlier one is scheduled. Returns `false` if the time has passed:
    /// the caller must not wait.
    fn resume_at(&mut self, at: Time, now: Time) -> bool {
        let ahead = at > now;
        if ahead {
            self.next_at = Some(self.next_at.map_or(at, |next| next.min(at)));
        }
        ahead
    }

    /// Resets the state, because the association is closed.
    pub(crate) fn close(&mut self) {
        *self = Transmission { block: self.block, ..Transmission::closed() };
    }

    /// Waits for the start of data again, because the peer has restarted.
    pub(crate) fn restart(&mut self) {
        self.burst_armed = false;
        self.data_allowed = false;
        self.block.since = None;
    }

    /// Returns `true` if opportunities may carry DATA.
    pub(crate) fn is_started(&self) -> bool {
        self.data_allowed
    }

    /// Permits DATA in opportunities from now on, and opens the first one.
    pub(crate) fn start(&mut self) {
        self.data_allowed = true;
        self.open(OpportunityCause::Application, true);
    }

    /// Returns the time since which only the peer's window delays data.
    pub(crate) fn blocked_since(&self) -> Option<Time> {
        self.block.since
    }

    /// Returns the earliest time at which an opportunity opens or continues.
    pub(crate) fn deadline(&self) -> Option<Time> {
        earliest([self.next_at, self.paced.at])
    }

    /// Applies the burst limit from now on: RFC 9260 section 7.2.4 lets a burst follow a recovered loss.
    pub(crate) fn arm_burst_limit(&mut self) {
        self.burst_armed = true;
    }

    /// Records a fast-retransmit event by time alone.
    pub(crate) fn note_loss_event(&mut self) {
        self.after_loss_event = true;
    }

    /// Adds a tail probe to the opportunity.
    pub(crate) fn add_tail_probe(&mut self, path: PathId) {
        self.tail_probes.insert(path);
    }

    /// Opens the opportunity of a SACK. One that a later SACK has overtaken opens it for new data only.
    pub(crate) fn on_sack(&mut self, outcome: &SackOutcome, arming: BurstArming) {
        if outcome.overtaken {
            self.announced = false;
            self.cause = OpportunityCause::Sack;
            self.new_data = true;
            return;
        }
        self.burst_armed |= matches!(arming, BurstArming::Always);
        self.after_loss_event = outcome.losses == Losses::Chunks;
        self.open(OpportunityCause::Sack, true);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.resend_from.is_some() || self.new_data || !self.tail_probes.is_empty()
    }

    /// Opens an opportunity, or extends the open one.
    pub(crate) fn open(&mut self, cause: OpportunityCause, new_data: bool) {
        self.announced = false;
        self.cause = cause;
        self.resend_from = Some(0);
        self.new_data |= new_data;
        self.released = PathSet::EMPTY;
        self.paced.resends = [None; MAX_PATHS];
    }

    /// Continues after pacing: these paths may send again. Lost chunks that waited for other reasons are not offered again.
    fn resume(&mut self, released: PathSet) {
        // An open opportunity for all paths is not restricted to the released ones.
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

    /// Returns the paths that may send again, if this opportunity continues for them only.
    fn released(&self) -> Option<PathSet> {
        (!self.released.is_empty()).then_some(self.released)
    }
}

impl Transmission {
    /// Builds the next packet of the opportunity, and returns its path. An opportunity without further packets ends.
    pub(crate) fn next(&mut self, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        while self.is_open() {
            let path = self.next_in_opportunity(out, buf);
            if path.is_some() {
                return path;
            }
            self.end_opportunity(out);
            if out.d.paths.take_pacing_changed() {
                self.adapt_timer(&mut out.d);
            }
            self.resume_at_once(&mut out.d);
        }
        None
    }

    /// Builds the next packet of an association without a path in service: a COOKIE ECHO, or key management. Returns its path.
    pub(crate) fn next_early(&mut self, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        EARLY_SOURCES.iter().find_map(|source| source.next(self, out, buf))
    }

    // Not inlined for the same reason as `Association::next_packet`.
    #[inline(never)]
    fn next_in_opportunity(&mut self, out: &mut Outlet<'_>, buf: &mut PacketBuffer) -> Option<PathId> {
        if !std::mem::replace(&mut self.announced, true) {
            for id in out.d.paths.ids() {
                out.d.paths.refresh_burst(id, self.burst_armed);
            }
            out.d.dispatch(&Event::SendOpportunity(self.cause));
            bound::consider_replanning(out);
        }
        for source in SOURCES {
            let path = source.next(self, out, buf);
            if out.d.paths.take_pacing_changed() {
                self.adapt_timer(&mut out.d);
            }
            if path.is_some() {
                return path;
            }
        }
        None
    }

    /// Handles the times at which an opportunity opens or continues.
    pub(crate) fn on_deadline(&mut self, d: &mut Dispatcher<'_>) {
        if self.next_at.take_if(|at| *at <= d.now).is_some() {
            self.open(OpportunityCause::Policy, true);
        }
        if self.paced.at.take_if(|at| *at <= d.now).is_some() {
            self.resume_paced(d);
        }
    }

    fn end_opportunity(&mut self, out: &mut Outlet<'_>) {
        if matches!(out.d.paths.profile().burst_arming, BurstArming::AfterRecoveredLoss { disarms: true })
            && self.burst_held_data_back(out)
        {
            self.burst_armed = false;
        }
        self.hold_paced(&out.d);
        self.note_limiters(out);
        self.end();
        let paced = &self.paced;
        out.d.paths.end_opportunity(|id| paced.resends[id.index()].is_some());
        self.note_blocking(out);
    }

    fn new_packet_left(&mut self, out: &mut Outlet<'_>, path: PathId) {
        out.data_packet_left(path);
        out.d.restart_heartbeat_clock(path);
        out.d.sender.note_new_data_path(path);
        self.new_data_left = true;
        self.count_burst(out, path);
    }

    /// Counts a packet against the burst limit.
    fn count_burst(&mut self, out: &mut Outlet<'_>, path: PathId) {
        if self.burst_armed {
            out.d.paths.count_burst(path);
        }
    }
}

#[cfg(test)]
mod tests;
