//! Ports whose connections have priority over others of the same association.

use std::ops::RangeInclusive;
use std::str::FromStr;

use anabranch_mapping::PRIORITY_WEIGHT;
use anabranch_net::SendStream;
use thiserror::Error;

use crate::policy::read_ports;

/// Error: the text is no list of ports.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected ports or ranges, such as 22 or 22,5900-5910")]
pub struct PriorityError;

/// Ports of targets whose connections have priority; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    ports: Vec<RangeInclusive<u16>>,
}

impl Priority {
    /// Returns `true` if connections to this port have priority.
    pub fn includes(&self, port: u16) -> bool {
        self.ports.iter().any(|ports| ports.contains(&port))
    }
}

impl FromStr for Priority {
    type Err = PriorityError;

    fn from_str(text: &str) -> Result<Self, PriorityError> {
        let ports: Option<Vec<_>> = text.split(',').map(read_ports).collect();
        ports.map(|ports| Priority { ports }).ok_or(PriorityError)
    }
}

/// Gives the bytes of a connection priority.
pub(crate) fn prioritise(sender: &mut SendStream) {
    sender.set_priority(PRIORITY_WEIGHT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_a_list_of_ports_and_ranges() {
        let priority: Priority = "22,5900-5910".parse().expect("ports");
        let included = [21, 22, 5899, 5900, 5910, 5911].map(|port| priority.includes(port));
        assert_eq!(included, [false, true, false, true, true, false]);
        assert!(!Priority::default().includes(22));
        assert!("*".parse::<Priority>().expect("all").includes(1));
        for text in ["", "0", "22,", "a", "9-1", "70000"] {
            assert_eq!(text.parse::<Priority>(), Err(PriorityError), "{text}");
        }
    }
}
