//! Congestion control: the accounting that all schemes share ([`WindowControl`]) with a growth rule and a reduction rule, and
//! wrappers around a control.

pub(crate) mod control;
pub mod cut;
pub(crate) mod full_use;
pub mod growth;
pub(crate) mod rule;
pub(crate) mod slow_start_exit;
#[cfg(test)]
pub(crate) mod testing;
mod wrapped;

pub use control::{FirstWindow, GrowthGate, WindowControl};
pub use rule::{Acknowledged, Change, Cut, Growth, Pace, PathLoss, Unpaced};
pub use wrapped::{Wrapped, Wrapper};
