//! Slots of a scheme, each a small trait.

use crate::entropy::Entropy;
use crate::path_id::{MAX_PATHS, PathId, PathSet, PathState};
use crate::policy::{Decision, Estimates, Event, EventSet, LivenessProof, LossCause, Pacing, View};
use crate::profile::Profile;
use crate::time::{Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

/// Seeded random numbers for policies, which must not use any other source.
pub struct Context<'a> {
    pub(crate) entropy: &'a mut Entropy,
}

impl Context<'_> {
    /// Returns `true` with probability 1/2.
    pub fn coin(&mut self) -> bool {
        self.entropy.coin()
    }

    /// Returns a number below `n`, uniformly distributed.
    pub fn below(&mut self, n: u64) -> u64 {
        self.entropy.below(n)
    }

    /// Returns a number in [0, 1), uniformly distributed.
    pub fn unit(&mut self) -> f64 {
        self.entropy.unit_f64()
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

/// Source of [`Context`]s for tests of policies without an endpoint.
#[derive(Debug)]
pub struct Randomness {
    entropy: Entropy,
}

impl Randomness {
    /// Returns the source for a seed.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Randomness { entropy: Entropy::new(seed) }
    }

    /// Returns a context; the next one continues the sequence of numbers.
    pub fn context(&mut self) -> Context<'_> {
        Context { entropy: &mut self.entropy }
    }
}

/// Interface of every slot: events, and an optional deadline.
pub trait Slot: Send {
    /// Returns the kinds of events that [`on_event`](Self::on_event) reads under these rules: all by default. No other kind is
    /// delivered. The set is read once, when the association is created or its peer has restarted. A policy that wraps another one
    /// returns the union of both sets.
    fn events(&self, _profile: &Profile) -> EventSet {
        EventSet::ALL
    }
    /// Processes an event. By default it has no effect.
    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>, _context: &mut Context<'_>) {}
    /// Returns the time of the next [`Event::Deadline`]. It changes by events that the policy reads and by its
    /// decisions only, and is read again after these.
    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// Publisher of figures that several slots read.
pub trait PathEstimator: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn PathEstimator>> {
        None
    }
    /// Returns the figures of a path. They change by events that the estimator reads only, and are read again after these, except
    /// after the kinds that [`CongestionControl::window`] names.
    fn estimates(&self, path: PathId) -> Estimates;
    /// Returns the paths on which a HEARTBEAT is sent now, to measure those without data. It is called after [`Event::Deadline`] of
    /// any slot. The result arrives as [`Event::RttSample`], if at all. No HEARTBEAT is sent on a path that is unconfirmed, or has
    /// not answered the previous one.
    fn probes(&mut self, _view: &View<'_>) -> PathSet {
        PathSet::EMPTY
    }
}

/// Packet that a scheduler is asked to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendAsk {
    /// Length of the next chunk with its header.
    pub chunk: ChunkBytes,
    /// `true` if the peer's window is too small for it, so that it is sent as a probe.
    pub window_probe: bool,
    /// `true` if a copy on a second path is worth its bytes to the application ([`SendOptions::duplicate`](crate::SendOptions)).
    /// The packet then has no chunk of another message that is not.
    pub duplicate: bool,
}

/// Condition that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Space in any window.
    Window,
    /// Space on this path.
    Path(PathId),
    /// Time at which a send opportunity opens. This wait is permitted without bytes in flight.
    Until(Time),
}

/// Choice for new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Transmission on this path, now.
    Path(PathId),
    /// Transmission on each of these paths, now: new data on the first, copies on the others.
    Copies(PathSet),
    /// Queue of this path, whose window may be full, until the window has room. The chunk gets its TSN and its share of the peer's
    /// window at once.
    Bind(PathId),
    /// No transmission in this opportunity.
    Wait(WaitFor),
}

/// Policy that chooses a path for each packet of new data. The TSN is assigned when the packet is built.
pub trait Scheduler: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn Scheduler>> {
        None
    }
    /// Chooses a path, or waits. Core overrules a wait without bytes in flight, and counts it.
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick>;
    /// Returns `true` if bound chunks that were not sent are placed again. It is called at the start of a send opportunity if there
    /// are any. Chunks of a path that left service are always placed again.
    fn replan(&mut self, _view: &View<'_>) -> bool {
        false
    }
}

/// Congestion state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// Congestion window.
    pub cwnd: ChunkBytes,
    /// Slow-start threshold.
    pub ssthresh: ChunkBytes,
    /// Bytes acknowledged toward the next increment.
    pub partial_bytes_acked: ChunkBytes,
}

