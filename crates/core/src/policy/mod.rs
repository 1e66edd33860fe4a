//! The boundary between the endpoint and the schemes that steer it.
//!
//! A policy sees a read-only [`View`] and returns a [`Decision`]; it never touches the endpoint's state. There is one object
//! per association and slot, with per-path state inside, because coupled control needs to see all paths. Every slot gets one
//! stream of [`Event`]s; no hook has a default body, so an author decides what each event means.

mod decision;
mod event;
mod slots;
mod view;

pub use decision::{Decision, Reason, Refusal, Refused};
pub use event::{
    AckedTransmission, Event, LossCause, PathAck, ProofOfLife, SackDone, SendKind, SentTransmission,
    StateCause, TurnCause,
};
pub use slots::{
    AckForm, AckPolicy, AckTiming, Arrival, BufferSharing, CongestionControl, Context, Life, LossDetection,
    LossTasks, LostChunk, Missing, MissingVerdict, PathEstimator, PathFailover, PathSack, Pick, Policies,
    Probing, Randomness, Relief, RetransmitPath, Route, SackView, Scheduler, Scheme, SendAsk, Slot, Stall,
    WaitFor, Window,
};
pub use view::{AssociationFacts, Estimates, HeadOfLine, PathFacts, RttFacts, View};
