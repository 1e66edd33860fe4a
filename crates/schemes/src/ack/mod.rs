//! When and what to acknowledge.

mod delayed;
mod non_renegable;

pub use delayed::DelayedAcks;
pub use non_renegable::NonRenegable;
