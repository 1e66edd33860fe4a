//! Outages on the command line: `5s..10s`.

use anabranch_core::time::{Span, Time};

use crate::quantity;

/// An outage: `5s..10s` after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) from: Time,
    pub(crate) to: Time,
}

impl std::str::FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Err(format!("expected two times such as `5s..10s`, found `{text}`"));
        };
        let read = |text| quantity::read_time(text).map(Span::from);
        let (from, to) = (Time::ZERO + read(from)?, Time::ZERO + read(to)?);
        if from >= to {
            return Err(format!("expected an end after the beginning, such as `5s..10s`, found `{text}`"));
        }
        Ok(Cut { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_have_a_beginning_and_a_later_end() {
        let cut: Cut = "5s..10s".parse().expect("a cut");
        assert_eq!(cut.to.since(cut.from), Span::from_secs(5));
        for text in ["", "5s", "5s..", "..5s", "10s..5s", "5s..5s", "5..10x", "5s...10s"] {
            assert!(text.parse::<Cut>().is_err(), "{text} was accepted");
        }
    }
}
