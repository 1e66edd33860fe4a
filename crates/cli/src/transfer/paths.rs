//! What the paths of a transfer do and have done, over all its associations.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_net::{Association, PathId, PathSnapshot, PathState};
use serde::Serialize;

use super::figures::{amount, rate};

const ACTIVE: &str = "active";
const POTENTIALLY_FAILED: &str = "potentially failed";

/// The figures of a path at one moment.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathLine {
    local: IpAddr,
    remote: SocketAddr,
    state: &'static str,
    /// User data sent since the last look, in bytes per second.
    rate_bytes_per_s: f64,
    rtt_ms: Option<f64>,
    cwnd_bytes: u64,
    /// Of what was sent since the association began.
    loss_percent: f64,
    sent_bytes: u64,
}

/// What a path has carried.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Carried {
    local: IpAddr,
    remote: SocketAddr,
    sent_bytes: u64,
    lost_bytes: u64,
}

/// The paths of the association at hand, and sums over those before.
#[derive(Debug, Default)]
pub(super) struct Paths {
    association: Option<Association>,
    /// Bytes sent and lost, by local address, index of the interface, and remote address.
    before: BTreeMap<(IpAddr, u32, SocketAddr), (u64, u64)>,
    last: BTreeMap<PathId, u64>,
    looked: Option<Instant>,
}

impl Paths {
    /// Another association takes the place of the one at hand.
    pub(super) async fn switch(&mut self, association: Association) {
        if let Some(old) = self.association.replace(association) {
            for path in old.paths().await {
                let sum = self.before.entry((path.local, path.interface, path.remote)).or_default();
                *sum = (sum.0 + path.sent_bytes, sum.1 + path.lost_bytes);
            }
        }
        self.last.clear();
        self.looked = None;
    }

    /// The association at hand.
    pub(super) fn association(&self) -> Option<&Association> {
        self.association.as_ref()
    }

    /// How the paths do since this was asked last.
    pub(super) async fn look(&mut self) -> Vec<PathLine> {
        let Some(association) = self.association.clone() else { return Vec::new() };
        let paths = association.paths().await;
        // What is over keeps the states that its paths had at the end.
        let is_over = association.is_closed();
        let now = Instant::now();
        let since = self.looked.replace(now).map(|looked| now - looked);
        paths.iter().map(|path| self.line(path, since, is_over)).collect()
    }

    #[allow(clippy::cast_precision_loss)]
    fn line(&mut self, path: &PathSnapshot, since: Option<Duration>, is_over: bool) -> PathLine {
        let before = self.last.insert(path.id, path.sent_bytes).unwrap_or(0);
        let new = path.sent_bytes.saturating_sub(before);
        PathLine {
            local: path.local,
            remote: path.remote,
            state: if is_over { "closed" } else { state(path.state) },
            rate_bytes_per_s: since.map_or(0.0, |since| super::figures::per_second(new, since)),
            rtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            cwnd_bytes: path.cwnd_bytes,
            loss_percent: path.lost_bytes as f64 * 100.0 / (path.sent_bytes as f64).max(1.0),
            sent_bytes: path.sent_bytes,
        }
    }

    /// What each path carried.
    pub(super) async fn carried(&self) -> Vec<Carried> {
        let mut sums = self.before.clone();
        if let Some(association) = &self.association {
            for path in association.paths().await {
                let sum = sums.entry((path.local, path.interface, path.remote)).or_default();
                *sum = (sum.0 + path.sent_bytes, sum.1 + path.lost_bytes);
            }
        }
        sums.into_iter()
            .map(|((local, _, remote), (sent_bytes, lost_bytes))| Carried {
                local,
                remote,
                sent_bytes,
                lost_bytes,
            })
            .collect()
    }
}

fn state(state: PathState) -> &'static str {
    match state {
        PathState::Unconfirmed => "unconfirmed",
        PathState::Active => ACTIVE,
        PathState::PotentiallyFailed => POTENTIALLY_FAILED,
        PathState::Inactive => "inactive",
    }
}

impl PathLine {
    /// Returns both addresses.
    pub(super) fn addresses(&self) -> String {
        format!("{} - {}", self.local, self.remote)
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == ACTIVE
    }

    /// Returns the state in as few columns as the others take.
    pub(super) fn state_text(&self) -> &'static str {
        if self.state == POTENTIALLY_FAILED { "pot. failed" } else { self.state }
    }

    /// Returns figures for people, the most important one first. A side that only receives has few: it sends next to nothing.
    pub(super) fn figures(&self, sends: bool) -> Vec<String> {
        let rtt = self.rtt_ms.map_or("no RTT yet".to_owned(), |rtt| format!("RTT {rtt:.1} ms"));
        if !sends {
            return vec![rtt];
        }
        let loss = format!("loss {:.1} %", self.loss_percent);
        vec![rate(self.rate_bytes_per_s), rtt, loss, format!("cwnd {}", amount(self.cwnd_bytes))]
    }
}

#[cfg(test)]
impl PathLine {
    /// Returns a path with these addresses and this state, and with figures of usual length.
    pub(super) fn sample(local: &str, remote: &str, state: PathState) -> Self {
        PathLine {
            local: local.parse().expect("an address"),
            remote: remote.parse().expect("an address and a port"),
            state: self::state(state),
            rate_bytes_per_s: 24e6,
            rtt_ms: Some(123.4),
            cwnd_bytes: 640_000,
            loss_percent: 0.5,
            sent_bytes: 5,
        }
    }
}

impl Carried {
    /// One line for people.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn text(&self, all_bytes: u64) -> String {
        let share = self.sent_bytes as f64 * 100.0 / (all_bytes as f64).max(1.0);
        let Carried { local, remote, sent_bytes, lost_bytes } = self;
        format!("  {local} - {remote}  {} ({share:.0} %), {} lost", amount(*sent_bytes), amount(*lost_bytes))
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}
