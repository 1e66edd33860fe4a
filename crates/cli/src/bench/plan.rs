//! Parameters of a test, on which both sides agree before it begins.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Version of the control messages.
pub(super) const VERSION: u32 = 1;

/// Maximum number of data streams. Control messages use stream 0.
pub(super) const MOST_STREAMS: u16 = 64;

/// Longest message, in bytes. Larger ones would only test the available memory.
pub(super) const LONGEST_MESSAGE: u64 = 16 << 20;

/// Minimum number of messages per second at a given rate. A longer message would send bytes that are due later.
const LEAST_MESSAGES_PER_S: u64 = 10;
/// Minimum number of messages per second for messages that fit into a packet. Smaller messages would consist mostly of headers.
const LEAST_SMALL_MESSAGES_PER_S: u64 = 4;
/// User bytes that fit into a packet on each path.
const SMALL_MESSAGE: u64 = 1000;

/// Longest test in milliseconds: a day.
const LONGEST_TEST_MS: u64 = 86_400_000;

/// Direction of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Direction {
    /// The client sends.
    Forward,
    /// The server sends.
    Reverse,
    /// Both send.
    Both,
}

/// Limit of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Limit {
    /// Duration in milliseconds.
    TimeMs(u64),
    /// Number of user bytes.
    Bytes(u64),
}

