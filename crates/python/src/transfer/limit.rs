//! The limit of a message that may be given up.

use anabranch_core::time::Span;
use anabranch_net::Reliability;
use pyo3::FromPyObject;

use super::failure::Failure;
use super::settings::{seconds, within};

/// Retransmissions, seconds of lifetime and the number of a priority, of which one at most is given.
#[derive(FromPyObject)]
pub(super) struct Limit(Option<i64>, Option<f64>, Option<i64>);

impl Limit {
    /// # Errors
    /// If more than one is given, or one is out of its range.
    pub(super) fn reliability(self) -> Result<Reliability, Failure> {
        let number = |name, number| within(name, number, 0..=i64::from(u32::MAX)).map(|number| number as u32);
        match self {
            Limit(None, None, None) => Ok(Reliability::Full),
            Limit(Some(most), None, None) => {
                Ok(Reliability::MaxRetransmissions(number("max_retransmissions", most)?))
            }
            Limit(None, Some(lifetime), None) => {
                let lifetime = seconds("lifetime_s", lifetime)?;
                Ok(Reliability::Lifetime(Span::from_secs_f64(lifetime.as_secs_f64())))
            }
            Limit(None, None, Some(priority)) => Ok(Reliability::Priority(number("priority", priority)?)),
            _ => Err(Failure::Argument(
                "a message has one limit; give one of max_retransmissions, lifetime_s and priority"
                    .to_owned(),
            )),
        }
    }
}
