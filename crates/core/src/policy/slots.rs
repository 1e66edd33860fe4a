//! The slots of a scheme, each a small trait.

use crate::entropy::Entropy;
use crate::path_id::{MAX_PATHS, PathId, PathSet, PathState};
use crate::policy::{Decision, Estimates, Event, LossCause, Pacing, ProofOfLife, View};
use crate::profile::Profile;
use crate::time::{Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

/// Seeded randomness for policies: the only source they may draw from.
pub struct Context<'a> {
    pub(crate) entropy: &'a mut Entropy,
}

impl Context<'_> {
    /// A fair coin.
    pub fn coin(&mut self) -> bool {
        self.entropy.coin()
    }

    /// A number below `n`, uniformly.
    pub fn below(&mut self, n: u64) -> u64 {
        self.entropy.below(n)
    }

    /// A number in [0, 1), uniformly.
    pub fn unit(&mut self) -> f64 {
        self.entropy.unit_f64()
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Context")
    }
}

/// A source of [`Context`]s of its own, for testing a policy without an endpoint.
#[derive(Debug)]
pub struct Randomness {
    entropy: Entropy,
}

impl Randomness {
    /// The source whose numbers this seed fixes.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Randomness { entropy: Entropy::new(seed) }
    }

    /// A context that draws from it; the next one goes on where this one stopped.
    pub fn context(&mut self) -> Context<'_> {
        Context { entropy: &mut self.entropy }
    }
}

/// What every slot does: take in events, and perhaps own a deadline.
pub trait Slot: Send {
    /// Takes in an event. By default it changes nothing.
    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>, _context: &mut Context<'_>) {}
    /// When it wants [`Event::Deadline`]. Asked after every call that concerns the association, so it changes by events and
    /// decisions only.
    fn deadline(&self) -> Option<Time> {
        None
    }
}

/// Publishes figures that several slots read.
pub trait PathEstimator: Slot {
    /// The figures of a path.
    fn estimates(&self, path: PathId) -> Estimates;
    /// The paths on which a HEARTBEAT is to leave now, to measure those that carry no data. Asked once [`Event::Deadline`] has been
    /// told, whoever's deadline it was; the answer comes as [`Event::RttSample`] or not at all. A path that is unconfirmed, or
    /// has not answered the HEARTBEAT before, gets none.
    fn probes(&mut self, _view: &View<'_>) -> PathSet {
        PathSet::EMPTY
    }
}

/// The packet a scheduler is asked to place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendAsk {
    /// Bytes of the next chunk.
    pub chunk: ChunkBytes,
    /// Whether the peer's window is too small for it and it goes as a probe.
    pub window_probe: bool,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Window space anywhere.
    Window,
    /// This path.
    Path(PathId),
    /// A time, at which a send opportunity opens. It may be waited for even with nothing in flight.
    Until(Time),
}

/// Where new data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// On this path, now.
    Path(PathId),
    /// On each of these paths, now: on the first as new data, on the others as copies.
    Copies(PathSet),
    /// To this path's queue, where it waits for a place in the path's window, full as that may be now. The chunk gets its TSN
    /// and takes its share of the peer's window at once.
    Bind(PathId),
    /// Nowhere in this opportunity.
    Wait(WaitFor),
}

/// Chooses a path for each packet of new data; the TSN is assigned as the packet is built.
pub trait Scheduler: Slot {
    /// Chooses, or waits. A wait with nothing in flight is overruled and counted.
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick>;
    /// Whether chunks that are bound and not yet sent go back to be placed anew; asked as a send opportunity begins if there
    /// are any. Those of a path that left service go back in any case.
    fn replan(&mut self, _view: &View<'_>) -> bool {
        false
    }
}

/// A path's congestion state, as congestion control keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// Congestion window.
    pub cwnd: ChunkBytes,
    /// Slow-start threshold.
    pub ssthresh: ChunkBytes,
    /// Bytes acked toward the next increment.
    pub partial_bytes_acked: ChunkBytes,
}

