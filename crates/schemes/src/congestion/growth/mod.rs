//! Rules of growth, one file each.

mod standard;

pub use standard::StandardGrowth;

pub(crate) use standard::slow_start;
