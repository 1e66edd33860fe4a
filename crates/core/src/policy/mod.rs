//! The boundary between the endpoint and the schemes that steer it.
//!
//! A policy sees a read-only [`View`] and returns a [`Decision`]; it never touches the endpoint's state. There is one object
//! per association and slot, with per-path state inside, because coupled control needs to see all paths. Every slot gets one
//! stream of [`Event`]s. Methods that decide have no default body; those that only follow events have one that does nothing.

mod decision;
mod delivery;
mod event;
mod pacing;
mod slots;
mod view;

pub use decision::{Decision, Reason, Refusal, Refused};
pub use delivery::{DeliverySample, Limiter, SendStamps};
pub use event::{
    AckedTransmission, Event, LossCause, OpportunityCause, PathAck, ProofOfLife, SackDone, SendKind,
    SentTransmission, StateCause,
};
pub use pacing::Pacing;
pub use slots::{
    AckForm, AckPolicy, AckTiming, Arrival, BufferSharing, CongestionControl, Context, HeadOfLineAction,
    HeadOfLineBlocking, HeadOfLineHandling, Holes, LeaveHeadOfLine, Life, LossDetection, LossTasks,
    LostChunk, Missing, MissingVerdict, PathEstimator, PathFailover, PathSack, Pick, Policies, Probing,
    Randomness, RetransmitChoice, RetransmitPath, SackView, Scheduler, Scheme, SendAsk, Slot, WaitFor,
    Window,
};
pub use view::{AssociationFacts, Estimates, HeadOfLine, PathFacts, RttFacts, View};