/// Grows and cuts windows in answer to events, and may pace a path beside its window.
pub trait CongestionControl: Slot {
    /// The state of a path's window after the latest event.
    fn window(&self, path: PathId) -> Window;
    /// How a path is paced after the latest event; [`Pacing::OFF`] where windows alone decide. Asked when windows are.
    fn pacing(&self, path: PathId) -> Pacing;
    /// Why the latest change was made, of the window or of pacing, for the trace.
    fn last_reason(&self, path: PathId) -> crate::policy::Reason;
    /// Puts a path's window into another state, for a reason of the caller's: how a control that is wrapped around another one
    /// intervenes in it, and how the association raises a cwnd below one largest chunk, as after the path's packets grew. A cwnd
    /// below one largest chunk becomes one.
    fn set_window(&mut self, path: PathId, window: Window, reason: crate::policy::Reason, view: &View<'_>);
}

/// What one SACK said about one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSack {
    /// Whether gap blocks newly acked something on it.
    pub new_gap_ack: bool,
    /// Whether the cumulative TSN newly acked something on it.
    pub new_cumulative_ack: bool,
    /// The lowest TSN newly acked on it.
    pub lowest_newly_acked: Option<u64>,
    /// The highest TSN newly acked on it by gap blocks.
    pub highest_gap_acked: Option<u64>,
    /// When the latest of what was newly acked on it was sent.
    pub latest_sent_at: Option<Time>,
}

/// What one SACK said, for counting missing reports.
#[derive(Clone, Copy, Debug)]
pub struct SackView<'a> {
    /// Per path.
    pub paths: &'a [PathSack],
    /// Its cumulative TSN, unwrapped.
    pub cumulative: u64,
    /// The highest TSN newly acked; if this SACK acked nothing, that of the latest that did.
    pub highest_newly_acked: u64,
    /// Whether the cumulative TSN advanced.
    pub new_cumulative: bool,
    /// Its flags, where CMT's delayed acks count packets.
    pub flags: u8,
    /// The receive window that it advertises; the view still has the one advertised before it.
    pub a_rwnd: WindowBytes,
    /// What is left of that once everything outstanding after this SACK has arrived.
    pub peer_window: WindowBytes,
}

/// A chunk that a SACK leaves unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missing {
    /// Unwrapped TSN.
    pub tsn: u64,
    /// The path of its latest transmission.
    pub path: PathId,
    /// When that left.
    pub sent_at: Time,
    /// When its first transmission left.
    pub first_sent_at: Time,
    /// On each path, when the latest of its transmissions there left that is in flight.
    pub in_flight_since: [Option<Time>; MAX_PATHS],
    /// How often it was sent.
    pub transmissions: u32,
    /// Missing reports so far.
    pub reports: u32,
    /// Whether it has been fast-retransmitted or has timed out already: reports may not mark it again.
    pub recovered_before: bool,
    /// Whether it is lost already and waits to be sent again; some profiles count reports for it all the same.
    pub waits: bool,
}

impl Missing {
    /// A chunk that was sent once, on this path at this time, and has no report. For tests of policies.
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

/// What a SACK means for a missing chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingVerdict {
    /// Missing reports to add.
    pub reports: u32,
    /// Whether it is now lost.
    pub lost: bool,
}

/// Which of the holes that a SACK leaves a loss policy judges. Of the others it would say that they are not lost, and the reports
/// that it would add to them decide nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// All.
    All,
    /// Those that were neither fast-retransmitted nor timed out before, below this TSN.
    NeverRecovered {
        /// The first TSN that is not judged.
        below: u64,
    },
    /// Those whose latest transmission left on its path before this time, or at this time with a lower TSN; of paths without one
    /// none. What leaves in one burst leaves in TSN order.
    SentBefore([Option<(Time, u64)>; MAX_PATHS]),
}

