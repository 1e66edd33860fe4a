//! The Python bindings: scenarios, runs and associations on real sockets. The Rust crates do the work; this crate converts their
//! types, and releases the interpreter while they run. The crate `anabranch-wheel` makes an extension module of it.

mod batch;
mod engine_version;
mod error;
mod policy;
mod prepared;
mod scenario;
mod transfer;
mod video;

pub use batch::run_batch;
pub use engine_version::engine;
pub use error::{AnabranchError, RunError, ScenarioError, SchemeError};
pub use policy::{
    Acknowledged, AssociationFacts, Bind, Copies, Decision, DeliverySample, HeadOfLine, LostChunk, PaceAsk,
    Pacing, PathFacts, PathLoss, PolicyEvent, SendAsk, View, Wait, Window, policy_sources,
};
pub use prepared::Prepared;
pub use scenario::{NativeScenario, NativeText, resolve, schemes_of};
pub use transfer::{
    Association, Events, Listener, Operation, WakePipe, connect, end_associations, forget_runtime, listen,
};
pub use video::{video_due_ms, video_fates, video_measures};
