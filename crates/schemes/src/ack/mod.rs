//! When and what to acknowledge.

pub(crate) mod delayed;

pub use delayed::DelayedAcks;