/// Policy that grows and cuts windows, and may pace a path beside its window.
pub trait CongestionControl: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn CongestionControl>> {
        None
    }
    /// Returns the state of a path's window after the latest event. It changes by events that the control reads and by
    /// [`set_window`](Self::set_window) only, and is read again after these and after the size of a path's packets has changed. A
    /// change by `SendOpportunity`, `Blocked`, or `Sent` of anything but a copy of the head of line is adopted at the next event of
    /// another kind, even if no policy reads that event.
    fn window(&self, path: PathId) -> Window;
    /// Returns the pacing of a path after the latest event; [`Pacing::OFF`] if only windows limit it.
    fn pacing(&self, path: PathId) -> Pacing;
    /// Returns the reason of the latest change of window or pacing, for the trace.
    fn last_reason(&self, path: PathId) -> crate::policy::Reason;
    /// Sets the state of a path's window, with the caller's reason. A control that wraps another one intervenes this way, and the
    /// association raises a cwnd below one largest chunk, for example after the path's packets grew. A cwnd below one largest chunk
    /// becomes one.
    fn set_window(&mut self, path: PathId, window: Window, reason: crate::policy::Reason, view: &View<'_>);
}

/// Report of one SACK about one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSack {
    /// `true` if gap blocks newly acknowledged a chunk of the path.
    pub new_gap_ack: bool,
    /// `true` if the cumulative TSN newly acknowledged a chunk of the path.
    pub new_cumulative_ack: bool,
    /// Lowest newly acknowledged TSN of the path.
    pub lowest_newly_acked: Option<u64>,
    /// Highest TSN of the path newly acknowledged by gap blocks.
    pub highest_gap_acked: Option<u64>,
    /// Latest send time of the newly acknowledged chunks of the path.
    pub latest_sent_at: Option<Time>,
}

/// Report of one SACK, for counting missing reports.
#[derive(Clone, Copy, Debug)]
pub struct SackView<'a> {
    /// Reports by path id.
    pub paths: &'a [PathSack],
    /// Cumulative TSN, unwrapped.
    pub cumulative: u64,
    /// Highest newly acknowledged TSN; without one, that of the latest SACK that had one.
    pub highest_newly_acked: u64,
    /// `true` if the cumulative TSN advanced.
    pub new_cumulative: bool,
    /// Flags, in which CMT's delayed acks count packets.
    pub flags: u8,
    /// Receive window that it advertises; the view still has the previous one.
    pub a_rwnd: WindowBytes,
    /// Remainder of that window after all chunks that are outstanding after this SACK.
    pub peer_window: WindowBytes,
}

/// Chunk that a SACK leaves unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Path of the latest transmission.
    pub path: PathId,
    /// Send time of the latest transmission.
    pub sent_at: Time,
    /// Send time of the first transmission.
    pub first_sent_at: Time,
    /// Send time of the latest transmission in flight on each path.
    pub in_flight_since: [Option<Time>; MAX_PATHS],
    /// Number of transmissions.
    pub transmissions: u32,
    /// Number of missing reports so far.
    pub reports: u32,
    /// `true` if it was fast-retransmitted or has timed out before: reports may not mark it again.
    pub recovered_before: bool,
    /// `true` if it is lost already and waits for retransmission; some profiles count reports for it too.
    pub waits: bool,
}

impl Missing {
    /// Returns a chunk that was sent once, on this path at this time, without reports. For tests of policies.
    pub fn sent_once(tsn: u64, path: PathId, sent_at: Time) -> Self {
        let mut in_flight_since = [None; MAX_PATHS];
        in_flight_since[path.index()] = Some(sent_at);
        Missing {
            tsn,
            path,
            sent_at,
            first_sent_at: sent_at,
            in_flight_since,
            transmissions: 1,
            reports: 0,
            recovered_before: false,
            waits: false,
        }
    }
}

/// Verdict on a missing chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingVerdict {
    /// Number of missing reports to add.
    pub reports: u32,
    /// `true` if the chunk is lost now.
    pub lost: bool,
}

/// Selection of the holes that a loss policy judges: those of a SACK, or chunks that may be lost by time. The others count as not
/// lost, and reports of them would have no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// All holes.
    All,
    /// Holes below this TSN that were neither fast-retransmitted nor timed out before.
    NeverRecovered {
        /// First TSN that is not judged.
        below: u64,
    },
    /// Holes whose latest transmission on its path was sent before this time, or at this time with a lower TSN; none on paths
    /// without a time. Chunks of one burst are sent in TSN order.
    SentBefore([Option<(Time, u64)>; MAX_PATHS]),
}

/// Policy that declares chunks lost.
pub trait LossDetection: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn LossDetection>> {
        None
    }
    /// Selects the holes to judge. It is called once for each SACK that leaves a hole, before the first is judged. A large window
    /// has many holes that only wait for another path, and the cost of a SACK grows with the number judged.
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes;
    /// Judges a missing chunk. It is called in TSN order for every selected hole.
    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict;
    /// Returns `true` if a T3 expiry of its path marks this chunk as lost.
    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool;
    /// Returns the tasks that are due. It is called after [`Event::Deadline`] of any slot.
    fn due(&mut self, view: &View<'_>) -> LossTasks;
    /// Returns `true` if a chunk is lost by time alone. It is called for the chunks in flight among [`LossTasks::recheck`].
    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool;
}

