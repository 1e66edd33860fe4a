//! Limit after which a message is abandoned.

use anabranch_core::time::Span;
use anabranch_net::Reliability;
use pyo3::FromPyObject;

use super::failure::Failure;
use super::settings::{seconds, within};

/// Retransmissions, seconds of lifetime, and a priority, which excludes the others.
#[derive(FromPyObject)]
pub(super) struct Limit(Option<i64>, Option<f64>, Option<i64>);

impl Limit {
    /// # Errors
    /// Returns an error if a priority has another limit, or a number is out of its range.
    pub(super) fn reliability(self) -> Result<Reliability, Failure> {
        let number = |name, number| within(name, number, 0..=i64::from(u32::MAX)).map(|number| number as u32);
        let Limit(most, lifetime, priority) = self;
        let most = most.map(|most| number("max_retransmissions", most)).transpose()?;
        let lifetime = lifetime.map(|lifetime| seconds("lifetime_s", lifetime)).transpose()?;
        let lifetime = lifetime.map(|lifetime| Span::from_secs_f64(lifetime.as_secs_f64()));
        let priority = priority.map(|priority| number("priority", priority)).transpose()?;
        match (most, lifetime, priority) {
            (None, None, None) => Ok(Reliability::Full),
            (Some(most), None, None) => Ok(Reliability::MaxRetransmissions(most)),
            (None, Some(lifetime), None) => Ok(Reliability::Lifetime(lifetime)),
            (Some(max_retransmissions), Some(lifetime), None) => {
                Ok(Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions })
            }
            (None, None, Some(priority)) => Ok(Reliability::Priority(priority)),
            (_, _, Some(_)) => Err(Failure::Argument(
                "a message with a priority has no other limit; omit max_retransmissions and lifetime_s"
                    .to_owned(),
            )),
        }
    }
}
