//! Growth rules, one per file, and their shared parts.

pub(crate) mod coupled;
pub(crate) mod pooled;
pub(crate) mod standard;

pub use standard::StandardGrowth;

pub(crate) use coupled::{Flow, Flows};
pub(crate) use pooled::{coupled_paths, part, threshold_share};