/// Tasks of a loss policy whose deadline has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossTasks {
    /// Chunks to call [`LossDetection::overdue`] for, if they are in flight.
    pub recheck: Option<Holes>,
    /// Paths whose latest chunk is sent again, independent of the window, to elicit an acknowledgement.
    pub probes: PathSet,
    /// Subset of `probes` whose probe follows an unanswered one. T3 counts from the first (RFC 8985 section 7.3).
    pub repeated: PathSet,
}

/// Lost chunk that waits for its retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostChunk {
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Length of the chunk with its header.
    pub bytes: ChunkBytes,
    /// Path on which it was lost.
    pub path: PathId,
    /// Cause of the loss.
    pub cause: LossCause,
}

/// Choice for a lost chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmitChoice {
    /// Retransmission on this path, now.
    Path(PathId),
    /// Retransmission on one path, now, and copies of the chunk on each other path that has room.
    Copies {
        /// Path of the packet.
        path: PathId,
        /// Paths of copies of its first chunk.
        others: PathSet,
    },
    /// No retransmission in this opportunity.
    Wait(WaitFor),
}

impl RetransmitChoice {
    /// Returns the path of the packet; `None` if it waits.
    pub const fn path(self) -> Option<PathId> {
        match self {
            RetransmitChoice::Path(path) | RetransmitChoice::Copies { path, .. } => Some(path),
            RetransmitChoice::Wait(_) => None,
        }
    }

    /// Returns the paths of copies.
    pub const fn copies(self) -> PathSet {
        match self {
            RetransmitChoice::Copies { others, .. } => others,
            RetransmitChoice::Path(_) | RetransmitChoice::Wait(_) => PathSet::EMPTY,
        }
    }
}

/// Policy that chooses the path of a retransmission, packet by packet, from the packet's first chunk.
pub trait RetransmitPath: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn RetransmitPath>> {
        None
    }
    /// Chooses a path, or waits.
    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice>;
    /// Returns `true` if an answer to wait holds for all lost chunks: neither the chunk nor chance determines the path. Core then
    /// asks about no further chunk in this opportunity. By default it asks about each.
    fn wait_holds(&self, _view: &View<'_>) -> bool {
        false
    }
}

/// State of new data while a chunk in flight holds the cumulative TSN back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadOfLineBlocking {
    /// Length of the next chunk in the queue with its header; `None` if no data waits.
    pub next_chunk: Option<ChunkBytes>,
    /// `true` if the peer's window is too small for it.
    pub peer_window_closed: bool,
}

/// Action for a head-of-line chunk that is in flight and blocks others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOfLineAction {
    /// Send a further copy of it on this path.
    Copy(PathId),
    /// Declare it lost on its path, and send it on this one.
    Move(PathId),
}

/// Policy that sends the head-of-line chunk before it is lost (opportunistic retransmission, chunk rescheduling).
pub trait HeadOfLineHandling: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn HeadOfLineHandling>> {
        None
    }
    /// Returns the action for the head-of-line chunk in flight
    /// ([`AssociationFacts::head_of_line`](crate::policy::AssociationFacts)). It is called in each send opportunity after the
    /// retransmissions, before new data, after new data, and again after each action. `None` leaves the chunk alone. Core overrules
    /// a path without room, or one on which the chunk is in flight.
    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>>;
}

/// Policy that leaves the head-of-line chunk on its path until it is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaveHeadOfLine;

impl Slot for LeaveHeadOfLine {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::NONE
    }
}

impl HeadOfLineHandling for LeaveHeadOfLine {
    fn copied(&self) -> Option<Box<dyn HeadOfLineHandling>> {
        Some(Box::new(*self))
    }

    fn handle(
        &mut self,
        _: &HeadOfLineBlocking,
        _: &View<'_>,
        _: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        None
    }
}

/// Packet with DATA that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of packets with DATA since the last SACK, including this one.
    pub packets: u32,
    /// `true` if TSNs are missing below the highest received.
    pub gap: bool,
    /// `true` if it contained a duplicate.
    pub duplicate: bool,
    /// `true` if a chunk requested an immediate SACK (the I bit).
    pub immediate: bool,
    /// `true` if it was the association's first DATA.
    pub first: bool,
}

/// Time of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTiming {
    /// Now, for this packet.
    Now,
    /// Now, or with the next packets of the same arrival if the driver has more of them (`Association::awaits_more`).
    Together,
    /// After this time at the latest.
    Within(Span),
}

