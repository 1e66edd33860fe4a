//! Rules of reduction, one file each, and what they share.

mod halving;

pub use halving::Halving;

pub(crate) use halving::{after_fast_retransmit, after_timeout};