/// The parameters of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) version: u32,
    pub(super) direction: Direction,
    pub(super) limit: Limit,
    /// Milliseconds at the beginning that are left out of the figures. They precede the duration of the limit.
    pub(super) omit_ms: u64,
    /// Milliseconds between two reports of a sender; 0 for no reports.
    pub(super) interval_ms: u64,
    /// User bytes of a message.
    pub(super) length: u64,
    /// Streams that carry data.
    pub(super) streams: u16,
    /// Maximum user bits per second of each sender.
    pub(super) rate_bps: Option<u64>,
}

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Plan {
    /// Returns `true` if this side sends data.
    pub(super) fn sends(&self, side: Side) -> bool {
        match self.direction {
            Direction::Forward => side == Side::Client,
            Direction::Reverse => side == Side::Server,
            Direction::Both => true,
        }
    }

    /// Returns `true` if this side receives data.
    pub(super) fn receives(&self, side: Side) -> bool {
        match side {
            Side::Client => self.sends(Side::Server),
            Side::Server => self.sends(Side::Client),
        }
    }

    /// Returns the user bytes of a message. At the plan's rate a message lasts at most a tenth of a second, or a quarter if it fits
    /// into a packet. Even a low rate is therefore smooth, and a test of some seconds ends in time.
    pub(super) fn message_bytes(&self) -> u64 {
        match self.rate_bps {
            Some(rate) => {
                let small = (rate / 8 / LEAST_SMALL_MESSAGES_PER_S).min(SMALL_MESSAGE);
                self.length.min((rate / 8 / LEAST_MESSAGES_PER_S).max(small).max(1))
            }
            None => self.length,
        }
    }

    /// Returns the duration of a test by time, without the part left out.
    pub(super) fn time(&self) -> Option<Duration> {
        match self.limit {
            Limit::TimeMs(time) => Some(Duration::from_millis(time)),
            Limit::Bytes(_) => None,
        }
    }

    /// Returns the maximum number of user bytes of a sender: the limit, or the bytes of the rate in the time.
    pub(super) fn target_bytes(&self) -> u64 {
        match (self.limit, self.rate_bps) {
            (Limit::Bytes(bytes), _) => bytes,
            (Limit::TimeMs(_), None) => u64::MAX,
            (Limit::TimeMs(time), Some(rate)) => {
                let all_ms = u128::from(time) + u128::from(self.omit_ms);
                u64::try_from(u128::from(rate) * all_ms / 8000).unwrap_or(u64::MAX)
            }
        }
    }

    pub(super) fn omit(&self) -> Duration {
        Duration::from_millis(self.omit_ms)
    }

    pub(super) fn interval(&self) -> Option<Duration> {
        (self.interval_ms > 0).then(|| Duration::from_millis(self.interval_ms))
    }

    /// Checks a request, on the server.
    ///
    /// # Errors
    /// Returns the parameter that is out of its range.
    pub(super) fn check(&self) -> Result<(), String> {
        let Plan { version, length, streams, limit, omit_ms, interval_ms, rate_bps, .. } = *self;
        if version != VERSION {
            return Err(format!(
                "it speaks version {version}, this one {VERSION}: use the same program on both sides"
            ));
        }
        let within = |what: &str, value: u64, from: u64, to: u64| match (from..=to).contains(&value) {
            true => Ok(()),
            false => Err(format!("{what} is {value}; it has to be from {from} to {to}")),
        };
        within("the length of a message", length, 1, LONGEST_MESSAGE)?;
        within("the number of streams", streams.into(), 1, MOST_STREAMS.into())?;
        within("the omitted time", omit_ms, 0, LONGEST_TEST_MS)?;
        within("the interval", interval_ms, 0, LONGEST_TEST_MS)?;
        within("the rate", rate_bps.unwrap_or(1), 1, u64::MAX)?;
        match limit {
            Limit::TimeMs(time) => within("the time", time, 1, LONGEST_TEST_MS),
            Limit::Bytes(bytes) => within("the number of bytes", bytes, 1, u64::MAX / 2),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::bench) const PLAN: Plan = Plan {
        version: VERSION,
        direction: Direction::Forward,
        limit: Limit::Bytes(1000),
        omit_ms: 0,
        interval_ms: 0,
        length: 100,
        streams: 1,
        rate_bps: None,
    };

    #[test]
    fn sent_direction_of_client_is_received_direction_of_server() {
        for (direction, client, server) in [
            (Direction::Forward, true, false),
            (Direction::Reverse, false, true),
            (Direction::Both, true, true),
        ] {
            let plan = Plan { direction, ..PLAN };
            assert_eq!((plan.sends(Side::Client), plan.sends(Side::Server)), (client, server));
            assert_eq!((plan.receives(Side::Server), plan.receives(Side::Client)), (client, server));
        }
    }

    #[test]
    fn low_rate_bounds_the_length_of_messages() {
        let length = |rate_bps| Plan { length: 65_536, rate_bps, ..PLAN }.message_bytes();
        assert_eq!(length(None), 65_536);
        assert_eq!(length(Some(10_000_000_000)), 65_536);
        assert_eq!(length(Some(100_000)), 1250);
        assert_eq!(length(Some(50_000)), 1000);
        assert_eq!(length(Some(10_000)), 312);
        assert_eq!(length(Some(1000)), 31);
        assert_eq!(length(Some(1)), 1);
    }

    #[test]
    fn target_is_rate_times_duration() {
        let timed = Plan { limit: Limit::TimeMs(10_000), ..PLAN };
        assert_eq!(timed.target_bytes(), u64::MAX);
        assert_eq!(Plan { rate_bps: Some(1000), ..timed }.target_bytes(), 1250);
        assert_eq!(Plan { rate_bps: Some(1000), omit_ms: 1000, ..timed }.target_bytes(), 1375);
        let most = Plan { limit: Limit::TimeMs(LONGEST_TEST_MS), rate_bps: Some(u64::MAX), ..PLAN };
        assert_eq!(most.target_bytes(), u64::MAX);
        assert_eq!(Plan { rate_bps: Some(1000), ..PLAN }.target_bytes(), 1000);
    }

    #[test]
    fn a_plan_that_would_harm_a_server_is_refused() {
        assert_eq!(PLAN.check(), Ok(()));
        for (plan, expected) in [
            (Plan { version: 2, ..PLAN }, "version 2"),
            (Plan { length: 0, ..PLAN }, "length of a message is 0"),
            (Plan { length: 1 << 40, ..PLAN }, "length of a message"),
            (Plan { streams: 0, ..PLAN }, "number of streams is 0"),
            (Plan { streams: 65, ..PLAN }, "from 1 to 64"),
            (Plan { limit: Limit::TimeMs(0), ..PLAN }, "the time is 0"),
            (Plan { limit: Limit::TimeMs(u64::MAX), ..PLAN }, "the time is"),
            (Plan { limit: Limit::Bytes(0), ..PLAN }, "number of bytes is 0"),
            (Plan { rate_bps: Some(0), ..PLAN }, "the rate is 0"),
            (Plan { omit_ms: u64::MAX, ..PLAN }, "the omitted time"),
        ] {
            assert!(plan.check().is_err_and(|error| error.contains(expected)), "{plan:?}");
        }
    }
}
