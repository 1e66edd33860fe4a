//! Python bindings: scenarios, runs and associations on real sockets. This crate converts the types of the other crates, and
//! releases the interpreter while they run. The crate `anabranch-wheel` builds an extension module from it.

mod batch;
mod engine_version;
mod error;
mod policy;
mod prepared;
mod recorded;
mod scenario;
mod transfer;
mod video;

pub use batch::{run_batch, run_label};
pub use engine_version::engine;
pub use error::{AnabranchError, RunError, ScenarioError, SchemeError};
pub use policy::{
    Acknowledged, AssociationFacts, Bind, Copies, Decision, DeliverySample, HeadOfLine, LostChunk, PaceAsk,
    Pacing, PathFacts, PathLoss, PolicyEvent, SendAsk, View, Wait, Window, policy_sources,
};
pub use prepared::Prepared;
pub use recorded::read_rates;
pub use scenario::{NativeScenario, NativeText, read_link, resolve, schemes_of};
pub use transfer::{
    Association, Events, Listener, Operation, WakePipe, connect, end_associations, forget_runtime, listen,
};
pub use video::{video_due_ms, video_fates, video_measures};
