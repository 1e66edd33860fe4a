//! Reasons for which a connection is not forwarded.

use std::fmt;
use std::io;

/// Reason for which a connection, a listener or a flow of datagrams is not forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The target refuses connections.
    Refused,
    /// No route leads to the target.
    Unreachable,
    /// The name has no address.
    NotResolved,
    /// The policy of the gateway does not permit the target or the listener.
    Forbidden,
    /// The target or the resolver did not answer in time.
    TimedOut,
    /// The user has reached a limit of the gateway.
    Limit,
    /// The request cannot be read.
    Malformed,
    /// The two sides have different versions of the protocol.
    Version,
    /// The side that connects has no descriptors left, or cannot bind the port.
    Exhausted,
    /// There is no association with the gateway.
    NoGateway,
}

impl Failure {
    /// All failures.
    pub const ALL: [Failure; 10] = [
        Failure::Refused,
        Failure::Unreachable,
        Failure::NotResolved,
        Failure::Forbidden,
        Failure::TimedOut,
        Failure::Limit,
        Failure::Malformed,
        Failure::Version,
        Failure::Exhausted,
        Failure::NoGateway,
    ];

    /// Returns the name in counters and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Refused => "refused",
            Failure::Unreachable => "unreachable",
            Failure::NotResolved => "not_resolved",
            Failure::Forbidden => "forbidden",
            Failure::TimedOut => "timed_out",
            Failure::Limit => "limit",
            Failure::Malformed => "malformed",
            Failure::Version => "version",
            Failure::Exhausted => "exhausted",
            Failure::NoGateway => "no_gateway",
        }
    }

    /// Returns the code in messages.
    pub(crate) fn code(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the failure with this code.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Failure::ALL.into_iter().find(|failure| failure.code() == code)
    }

    /// Returns the failure for an error of a connect or bind call.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Failure::Refused,
            io::ErrorKind::TimedOut => Failure::TimedOut,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable => Failure::Unreachable,
            io::ErrorKind::PermissionDenied => Failure::Forbidden,
            _ => Failure::Exhausted,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Refused => "the target refuses connections on this port",
            Failure::Unreachable => "no route leads to the target",
            Failure::NotResolved => "the name of the target has no address at the far end",
            Failure::Forbidden => "the gateway does not permit it; see --allow of `anabranch gateway`",
            Failure::TimedOut => "the target did not answer in time",
            Failure::Limit => "a limit of the gateway for this user is reached; close connections or wait",
            Failure::Malformed => "the request is malformed",
            Failure::Version => "the two sides have different versions; use the same version of anabranch",
            Failure::Exhausted => "the far end has no free socket or port",
            Failure::NoGateway => "the gateway is not reachable",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_own_code_and_name() {
        for failure in Failure::ALL {
            assert_eq!(Failure::from_code(failure.code()), Some(failure));
            assert_eq!(Failure::ALL.iter().filter(|other| other.name() == failure.name()).count(), 1);
        }
        assert_eq!((Failure::from_code(0), Failure::from_code(255)), (None, None));
    }
}