/// Decides which chunks count as lost.
pub trait LossDetection: Slot {
    /// Says which holes it judges; asked once for each SACK that leaves one, before the first is judged. A large window has many
    /// holes that only wait for another path, and the fewer are judged, the less a SACK costs.
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes;
    /// Judges one missing chunk; called in TSN order for every hole that the policy judges.
    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict;
    /// Whether a T3 expiry of its path marks this chunk.
    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool;
    /// What is due now; asked once [`Event::Deadline`] has been told, whoever's deadline it was.
    fn due(&mut self, view: &View<'_>) -> LossTasks;
    /// Whether time alone makes a chunk lost; asked for every chunk in flight when [`LossTasks::recheck`] says so.
    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool;
}

/// What a loss policy wants done when its deadline has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossTasks {
    /// Ask [`LossDetection::overdue`] about the chunks in flight.
    pub recheck: bool,
    /// Send the latest chunk of each of these paths again, whatever its window says, to draw out an acknowledgement.
    pub probes: PathSet,
    /// Those of them whose probe follows one that nothing has answered. T3 counts from the first (RFC 8985 section 7.3).
    pub repeated: PathSet,
}

/// A lost chunk that waits for its retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostChunk {
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Chunk bytes.
    pub bytes: ChunkBytes,
    /// The path it was lost on.
    pub path: PathId,
    /// How it was lost.
    pub cause: LossCause,
}

/// Where a lost chunk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetransmitChoice {
    /// On this path, now.
    Path(PathId),
    /// On this path, now, and the chunk that was asked about on each of these others too that has room for a copy.
    Copies {
        /// Where the packet goes.
        path: PathId,
        /// Where copies of its first chunk go.
        others: PathSet,
    },
    /// Nowhere in this opportunity.
    Wait(WaitFor),
}

impl RetransmitChoice {
    /// The path that the packet goes on; `None` if it waits.
    pub const fn path(self) -> Option<PathId> {
        match self {
            RetransmitChoice::Path(path) | RetransmitChoice::Copies { path, .. } => Some(path),
            RetransmitChoice::Wait(_) => None,
        }
    }

    /// The paths that copies go on.
    pub const fn copies(self) -> PathSet {
        match self {
            RetransmitChoice::Copies { others, .. } => others,
            RetransmitChoice::Path(_) | RetransmitChoice::Wait(_) => PathSet::EMPTY,
        }
    }
}

/// Chooses the path of a retransmission, packet by packet, from the packet's first chunk.
pub trait RetransmitPath: Slot {
    /// Chooses, or waits.
    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice>;
}

/// What keeps new data from leaving while a chunk that is in flight holds the cumulative TSN back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadOfLineBlocking {
    /// Bytes of the chunk that is next in the queue; `None` if nothing waits.
    pub next_chunk: Option<ChunkBytes>,
    /// Whether the peer's window is too small for it.
    pub peer_window_closed: bool,
}

/// What to do about a head of line that is in flight and holds others up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadOfLineAction {
    /// Send a further copy of it on this path.
    Copy(PathId),
    /// Take it off the path it is in flight on, as if it were lost there, and send it on this one.
    Move(PathId),
}

/// Sends the head of line ahead of its loss (opportunistic retransmission, chunk rescheduling).
pub trait HeadOfLineHandling: Slot {
    /// What to do about the head of line, in flight as it is ([`AssociationFacts::head_of_line`](crate::policy::AssociationFacts)).
    /// Asked in each send opportunity once what is lost has been offered, before new data, after new data, and again after
    /// each action.
    /// `None` leaves it alone. A path that has no room or that it is in flight on already is overruled.
    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>>;
}

/// Leaves the head of line where it is, until it counts as lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaveHeadOfLine;

impl Slot for LeaveHeadOfLine {}

impl HeadOfLineHandling for LeaveHeadOfLine {
    fn handle(
        &mut self,
        _: &HeadOfLineBlocking,
        _: &View<'_>,
        _: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        None
    }
}

