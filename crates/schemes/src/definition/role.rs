//! Roles of components.

use std::fmt;

/// Role that a component replaces. A scheme takes at most one component of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Selects paths for new data.
    Scheduler,
    /// Sets the windows.
    CongestionControl,
    /// Declares chunks lost.
    LossDetection,
    /// Selects timing and type of acknowledgements.
    Acknowledgement,
    /// Shares the send and receive buffers.
    BufferSharing,
    /// Retransmits the head-of-line chunk before it is lost.
    OpportunisticRetransmission,
    /// Takes paths out of service.
    Failover,
    /// Spaces the packets of a window.
    Pacing,
}

impl Role {
    /// Returns the function of this role, as a phrase that follows its name.
    pub fn about(self) -> &'static str {
        match self {
            Role::Scheduler => "schedules new data",
            Role::CongestionControl => "controls the windows",
            Role::LossDetection => "detects losses",
            Role::Acknowledgement => "generates acknowledgements",
            Role::BufferSharing => "shares the send and receive buffers",
            Role::OpportunisticRetransmission => "retransmits the head of line before it is lost",
            Role::Failover => "detects failed paths",
            Role::Pacing => "paces packets",
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
