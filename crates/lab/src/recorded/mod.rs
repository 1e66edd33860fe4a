//! Recorded networks: statistics of their rates, and models that generate similar traces.

mod model;
mod statistics;

pub use model::{Model, ModelError};
pub use statistics::{OutageStatistics, RateStatistics, correlation};