/// Chunk type of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckForm {
    /// SACK (RFC 9260 section 3.3.4).
    Sack,
    /// NR-SACK, which also reports the data that the receiver never drops (draft-natarajan-tsvwg-sctp-nrsack), for a peer that
    /// announced it.
    NrSack {
        /// `true` if no received data is dropped, `false` if only data that was passed to the application is not.
        keeps_all: bool,
    },
}

/// Policy for the time and form of acknowledgements.
pub trait AckPolicy: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn AckPolicy>> {
        None
    }
    /// Returns the chunk type of acknowledgements; it is constant for an association.
    fn form(&self) -> AckForm;
    /// Decides on the acknowledgement of a received packet.
    fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming>;
    /// Returns the SACK's flags, given the number of acknowledged packets, and `by_timer` if the timer made it due.
    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8;
}

/// Policy that divides send and receive buffers between paths.
pub trait BufferSharing: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn BufferSharing>> {
        None
    }
    /// Returns `true` if a path may occupy the buffers with another chunk of new data.
    fn admits(&self, path: PathId, chunk: ChunkBytes, view: &View<'_>) -> bool;
}

/// Schedule of the probes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// HEARTBEAT after the path was idle for HB.interval plus RTO with jitter.
    WhenIdle,
    /// HEARTBEAT at once, and another one at every RTO with back-off.
    EveryRto,
}

/// Effect of a proof that a path works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivenessEffect {
    /// State after the proof.
    pub state: PathState,
    /// `true` if the error counter is cleared.
    pub clears_errors: bool,
}

/// Policy that decides on the states of paths.
pub trait PathFailover: Slot {
    /// Returns a [copy](Policies::copied) of the policy. `None` by default.
    fn copied(&self) -> Option<Box<dyn PathFailover>> {
        None
    }
    /// Returns the state after an error; the counter in the view already includes it.
    fn on_error(&mut self, path: PathId, by_heartbeat: bool, view: &View<'_>) -> Decision<PathState>;
    /// Returns the effect of a proof that the path works.
    fn on_proof(&mut self, path: PathId, proof: LivenessProof, view: &View<'_>) -> LivenessEffect;
    /// Returns the schedule of probes for a path in its current state.
    fn probing(&self, path: PathId, view: &View<'_>) -> Probing;
    /// Returns the time without answers to outstanding data after which the path becomes potentially failed and gets no new data,
    /// while another path is active; `None` leaves that to errors. It is called whenever the wait starts.
    fn silence_limit(&self, _path: PathId, _view: &View<'_>) -> Option<Span> {
        None
    }
    /// Returns the path to put into service if none is active; `None` changes nothing.
    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>>;
}

/// Policies of an association, one per slot.
pub struct Policies {
    /// Figures for the other slots.
    pub estimator: Box<dyn PathEstimator>,
    /// Paths of new data.
    pub scheduler: Box<dyn Scheduler>,
    /// Windows and pacing.
    pub congestion: Box<dyn CongestionControl>,
    /// Detection of losses.
    pub loss: Box<dyn LossDetection>,
    /// Paths of retransmissions.
    pub retransmit: Box<dyn RetransmitPath>,
    /// Head-of-line chunk in flight.
    pub head_of_line: Box<dyn HeadOfLineHandling>,
    /// Time and form of acknowledgements.
    pub ack: Box<dyn AckPolicy>,
    /// Shares of buffers.
    pub buffer: Box<dyn BufferSharing>,
    /// States of paths.
    pub failover: Box<dyn PathFailover>,
}

impl Policies {
    /// Returns independent copies in the same state, for a second run with the same beginning. Both runs continue with different
    /// amounts of queued data, which at that time exceed all windows.
    ///
    /// Returns `None` if a policy cannot be copied, or if its decisions may depend on such an amount.
    pub fn copied(&self) -> Option<Policies> {
        Some(Policies {
            estimator: self.estimator.copied()?,
            scheduler: self.scheduler.copied()?,
            congestion: self.congestion.copied()?,
            loss: self.loss.copied()?,
            retransmit: self.retransmit.copied()?,
            head_of_line: self.head_of_line.copied()?,
            ack: self.ack.copied()?,
            buffer: self.buffer.copied()?,
            failover: self.failover.copied()?,
        })
    }
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Policies")
    }
}

/// Factory for the policies of an association. A scheme itself is data.
pub trait Scheme: Send + Sync {
    /// Returns new policies for one association.
    fn policies(&self) -> Policies;
    /// Returns `true` if new data uses several paths, which selects the row of the profile.
    fn is_multipath(&self) -> bool;
    /// Returns the rules of the scheme, given those of the row, for publications with limits of their own.
    fn profile(&self, row: Profile) -> Profile;
}
