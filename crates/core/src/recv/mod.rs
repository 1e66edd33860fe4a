//! Receiving side of an association: record of the TSNs that have arrived, and reassembly of messages.

mod arena;
mod reassembly;
mod receiver;
mod ring;
mod tracker;

#[cfg(test)]
mod properties;

pub use reassembly::ReceivedMessage;
pub(crate) use reassembly::{Fragment, Violation};
pub(crate) use receiver::{BlocksByDelivery, DataOutcome, Receiver};
