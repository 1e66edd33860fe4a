//! Rates and losses of paths, from the counters of successive reports.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use anabranch_observe::control::{AssociationState, Connections, Link, PathReport, Report, State, WaitsFor};
use anabranch_observe::{LinkCost, Usage};
use serde::Serialize;

/// Number of reports over which losses are counted.
const HISTORY: usize = 10;
/// Rate below which a path counts as idle: HEARTBEATs take less.
const IDLE_KBPS: f64 = 10.0;

/// State of a command, with rates since the previous report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Sample {
    pub(super) command: String,
    pub(super) pid: u32,
    pub(super) scheme: String,
    pub(super) associations: Vec<Association>,
    pub(super) more_associations: u64,
    pub(super) taken_out: Vec<Link>,
    /// Links with a cost or limit.
    pub(super) link_costs: Vec<LinkCost>,
    pub(super) connections: Option<Connections>,
    /// Links of the paths and those that were taken out, in the order in which they appeared.
    #[serde(skip)]
    pub(super) links: Vec<Link>,
}

/// State of an association.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Association {
    pub(super) endpoint: u64,
    pub(super) number: u64,
    pub(super) established: bool,
    pub(super) send_buffered_bytes: u64,
    pub(super) recv_buffered_bytes: u64,
    pub(super) copies_sent: u64,
    pub(super) paths: Vec<Path>,
}

/// State of a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Path {
    pub(super) path: String,
    pub(super) interface: Option<String>,
    pub(super) local: IpAddr,
    pub(super) interface_index: u32,
    pub(super) remote: SocketAddr,
    pub(super) state: State,
    pub(super) primary: bool,
    pub(super) cost: Usage,
    /// Rate of acknowledged bytes; `None` in the first report of the path.
    pub(super) up_kbps: Option<f64>,
    /// Rate of received bytes.
    pub(super) down_kbps: Option<f64>,
    pub(super) srtt_ms: Option<f64>,
    /// Lost share of the bytes sent over the last reports.
    pub(super) loss_percent: Option<f64>,
    pub(super) in_flight_bytes: u64,
    pub(super) cwnd_bytes: u64,
    /// Reason for which the path carries little or nothing.
    pub(super) why: Option<String>,
}

/// Latest reports of a command.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    reports: VecDeque<Report>,
    links: Vec<Link>,
}

impl Sampler {
    /// Adds a report. Returns its figures, with rates since the previous one.
    pub(super) fn sample(&mut self, report: Report) -> Sample {
        self.update_links(&report);
        let associations = report.associations.iter();
        let sample = Sample {
            command: report.command.clone(),
            pid: report.pid,
            scheme: report.scheme.clone(),
            associations: associations.map(|one| self.association(one, report.time_ms)).collect(),
            more_associations: report.more_associations,
            taken_out: report.taken_out.clone(),
            link_costs: report.links.clone(),
            connections: report.connections.clone(),
            links: self.links.clone(),
        };
        self.reports.truncate(HISTORY - 1);
        self.reports.push_front(report);
        sample
    }

    /// Keeps the order of known links, so that their numbers stay.
    fn update_links(&mut self, report: &Report) {
        let paths = report.associations.iter().flat_map(|association| &association.paths);
        let of_paths = paths.map(|path| Link {
            local: path.local,
            interface: path.interface.clone(),
            interface_index: path.interface_index,
        });
        let mut links: Vec<Link> = Vec::new();
        for link in of_paths.chain(report.taken_out.iter().cloned()) {
            if !links.contains(&link) {
                links.push(link);
            }
        }
        self.links.retain(|link| links.contains(link));
        links.retain(|link| !self.links.contains(link));
        self.links.append(&mut links);
    }

    fn association(&self, state: &AssociationState, time_ms: f64) -> Association {
        Association {
            endpoint: state.endpoint,
            number: state.number,
            established: state.established,
            send_buffered_bytes: state.send_buffered_bytes,
            recv_buffered_bytes: state.recv_buffered_bytes,
            copies_sent: state.copies_sent,
            paths: state.paths.iter().map(|path| self.path(state, path, time_ms)).collect(),
        }
    }

