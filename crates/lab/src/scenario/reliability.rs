//! `reliability` of a flow of messages: a table with one limit (RFC 3758, RFC 7496).

use anabranch_core::Reliability;
use anabranch_core::time::Span;

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
    let read = limits(retransmissions, lifetime, priority);
    if let Some(limits) = &read
        && (limits.len() > 1 || (given && limits.is_empty()))
    {
        let help = "keep one of `max_retransmissions`, `lifetime` and `priority`, or leave the table out";
        table.fault_here(Fault::because(ProblemKind::Conflict, "a message has one limit", help));
        table.finish();
        return None;
    }
    table.finish();
    read.map(|limits| limits.first().copied().unwrap_or_default())
}

fn limits(
    retransmissions: Option<Option<u64>>,
    lifetime: Option<Option<Span>>,
    priority: Option<Option<u64>>,
) -> Option<Vec<Reliability>> {
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let limits = [
        retransmissions?.map(|most| Reliability::MaxRetransmissions(narrow(most))),
        lifetime?.map(Reliability::Lifetime),
        priority?.map(|number| Reliability::Priority(narrow(number))),
    ];
    Some(limits.into_iter().flatten().collect())
}
