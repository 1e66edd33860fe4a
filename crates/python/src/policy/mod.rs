//! Schemes with policies written in Python: a scheme of the registry with an object of Python in some slots.
//!
//! Each association has its own copy of the object. It is called with the interpreter attached, in the thread that requested the
//! run. Its arguments are copies of core's views, so that it may store them. An exception ends the run: it is stored in the
//! [`Fault`], and the policies make no further decisions.

mod answer;
mod congestion;
mod event;
mod fault;
mod hook;
mod numbers;
mod object;
mod reason;
mod retransmit;
mod scheduler;
mod scheme;
mod shapes;
mod view;

pub(crate) use fault::Fault;
use pyo3::prelude::*;
pub(crate) use scheme::OwnPolicies;

pub use answer::{Bind, Copies, Decision, Wait};
pub use event::PolicyEvent;
pub use shapes::{
    Acknowledged, DeliverySample, HeadOfLine, LostChunk, PaceAsk, Pacing, PathLoss, SendAsk, Window,
};
pub use view::{AssociationFacts, PathFacts, View};

/// Returns the sources of this module, which affect the results of runs with policies in Python. The fingerprint of the engine does
/// not cover them.
#[pyfunction]
pub fn policy_sources() -> &'static str {
    concat!(
        include_str!("answer.rs"),
        include_str!("congestion.rs"),
        include_str!("event.rs"),
        include_str!("fault.rs"),
        include_str!("hook.rs"),
        include_str!("mod.rs"),
        include_str!("numbers.rs"),
        include_str!("object.rs"),
        include_str!("reason.rs"),
        include_str!("retransmit.rs"),
        include_str!("scheduler.rs"),
        include_str!("scheme.rs"),
        include_str!("shapes.rs"),
        include_str!("view.rs"),
    )
}
