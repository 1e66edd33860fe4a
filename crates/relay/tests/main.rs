//! Tests of relays.

mod driver;
mod simulator;
