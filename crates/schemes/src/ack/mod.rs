//! Acknowledgement policies: timing and chunk type.

pub(crate) mod delayed;

pub use delayed::DelayedAcks;
