//! Components: what can be added to a scheme with `+`, one file each.

mod backup;
mod blest;
mod ecf;
mod min_rtt;
mod nr_sack;
mod opportunistic;
mod otias;
mod rack;
mod redundant;
mod rescheduling;
mod round_robin;
mod split;
mod sttf;
mod weighted;

use anabranch_core::policy::Policies;
use anabranch_core::profile::Profile;

use crate::registry::{Card, Parameter, Values};

/// What a component takes the place of. A scheme takes at most one component of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It places new data.
    Scheduler,
    /// It decides what counts as lost.
    LossDetection,
    /// It decides what acknowledges.
    Acknowledgement,
    /// It shares the send and receive buffers.
    BufferSharing,
    /// It sends the head of line ahead of its loss.
    Relief,
    /// It decides when a path is out of service.
    Failover,
}

/// A component before its parameters are chosen.
#[derive(Debug)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it is published.
    pub source: &'static str,
    /// What it takes the place of.
    pub role: Role,
    /// Whether it makes sense only for schemes that send new data on several paths.
    pub needs_multipath: bool,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// The rest of what it says about itself.
    pub card: Card,
    /// The rules it runs under, given those of the scheme it is added to.
    pub(crate) profile: fn(&Values, Profile) -> Profile,
    /// Puts itself into a scheme's policies.
    pub(crate) apply: fn(&Values, Policies) -> Policies,
}

/// For a component that sets no rule of its own.
pub(crate) fn unchanged(_: &Values, rules: Profile) -> Profile {
    rules
}

/// All components, in the order in which they are listed.
pub const COMPONENTS: &[Component] = &[
    round_robin::COMPONENT,
    weighted::COMPONENT,
    min_rtt::COMPONENT,
    ecf::COMPONENT,
    blest::COMPONENT,
    sttf::COMPONENT,
    otias::COMPONENT,
    redundant::COMPONENT,
    backup::COMPONENT,
    rack::COMPONENT,
    nr_sack::COMPONENT,
    split::COMPONENT,
    opportunistic::COMPONENT,
    rescheduling::COMPONENT,
];

#[cfg(test)]
mod tests;
