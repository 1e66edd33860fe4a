//! `reliability` of a flow of messages: a table with a priority, or with a lifetime, a limit of retransmissions or both (RFC 3758,
//! RFC 7496).

use anabranch_core::Reliability;

use super::error::ProblemKind;
use super::fault::Fault;
use super::reader::Reader;
use super::shape::{ANY_TIME, IntegerIn};

/// Retransmissions, and numbers of priorities, at most.
const MOST: u64 = 1_000_000;

/// The limits that there are.
pub(super) const LIMITS: [&str; 3] = ["max_retransmissions", "lifetime", "priority"];

/// Reads the key `reliability`; full reliability if there is none, and `None` if it is wrong.
pub(super) fn read_reliability(reader: &mut Reader<'_>) -> Option<Reliability> {
    let given = reader.has("reliability");
    read_limit(reader.table("reliability")?, given)
}

/// Reads the limit in a table; full reliability if the table is not given, and `None` if it is wrong.
pub(super) fn read_limit(mut table: Reader<'_>, given: bool) -> Option<Reliability> {
    let count = IntegerIn(0..=MOST);
    let retransmissions = table.optional(LIMITS[0], &count);
    let lifetime = table.optional(LIMITS[1], &ANY_TIME);
    let priority = table.optional(LIMITS[2], &count);
    let Some(((retransmissions, lifetime), priority)) = retransmissions.zip(lifetime).zip(priority) else {
        table.finish();
        return None;
    };
    let read = match (retransmissions, lifetime, priority) {
        (None, None, None) if !given => Some(Reliability::Full),
        (Some(most), None, None) => Some(Reliability::MaxRetransmissions(narrow(most))),
        (None, Some(lifetime), None) => Some(Reliability::Lifetime(lifetime)),
        (Some(most), Some(lifetime), None) => {
            Some(Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions: narrow(most) })
        }
        (None, None, Some(number)) => Some(Reliability::Priority(narrow(number))),
        (_, _, Some(_)) => {
            let help = "keep `priority`, or `max_retransmissions` and `lifetime`";
            let problem = "a message with a priority has no other limit";
            table.fault_here(Fault::because(ProblemKind::Conflict, problem, help));
            None
        }
        (None, None, None) => {
            let help = "give `max_retransmissions`, `lifetime`, both, or `priority`, or leave the table out";
            table.fault_here(Fault::because(ProblemKind::Conflict, "the table has no limit", help));
            None
        }
    };
    table.finish();
    read
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
