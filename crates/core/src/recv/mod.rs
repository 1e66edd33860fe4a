//! The receiving side of an association: which TSNs have arrived, and the messages that their fragments make up.

mod arena;
mod reassembly;
mod receiver;
mod ring;
mod tracker;

#[cfg(test)]
mod properties;

pub use reassembly::ReceivedMessage;
pub(crate) use reassembly::{Fragment, Violation};
pub(crate) use receiver::{BlocksByDelivery, Receiver, Taken};
