//! Roles: what a component takes the place of.

use std::fmt;

/// What a component takes the place of. A scheme takes at most one component of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It places new data.
    Scheduler,
    /// It sets the windows.
    CongestionControl,
    /// It decides what counts as lost.
    LossDetection,
    /// It decides what acknowledges.
    Acknowledgement,
    /// It shares the send and receive buffers.
    BufferSharing,
    /// It retransmits the head of line before that is lost.
    OpportunisticRetransmission,
    /// It decides when a path is out of service.
    Failover,
    /// It spaces the packets of a window.
    Pacing,
}

impl Role {
    /// What a component of this role does, to follow its name.
    pub fn about(self) -> &'static str {
        match self {
            Role::Scheduler => "places new data",
            Role::CongestionControl => "sets the windows",
            Role::LossDetection => "decides what counts as lost",
            Role::Acknowledgement => "decides what acknowledges",
            Role::BufferSharing => "shares the send and receive buffers",
            Role::OpportunisticRetransmission => "retransmits the head of line before it is lost",
            Role::Failover => "decides when a path is out of service",
            Role::Pacing => "spaces the packets of a window",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Scheduler => "scheduler",
            Role::CongestionControl => "congestion control",
            Role::LossDetection => "loss detection",
            Role::Acknowledgement => "acknowledgement",
            Role::BufferSharing => "buffer sharing",
            Role::OpportunisticRetransmission => "opportunistic retransmission",
            Role::Failover => "failover",
            Role::Pacing => "pacing",
        })
    }
}
