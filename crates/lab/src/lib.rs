//! From scenario files to runs, metrics and traces.

pub mod scenario;
