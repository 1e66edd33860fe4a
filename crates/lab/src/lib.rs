//! Runs of scenarios, with their metrics and traces.

pub mod conventions;
pub mod engine;
pub mod explain;
pub mod recorded;
pub mod run;
pub mod statistics;
mod text_file;
pub mod video;

pub use anabranch_scenario as scenario;
