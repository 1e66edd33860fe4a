//! Figures of paths within intervals.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anabranch_net::{PathId, PathSnapshot, PathState, Snapshot};
use serde::{Deserialize, Serialize};

/// State of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Unconfirmed,
    Active,
    PotentiallyFailed,
    Inactive,
}

impl State {
    fn of(state: PathState) -> Self {
        match state {
            PathState::Unconfirmed => State::Unconfirmed,
            PathState::Active => State::Active,
            PathState::PotentiallyFailed => State::PotentiallyFailed,
            PathState::Inactive => State::Inactive,
        }
    }

    /// Returns the name for reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            State::Unconfirmed => "unconfirmed",
            State::Active => "active",
            State::PotentiallyFailed => "potentially-failed",
            State::Inactive => "inactive",
        }
    }
}

/// Figures of a path within an interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PathRow {
    pub(super) path: usize,
    pub(super) local: IpAddr,
    pub(super) remote: SocketAddr,
    /// Bytes of DATA chunks that were acknowledged.
    pub(super) delivered_bytes: u64,
    /// Bytes of DATA chunks declared lost.
    pub(super) lost_bytes: u64,
    pub(super) srtt_ms: Option<f64>,
    pub(super) cwnd_bytes: u64,
    pub(super) state: State,
}

/// Figures of all paths within an interval, as the sender observes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Interval {
    /// Seconds from the beginning of the test.
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    /// Set if the interval is left out of the figures.
    pub(super) omitted: bool,
    pub(super) paths: Vec<PathRow>,
    /// Transmissions of chunks after their first, on all paths.
    pub(super) retransmissions: u64,
}

impl Interval {
    pub(super) fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }

    pub(super) fn delivered_bytes(&self) -> u64 {
        self.paths.iter().map(|row| row.delivered_bytes).sum()
    }

    pub(super) fn lost_bytes(&self) -> u64 {
        self.paths.iter().map(|row| row.lost_bytes).sum()
    }
}

/// Counters at the latest report.
#[derive(Debug, Default)]
pub(super) struct Meter {
    at_s: f64,
    /// Delivered and lost bytes.
    paths: BTreeMap<PathId, (u64, u64)>,
    retransmissions: u64,
}

impl Meter {
    /// Returns the time of the latest report.
    pub(super) fn at_s(&self) -> f64 {
        self.at_s
    }

    /// Returns the figures since the latest report.
    pub(super) fn interval(&mut self, snapshot: &Snapshot, at_s: f64, omitted: bool) -> Interval {
        let paths = snapshot.paths.iter().map(|path| self.row(path)).collect();
        let retransmitted = snapshot.statistics.retransmissions;
        let retransmissions = retransmitted - std::mem::replace(&mut self.retransmissions, retransmitted);
        Interval {
            from_s: std::mem::replace(&mut self.at_s, at_s),
            to_s: at_s,
            omitted,
            paths,
            retransmissions,
        }
    }

    fn row(&mut self, path: &PathSnapshot) -> PathRow {
        let now = (path.delivered_bytes, path.lost_bytes);
        let (delivered, lost) = self.paths.insert(path.id, now).unwrap_or_default();
        PathRow {
            path: path.id.index() + 1,
            local: path.local,
            remote: path.remote,
            // A path that was removed and added again counts from zero.
            delivered_bytes: now.0.checked_sub(delivered).unwrap_or(now.0),
            lost_bytes: now.1.checked_sub(lost).unwrap_or(now.1),
            srtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            cwnd_bytes: path.cwnd_bytes,
            state: State::of(path.state),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_net::Limiter;

    use super::*;

    fn snapshot(delivered: [u64; 2], lost: u64, retransmissions: u64) -> Snapshot {
        let path = |index: usize| PathSnapshot {
            id: PathId::new(index),
            interface: 0,
            local: IpAddr::from([127, 0, 0, 1]),
            remote: SocketAddr::from(([127, 0, 0, 2], 9899)),
            state: PathState::Active,
            cost: anabranch_net::PathCost::Free,
            primary: index == 0,
            srtt: Some(Duration::from_micros(1500)),
            rto: Duration::from_secs(1),
            mtu_bytes: 1500,
            cwnd_bytes: 4404,
            in_flight_bytes: 0,
            sent_bytes: 0,
            lost_bytes: lost,
            delivered_bytes: delivered[index],
            received_bytes: 0,
            limiter: Limiter::Window,
            delivery_rate_bps: None,
            errors: 0,
        };
        let mut snapshot = Snapshot { paths: vec![path(0), path(1)], ..Snapshot::default() };
        snapshot.statistics.retransmissions = retransmissions;
        snapshot
    }

    #[test]
    fn interval_counts_bytes_since_the_previous_interval() {
        let mut meter = Meter::default();
        let first = meter.interval(&snapshot([1000, 500], 10, 1), 1.0, true);
        assert_eq!(
            (first.from_s, first.to_s, first.omitted, first.delivered_bytes()),
            (0.0, 1.0, true, 1500)
        );
        let second = meter.interval(&snapshot([1700, 500], 10, 4), 2.5, false);
        let carried: Vec<u64> = second.paths.iter().map(|row| row.delivered_bytes).collect();
        assert_eq!((carried, second.lost_bytes(), second.retransmissions), (vec![700, 0], 0, 3));
        assert_eq!((second.from_s, second.seconds(), second.paths[1].path), (1.0, 1.5, 2));
        assert_eq!((second.paths[0].srtt_ms, second.paths[0].state), (Some(1.5), State::Active));
    }

    #[test]
    fn recreated_path_counts_from_zero() {
        let mut meter = Meter::default();
        meter.interval(&snapshot([1000, 500], 10, 0), 1.0, false);
        assert_eq!(meter.interval(&snapshot([20, 500], 10, 0), 2.0, false).delivered_bytes(), 20);
    }
}