    fn path(&self, of: &AssociationState, path: &PathReport, time_ms: f64) -> Path {
        let mut earlier = self.reports.iter().map_while(|report| {
            let found = find(report, of, path)?;
            // A path that was added again counts from zero.
            (found.sent_bytes <= path.sent_bytes).then_some((report.time_ms, found))
        });
        let previous = earlier.next();
        let rate = |read: fn(&PathReport) -> u64| {
            let (before_ms, before) = previous?;
            let elapsed_ms = time_ms - before_ms;
            (elapsed_ms > 0.0).then(|| kbps(read(path).saturating_sub(read(before)), elapsed_ms))
        };
        let (up_kbps, down_kbps) = (rate(|path| path.delivered_bytes), rate(|path| path.received_bytes));
        let oldest = earlier.last().or(previous).map(|(_, oldest)| oldest);
        Path {
            path: path.path.clone(),
            interface: path.interface.clone(),
            local: path.local,
            interface_index: path.interface_index,
            remote: path.remote,
            state: path.state,
            primary: path.primary,
            cost: path.cost,
            up_kbps,
            down_kbps,
            srtt_ms: path.srtt_ms,
            loss_percent: oldest.and_then(|oldest| loss_percent(oldest, path)),
            in_flight_bytes: path.in_flight_bytes,
            cwnd_bytes: path.cwnd_bytes,
            why: why(of, path, up_kbps.zip(down_kbps)),
        }
    }
}

fn find<'a>(report: &'a Report, of: &AssociationState, path: &PathReport) -> Option<&'a PathReport> {
    let same = |one: &&AssociationState| (one.endpoint, one.number) == (of.endpoint, of.number);
    let paths = &report.associations.iter().find(same)?.paths;
    let key = |path: &PathReport| (path.path.clone(), path.local, path.interface_index, path.remote.ip());
    paths.iter().find(|one| key(one) == key(path))
}

#[allow(clippy::cast_precision_loss)]
fn kbps(bytes: u64, elapsed_ms: f64) -> f64 {
    bytes as f64 * 8.0 / elapsed_ms
}

#[allow(clippy::cast_precision_loss)]
fn loss_percent(oldest: &PathReport, path: &PathReport) -> Option<f64> {
    let sent = path.sent_bytes.saturating_sub(oldest.sent_bytes);
    let lost = path.lost_bytes.saturating_sub(oldest.lost_bytes);
    (sent > 0).then(|| (lost as f64 * 100.0 / sent as f64).min(100.0))
}

/// Returns `true` if a cheaper path works.
fn is_spared(of: &AssociationState, path: &PathReport) -> bool {
    let rank = |path: &PathReport| Usage::ALL.iter().position(|usage| *usage == path.cost);
    of.paths.iter().any(|other| other.state == State::Active && rank(other) < rank(path))
}