/// A packet with DATA that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Packets with DATA since the last SACK, this one included.
    pub packets: u32,
    /// Whether TSNs are missing below the highest received.
    pub gap: bool,
    /// Whether it held a duplicate.
    pub duplicate: bool,
    /// Whether a chunk asked for an immediate SACK (the I bit).
    pub immediate: bool,
    /// Whether it was the association's first DATA.
    pub first: bool,
}

/// When to acknowledge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTiming {
    /// With this packet.
    Now,
    /// After this long at the latest.
    Within(Span),
}

/// The chunk that acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckForm {
    /// SACK (RFC 9260 section 3.3.4).
    Sack,
    /// NR-SACK, which also says what the receiver will never drop again (draft-natarajan-tsvwg-sctp-nrsack), towards a
    /// peer that announced it.
    NrSack {
        /// Whether all that has arrived is kept for good, or only what has been handed to the application.
        keeps_all: bool,
    },
}

/// Decides when and what to acknowledge.
pub trait AckPolicy: Slot {
    /// The chunk to acknowledge with; the same for the whole life of an association.
    fn form(&self) -> AckForm;
    /// Decides for a packet that arrived.
    fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming>;
    /// The SACK's flags, given the packets it answers and whether the timer sent it.
    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8;
}

/// Shares send and receive buffers between paths.
pub trait BufferSharing: Slot {
    /// Whether a path may put another chunk of new data into the buffers.
    fn admits(&self, path: PathId, chunk: ChunkBytes, view: &View<'_>) -> bool;
}

/// How a path is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// A HEARTBEAT when it has been idle for HB.interval plus RTO with jitter.
    WhenIdle,
    /// A HEARTBEAT at once, and another at every RTO with back-off.
    EveryRto,
}

/// What proof that a path works changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// The state after it.
    pub state: PathState,
    /// Whether the error counter is cleared.
    pub clears_errors: bool,
}

/// Owns the transitions between path states.
pub trait PathFailover: Slot {
    /// The state after an error; the counter in the view already includes it.
    fn on_error(&mut self, path: PathId, by_heartbeat: bool, view: &View<'_>) -> Decision<PathState>;
    /// What proof of life changes.
    fn on_proof(&mut self, path: PathId, proof: ProofOfLife, view: &View<'_>) -> Life;
    /// How a path is probed in its present state.
    fn probing(&self, path: PathId, view: &View<'_>) -> Probing;
    /// How long the path may leave what it carried unanswered until it gets no new data, as potentially failed, while another
    /// path is active; `None` leaves that to errors. Asked whenever the wait begins.
    fn silence_limit(&self, _path: PathId, _view: &View<'_>) -> Option<Span> {
        None
    }
    /// The path to put into service when none is active; `None` leaves things as they are.
    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>>;
}

/// One policy per slot.
pub struct Policies {
    /// Figures for the others.
    pub estimator: Box<dyn PathEstimator>,
    /// New data.
    pub scheduler: Box<dyn Scheduler>,
    /// Windows.
    pub congestion: Box<dyn CongestionControl>,
    /// Losses.
    pub loss: Box<dyn LossDetection>,
    /// Retransmissions.
    pub retransmit: Box<dyn RetransmitPath>,
    /// The head of line while it is in flight.
    pub head_of_line: Box<dyn HeadOfLineHandling>,
    /// Acknowledgements.
    pub ack: Box<dyn AckPolicy>,
    /// Buffers.
    pub buffer: Box<dyn BufferSharing>,
    /// Path states.
    pub failover: Box<dyn PathFailover>,
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Policies")
    }
}

/// Makes the policies of an association. A scheme is data; this is what it makes of itself.
pub trait Scheme: Send + Sync {
    /// Fresh policies for one association.
    fn policies(&self) -> Policies;
    /// Whether new data uses several paths, which selects the profile's row.
    fn is_multipath(&self) -> bool;
    /// The rules it runs under, given those of the row: where a publication sets a bound or a floor of its own.
    fn profile(&self, row: Profile) -> Profile;
}
