//! Published multipath schemes as small policies on [`anabranch_core`]'s public traits.
//!
//! A scheme is named data: a preset of policies and parameters. [`registry::parse`] turns
//! `cmt(rtx=rtx-asap,trigger=4)` into a [`registry::NamedScheme`], which an association is configured with.

pub mod ack;
pub mod buffer;
pub mod congestion;
pub mod estimator;
pub mod failover;
pub mod loss;
pub mod registry;
pub mod retransmit;
pub mod scheduler;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod testing;
