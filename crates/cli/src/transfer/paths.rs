//! Figures of a transfer's paths, over all its associations.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_net::interface::interface_name;
use anabranch_net::{Association, PathId, PathSnapshot, PathState};
use serde::Serialize;

use super::figures::{amount, rate};

const ACTIVE: &str = "active";
const POTENTIALLY_FAILED: &str = "potentially failed";

/// Figures of a path at one time.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathLine {
    local: IpAddr,
    /// Name of the interface that the path is bound to.
    interface: Option<String>,
    /// Set if another path has the same addresses.
    #[serde(skip)]
    is_ambiguous: bool,
    remote: SocketAddr,
    state: &'static str,
    /// User data sent since the previous call, in bytes per second.
    rate_bytes_per_s: f64,
    rtt_ms: Option<f64>,
    cwnd_bytes: u64,
    /// Lost share of the data sent since the association began.
    loss_percent: f64,
    sent_bytes: u64,
}

/// Amount that a path has carried.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PathVolume {
    local: IpAddr,
    /// Name of the interface that the path was bound to.
    interface: Option<String>,
    /// Set if another path has the same addresses.
    #[serde(skip)]
    is_ambiguous: bool,
    remote: SocketAddr,
    sent_bytes: u64,
    lost_bytes: u64,
}

/// Paths of the current association, and sums over earlier ones.
#[derive(Debug, Default)]
pub(super) struct Paths {
    association: Option<Association>,
    /// Bytes sent and lost, by local address, index of the interface, and remote address.
    before: BTreeMap<(IpAddr, u32, SocketAddr), (u64, u64)>,
    last: BTreeMap<PathId, u64>,
    /// Names of interfaces by index; `None` for an interface that has lost its name.
    interfaces: BTreeMap<u32, Option<String>>,
    looked: Option<Instant>,
}

impl Paths {
    /// Replaces the current association.
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

    /// Returns the current association.
    pub(super) fn association(&self) -> Option<&Association> {
        self.association.as_ref()
    }

    /// Returns the figures of the paths since the previous call.
    pub(super) async fn sample(&mut self) -> Vec<PathLine> {
        let Some(association) = self.association.clone() else { return Vec::new() };
        let paths = association.paths().await;
        // Paths of a closed association keep their last states.
        let is_over = association.is_closed();
        let now = Instant::now();
        let since = self.looked.replace(now).map(|looked| now - looked);
        let ends: Vec<_> = paths.iter().map(|path| (path.local, path.remote)).collect();
        paths
            .iter()
            .map(|path| {
                let is_ambiguous = appears_again(&ends, &(path.local, path.remote));
                PathLine { is_ambiguous, ..self.line(path, since, is_over) }
            })
            .collect()
    }

    #[allow(clippy::cast_precision_loss)]
    fn line(&mut self, path: &PathSnapshot, since: Option<Duration>, is_over: bool) -> PathLine {
        let before = self.last.insert(path.id, path.sent_bytes).unwrap_or(0);
        let new = path.sent_bytes.saturating_sub(before);
        PathLine {
            local: path.local,
            interface: self.interface(path.interface),
            is_ambiguous: false,
            remote: path.remote,
            state: if is_over { "closed" } else { state(path.state) },
            rate_bytes_per_s: since.map_or(0.0, |since| super::figures::per_second(new, since)),
            rtt_ms: path.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            cwnd_bytes: path.cwnd_bytes,
            loss_percent: path.lost_bytes as f64 * 100.0 / (path.sent_bytes as f64).max(1.0),
            sent_bytes: path.sent_bytes,
        }
    }

    /// Returns the name of an interface, or `None` for index 0, which is no interface.
    fn interface(&mut self, index: u32) -> Option<String> {
        let name = || if index == 0 { None } else { interface_name(index) };
        self.interfaces.entry(index).or_insert_with(name).clone()
    }

    /// Returns the amounts that each path has carried.
    pub(super) async fn carried(&mut self) -> Vec<PathVolume> {
        let mut sums = self.before.clone();
        if let Some(association) = &self.association {
            for path in association.paths().await {
                let sum = sums.entry((path.local, path.interface, path.remote)).or_default();
                *sum = (sum.0 + path.sent_bytes, sum.1 + path.lost_bytes);
            }
        }
        let ends: Vec<_> = sums.keys().map(|(local, _, remote)| (*local, *remote)).collect();
        sums.into_iter()
            .map(|((local, interface, remote), (sent_bytes, lost_bytes))| PathVolume {
                local,
                interface: self.interface(interface),
                is_ambiguous: appears_again(&ends, &(local, remote)),
                remote,
                sent_bytes,
                lost_bytes,
            })
            .collect()
    }
}

fn appears_again<T: PartialEq>(all: &[T], one: &T) -> bool {
    all.iter().filter(|other| *other == one).count() > 1
}

/// Returns both addresses, with the interface in the notation of RFC 4007 if the addresses are ambiguous.
fn ends(local: IpAddr, interface: Option<&str>, is_ambiguous: bool, remote: SocketAddr) -> String {
    match interface.filter(|_| is_ambiguous) {
        Some(interface) => format!("{local}%{interface} - {remote}"),
        None => format!("{local} - {remote}"),
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
        ends(self.local, self.interface.as_deref(), self.is_ambiguous, self.remote)
    }

    pub(super) fn is_active(&self) -> bool {
        self.state == ACTIVE
    }

    /// Returns the state in about as many columns as the other states.
    pub(super) fn state_text(&self) -> &'static str {
        if self.state == POTENTIALLY_FAILED { "pot. failed" } else { self.state }
    }

    /// Returns figures for people, the most important one first. A side that only receives has few, since it sends hardly any data.
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
            interface: None,
            is_ambiguous: false,
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

impl PathVolume {
    /// Returns a line for people.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn text(&self, all_bytes: u64) -> String {
        let share = self.sent_bytes as f64 * 100.0 / (all_bytes as f64).max(1.0);
        let ends = ends(self.local, self.interface.as_deref(), self.is_ambiguous, self.remote);
        let (sent, lost) = (amount(self.sent_bytes), amount(self.lost_bytes));
        format!("  {ends}  {sent} ({share:.0} %), {lost} lost")
    }

    pub(super) fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_is_shown_where_another_path_has_the_same_addresses() {
        let path = PathLine::sample("10.0.0.5", "198.51.100.1:9899", PathState::Active);
        let path = PathLine { interface: Some("w2".to_owned()), ..path };
        assert_eq!(path.addresses(), "10.0.0.5 - 198.51.100.1:9899");
        let path = PathLine { is_ambiguous: true, ..path };
        assert_eq!(path.addresses(), "10.0.0.5%w2 - 198.51.100.1:9899");
        assert!(appears_again(&[1, 2, 1], &1) && !appears_again(&[1, 2], &1));
    }
}
