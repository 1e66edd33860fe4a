//! When and what to acknowledge.

mod delayed;

pub use delayed::DelayedAcks;
