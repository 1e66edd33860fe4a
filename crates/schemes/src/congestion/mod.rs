//! Windows.

mod rfc9260;

pub use rfc9260::{GrowthGate, Standard};
