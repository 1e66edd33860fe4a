//! Acknowledgements: when, and with which chunk.

pub(crate) mod delayed;

pub use delayed::DelayedAcks;
