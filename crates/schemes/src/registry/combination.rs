//! What goes together: which components a scheme can take.

use std::fmt;

use crate::registry::{Component, Preset, Role};

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
