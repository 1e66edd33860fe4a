//! Components: what can be added to a scheme with `+`, one file each.

mod backup;
mod blest;
mod ecf;
mod min_rtt;
mod otias;
mod redundant;
mod round_robin;
mod sttf;
mod weighted;
use std::fmt;

use anabranch_core::policy::Policies;
use anabranch_core::profile::Profile;

use crate::registry::{Card, Parameter, Preset, Values};

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

impl Role {
    /// What a component of this role does, to follow its name.
    pub fn about(self) -> &'static str {
        match self {
            Role::Scheduler => "places new data",
            Role::LossDetection => "decides what counts as lost",
            Role::Acknowledgement => "decides what acknowledges",
            Role::BufferSharing => "shares the send and receive buffers",
            Role::Relief => "sends the head of line ahead of its loss",
            Role::Failover => "decides when a path is out of service",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Scheduler => "scheduler",
            Role::LossDetection => "loss detection",
            Role::Acknowledgement => "acknowledgement",
            Role::BufferSharing => "buffer sharing",
            Role::Relief => "relief of the head of line",
            Role::Failover => "failover",
        })
    }
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

impl Component {
    /// Whether it can be added to a scheme: not where it needs several paths and finds one, and not where it would put aside
    /// what makes the scheme what it is.
    pub fn fits(&self, base: &Preset) -> bool {
        (base.multipath || !self.needs_multipath) && !base.owns.contains(&self.role)
    }

    /// The shortest expression that has it, with the scheme that most of them are thought for if it fits there.
    pub fn example(&self, presets: &[Preset]) -> String {
        const USUAL: &str = "cmt";
        let fitting = || presets.iter().filter(|preset| self.fits(preset)).map(|preset| preset.name);
        let base = fitting().find(|name| *name == USUAL).or_else(|| fitting().next());
        format!("{}+{}", base.unwrap_or("NAME"), self.name)
    }
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
];

#[cfg(test)]
mod tests;
