//! Interface between the endpoint and the policies of schemes.
//!
//! A policy gets a read-only [`View`] and returns a [`Decision`]; it does not change the endpoint's state. There is one object per
//! association and slot, with per-path state inside, because coupled control needs all paths. Slots receive the [`Event`]s that
//! they declare to read. Methods that decide have no default body; those that only process events have an empty one.

mod decision;
mod delivery;
mod event;
mod event_set;
mod pacing;
mod slots;
mod view;

pub use decision::{Decision, Reason, Refusal, Refused};
pub use delivery::{DeliverySample, Limiter, SendStamps};
pub use event::{
    AckedTransmission, Event, LivenessProof, LossCause, OpportunityCause, PathAck, SackDone, SendKind,
    SentTransmission, StateCause,
};
pub use event_set::{EventKind, EventSet};
pub use pacing::Pacing;
pub use slots::{
    AckForm, AckPolicy, AckTiming, Arrival, BufferSharing, CongestionControl, Context, HeadOfLineAction,
    HeadOfLineBlocking, HeadOfLineHandling, Holes, LeaveHeadOfLine, LivenessEffect, LossDetection, LossTasks,
    LostChunk, Missing, MissingVerdict, PathEstimator, PathFailover, PathSack, Pick, Policies, Probing,
    Randomness, RetransmitChoice, RetransmitPath, SackView, Scheduler, Scheme, SendAsk, Slot, WaitFor,
    Window,
};
pub use view::{AssociationFacts, Estimates, HeadOfLine, PathFacts, RttFacts, View};