/// Returns the reason for which a path carries little or nothing.
fn why(of: &AssociationState, path: &PathReport, rates: Option<(f64, f64)>) -> Option<String> {
    let is_idle = rates.is_some_and(|(up, down)| up < IDLE_KBPS && down < IDLE_KBPS);
    let reason = match (path.state, path.waits_for) {
        (State::Unconfirmed, _) => "the peer has not answered on it yet".to_owned(),
        (State::PotentiallyFailed, _) => format!("suspected, errors in a row: {}", path.errors),
        (State::Inactive, _) => format!("failed, errors in a row: {}", path.errors),
        (State::Active, _) if !is_idle => return None,
        (State::Active, _) if is_spared(of, path) => match path.cost {
            Usage::Backup => "backup: another path works".to_owned(),
            cost => format!("{}: cheaper paths suffice", cost.name()),
        },
        (State::Active, _) if of.send_buffered_bytes == 0 => "no data to send".to_owned(),
        (State::Active, WaitsFor::Data) => "no data to send".to_owned(),
        (State::Active, WaitsFor::PeerWindow) => "the peer's receive window is full".to_owned(),
        (State::Active, WaitsFor::Scheduler) => "the scheduler prefers other paths".to_owned(),
        (State::Active, WaitsFor::Acknowledgements) => "waits for acknowledgements".to_owned(),
        (State::Active, WaitsFor::Pacing) => "waits for its paced rate".to_owned(),
    };
    Some(reason)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::top) fn path(number: u8) -> PathReport {
        PathReport {
            path: format!("path-{number}"),
            local: IpAddr::from([10, 0, number, 1]),
            interface: Some(format!("wlan{number}")),
            interface_index: number.into(),
            remote: SocketAddr::from(([192, 0, 2, number], 9899)),
            state: State::Active,
            primary: number == 1,
            cost: Usage::Free,
            waits_for: WaitsFor::Acknowledgements,
            srtt_ms: Some(20.5),
            cwnd_bytes: 60_000,
            in_flight_bytes: 30_000,
            sent_bytes: 0,
            delivered_bytes: 0,
            lost_bytes: 0,
            received_bytes: 0,
            errors: 0,
        }
    }

    pub(in crate::top) fn report(time_ms: f64, paths: Vec<PathReport>) -> Report {
        let association = AssociationState {
            endpoint: 1,
            number: 1,
            established: true,
            send_buffered_bytes: 1000,
            recv_buffered_bytes: 0,
            copies_sent: 0,
            paths,
        };
        Report {
            command: "forward".to_owned(),
            pid: 7,
            scheme: "braid".to_owned(),
            time_ms,
            associations: vec![association],
            ..Report::default()
        }
    }

    fn counted(sent: u64, lost: u64, received: u64) -> PathReport {
        let delivered_bytes = sent - lost;
        PathReport {
            sent_bytes: sent,
            lost_bytes: lost,
            delivered_bytes,
            received_bytes: received,
            ..path(1)
        }
    }

    fn first_path(sample: &Sample) -> &Path {
        &sample.associations[0].paths[0]
    }

    #[test]
    fn rates_are_those_since_the_previous_report() {
        let mut sampler = Sampler::default();
        let first = sampler.sample(report(0.0, vec![counted(1000, 0, 500)]));
        assert_eq!((first_path(&first).up_kbps, first_path(&first).loss_percent), (None, None));
        sampler.sample(report(1000.0, vec![counted(126_000, 0, 500)]));
        let third = sampler.sample(report(1500.0, vec![counted(251_000, 5_000, 63_000)]));
        assert_eq!(first_path(&third).up_kbps, Some(1920.0));
        assert_eq!(first_path(&third).down_kbps, Some(1000.0));
        assert_eq!(first_path(&third).loss_percent, Some(2.0));
        assert_eq!(first_path(&third).why, None);
    }

    #[test]
    fn path_that_was_added_again_has_no_rate_at_first() {
        let mut sampler = Sampler::default();
        sampler.sample(report(0.0, vec![counted(9000, 0, 9000)]));
        let again = sampler.sample(report(1000.0, vec![counted(10, 0, 10)]));
        assert_eq!(first_path(&again).up_kbps, None);
    }

    #[test]
    fn path_that_carries_nothing_has_a_reason() {
        let reason = |change: fn(&mut PathReport)| {
            let mut sampler = Sampler::default();
            let mut idle = path(1);
            change(&mut idle);
            sampler.sample(report(0.0, vec![idle.clone()]));
            first_path(&sampler.sample(report(1000.0, vec![idle]))).why.clone().unwrap_or_default()
        };
        assert!(reason(|_| {}).contains("acknowledgements"));
        assert!(reason(|path| path.waits_for = WaitsFor::Scheduler).contains("scheduler"));
        assert!(reason(|path| path.waits_for = WaitsFor::PeerWindow).contains("window"));
        assert!(reason(|path| path.state = State::Unconfirmed).contains("not answered"));
        let failed = reason(|path| (path.state, path.errors) = (State::Inactive, 6));
        assert_eq!(failed, "failed, errors in a row: 6");
    }

    #[test]
    fn idle_path_with_a_cost_names_it_while_a_cheaper_path_works() {
        let reason = |cost: Usage, state: State| {
            let paths = vec![PathReport { state, ..path(1) }, PathReport { cost, ..path(2) }];
            let mut sampler = Sampler::default();
            sampler.sample(report(0.0, paths.clone()));
            sampler.sample(report(1000.0, paths)).associations[0].paths[1].why.clone().unwrap_or_default()
        };
        assert_eq!(reason(Usage::Metered, State::Active), "metered: cheaper paths suffice");
        assert_eq!(reason(Usage::Backup, State::Active), "backup: another path works");
        assert_eq!(reason(Usage::Backup, State::Inactive), "waits for acknowledgements");
    }

    #[test]
    fn numbers_of_links_stay_when_one_is_taken_out() {
        let numbers =
            |sample: Sample| -> Vec<u32> { sample.links.iter().map(|link| link.interface_index).collect() };
        let mut sampler = Sampler::default();
        assert_eq!(numbers(sampler.sample(report(0.0, vec![path(1), path(2)]))), [1, 2]);
        let mut one = report(1000.0, vec![path(2)]);
        let first = path(1);
        one.taken_out.push(Link {
            local: first.local,
            interface: first.interface,
            interface_index: first.interface_index,
        });
        assert_eq!(numbers(sampler.sample(one)), [1, 2]);
        assert_eq!(numbers(sampler.sample(report(2000.0, vec![path(2), path(3)]))), [2, 3]);
    }
}
