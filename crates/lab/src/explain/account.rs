//! Statistics of one sender: counts of its trace rows, and the time of each path by activity.

use crate::explain::chunks::Chunks;
use crate::explain::tally::Tally;
use anabranch_trace::Sender;

/// Reason that is reported for a path which the scheduler chose last, or never refused.
const NOT_CONSIDERED: &str = "not considered";
/// Reason that is reported for a path which the scheduler refused for its full window. The window has opened since, and no send
/// opportunity has occurred after that.
const SINCE_FULL: &str = "no opportunity since it was full";
const WINDOW_FULL: &str = "WindowFull";
const IN_FLIGHT_CAP: &str = "InFlightCap";
const PACED: &str = "Paced";
const ACTIVE: &str = "Active";

/// Activity of a path, or the reason for which it sends no data. Exactly one applies at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathActivity {
    OutOfService,
    Full,
    PeerWindow,
    NoData,
    LostWait,
    Paced,
    PassedOver,
}

/// Row of `FLOW-paths.csv`.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathRow<'a> {
    pub(super) path: usize,
    pub(super) state: &'a str,
    pub(super) cwnd: u64,
    pub(super) outstanding: u64,
    pub(super) lost_unsent: u64,
    pub(super) srtt_ms: Option<f64>,
    pub(super) queued: u64,
}

/// Row of `FLOW-decisions.csv` about the placement of chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacementRow<'a> {
    pub(super) decision: &'a str,
    /// `None` for a wait.
    pub(super) path: Option<usize>,
    pub(super) rule: &'a str,
    pub(super) figure: &'a str,
    pub(super) value: Option<f64>,
}

/// Key of a choice: decision, path and rule.
pub(super) type ChoiceKey = (String, Option<usize>, String);

/// Number of equal choices, and the values of the figure that decided them.
#[derive(Clone, Debug, Default)]
pub(super) struct ChoiceSum {
    pub(super) times: u64,
    pub(super) figure: String,
    /// Number of rows with the figure. Its sum, minimum and maximum follow.
    pub(super) values: u64,
    pub(super) sum: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

#[derive(Debug, Default)]
pub(super) struct PlacementSum {
    pub(super) decisions: u64,
    pub(super) choices: Tally<ChoiceKey, ChoiceSum>,
    /// Refusals by path and reason.
    pub(super) refused: Tally<(usize, String), u64>,
}

/// Sums of one path: times in nanoseconds, integrals of windows and bytes over nanoseconds, and counts.
#[derive(Debug, Default)]
pub(super) struct PathSums {
    pub(super) full: u64,
    pub(super) peer_window: u64,
    pub(super) no_data: u64,
    pub(super) lost_wait: u64,
    pub(super) paced: u64,
    pub(super) passed_over: Tally<String, u64>,
    pub(super) out_of_service: Tally<String, u64>,
    pub(super) in_service: u64,
    pub(super) cwnd: f64,
    pub(super) outstanding: f64,
    pub(super) unused: f64,
    pub(super) srtt: f64,
    pub(super) srtt_known: u64,
    pub(super) timeouts: u64,
    pub(super) timeout_wait: u64,
    /// Number of window reductions and removed bytes, by rule.
    pub(super) cuts: Tally<String, (u64, u64)>,
    /// Time, state and rule of each change.
    pub(super) states: Vec<(u64, String, String)>,
    pub(super) sent: (u64, u64),
    pub(super) received: (u64, u64),
    pub(super) duplicates: u64,
    pub(super) drops: crate::explain::Drops,
}

/// Current state of a path.
#[derive(Debug)]
struct CurrentState {
    state: String,
    cwnd: u64,
    outstanding: u64,
    lost_unsent: u64,
    srtt_ms: Option<f64>,
    /// Reason of the scheduler's latest refusal, or `None` if the scheduler has chosen the path since.
    refused: Option<String>,
    /// Time at which data was last sent or acknowledged on the path.
    moved: u64,
}

/// Key of retransmissions: cause, previous path and new path.
pub(super) type ResentKey = (String, usize, usize);

/// State of a sender at a given time.
#[derive(Debug)]
pub(super) struct Account {
    lost_counts: bool,
    /// Time at which the sender starts, in nanoseconds.
    pub(super) from: u64,
    now: u64,
    paths: Vec<CurrentState>,
    queued: u64,
    /// Set while the peer's window blocks data. Contains the path on which the missing chunk was sent, if it is known.
    blocked: Option<Option<usize>>,
    chunks: Chunks,
    causes: Vec<String>,
    pub(super) sums: Vec<PathSums>,
    pub(super) holes: Tally<Option<usize>, u64>,
    pub(super) closures: u64,
    pub(super) scheduling: PlacementSum,
    pub(super) rerouting: PlacementSum,
    /// Lost chunks by path, cause and rule.
    pub(super) losses: Tally<(usize, String, String), u64>,
    /// Number of retransmissions, and of the spurious ones among them.
    pub(super) resent: Tally<ResentKey, (u64, u64)>,
    pub(super) timeouts: u64,
    /// Abandoned messages by cause and rule: all, and those of which no data had been sent.
    pub(super) abandoned: Tally<(String, String), (u64, u64)>,
    /// Number of rows by decision, for decisions that this version does not know.
    pub(super) unknown: Tally<String, u64>,
}

impl PlacementSum {
    fn add(&mut self, row: PlacementRow<'_>) {
        let is = |(decision, path, rule): &ChoiceKey| {
            decision == row.decision && *path == row.path && rule == row.rule
        };
        let sum = self.choices.of(is, || (row.decision.to_owned(), row.path, row.rule.to_owned()));
        sum.times += 1;
        if let Some(value) = row.value {
            if sum.values == 0 {
                (sum.figure, sum.min, sum.max) = (row.figure.to_owned(), value, value);
            }
            sum.values += 1;
            sum.sum += value;
            sum.min = sum.min.min(value);
            sum.max = sum.max.max(value);
        }
    }

    fn refuse(&mut self, path: usize, reason: &str) {
        *self.refused.of(|(p, known)| *p == path && known == reason, || (path, reason.to_owned())) += 1;
    }
}

impl Account {
    pub(super) fn new(sender: &Sender) -> Self {
        let from = (sender.start_s * 1e9).round() as u64;
        let path = |_: &String| CurrentState {
            state: "Unconfirmed".to_owned(),
            cwnd: 0,
            outstanding: 0,
            lost_unsent: 0,
            srtt_ms: None,
            refused: None,
            moved: from,
        };
        Account {
            lost_counts: sender.lost_counts_until_resent,
            from,
            now: from,
            paths: sender.paths.iter().map(path).collect(),
            queued: 0,
            blocked: None,
            chunks: Chunks::default(),
            causes: Vec::new(),
            sums: sender.paths.iter().map(|_| PathSums::default()).collect(),
            holes: Tally::default(),
            closures: 0,
            scheduling: PlacementSum::default(),
            rerouting: PlacementSum::default(),
            losses: Tally::default(),
            resent: Tally::default(),
            timeouts: 0,
            abandoned: Tally::default(),
            unknown: Tally::default(),
        }
    }

    /// Adds the time until `until` to the current activity of each path.
    pub(super) fn pass(&mut self, until: u64) {
        let span = until.saturating_sub(self.now);
        if span == 0 {
            return;
        }
        self.now = until;
        if let Some(hole) = self.blocked {
            *self.holes.of(|known| *known == hole, || hole) += span;
        }
        let lost_waits = self.paths.iter().any(|path| path.lost_unsent > 0);
        for (path, sums) in self.paths.iter().zip(&mut self.sums) {
            let spends = spends(path, self.lost_counts, self.blocked.is_some(), self.queued, lost_waits);
            sums.add_time(path, spends, span);
        }
    }

    pub(super) fn path_row(&mut self, at: u64, row: &PathRow<'_>) {
        self.queued = row.queued;
        let path = &mut self.paths[row.path];
        if path.outstanding != row.outstanding {
            path.moved = at;
        }
        if path.state != row.state {
            row.state.clone_into(&mut path.state);
        }
        (path.cwnd, path.outstanding, path.lost_unsent) = (row.cwnd, row.outstanding, row.lost_unsent);
        path.srtt_ms = row.srtt_ms;
    }

    /// Records the path of new data, or a wait. `refused` are the refused paths with their reasons.
    pub(super) fn scheduled<'a>(
        &mut self,
        row: PlacementRow<'_>,
        refused: impl Iterator<Item = (usize, &'a str)>,
    ) {
        self.scheduling.decisions += 1;
        self.chosen(row);
        for (path, reason) in refused {
            self.scheduling.refuse(path, reason);
            let known = &mut self.paths[path].refused;
            if known.as_deref() != Some(reason) {
                *known = Some(reason.to_owned());
            }
        }
    }

    /// Records one of the paths that a decision about new data chose, or its wait.
    pub(super) fn chosen(&mut self, row: PlacementRow<'_>) {
        self.scheduling.add(row);
        if let Some(chosen) = row.path {
            self.paths[chosen].refused = None;
        }
    }

    /// Records the path of a retransmitted chunk, or a wait.
    pub(super) fn rerouted<'a>(
        &mut self,
        row: PlacementRow<'_>,
        refused: impl Iterator<Item = (usize, &'a str)>,
    ) {
        self.rerouting.decisions += 1;
        self.rerouting.add(row);
        for (path, reason) in refused {
            self.rerouting.refuse(path, reason);
        }
    }

    /// Records that only the peer's window blocks data. `hole` is the path on which the missing chunk was sent.
    pub(super) fn blocked(&mut self, hole: Option<usize>) {
        if self.blocked.replace(hole).is_none() {
            self.closures += 1;
        }
    }

    pub(super) fn unblocked(&mut self) {
        self.blocked = None;
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.is_some()
    }

    pub(super) fn window(&mut self, path: usize, rule: &str, before: u64, after: u64) {
        if after < before {
            let cut = self.sums[path].cuts.of(|known| known == rule, || rule.to_owned());
            cut.0 += 1;
            cut.1 += before - after;
        }
    }

    pub(super) fn lost(&mut self, path: usize, tsn: u32, cause: &str, rule: &str) {
        let is = |(p, known, by): &(usize, String, String)| *p == path && known == cause && by == rule;
        *self.losses.of(is, || (path, cause.to_owned(), rule.to_owned())) += 1;
        self.set_retransmission_cause(tsn, cause);
    }

    /// Records the cause of the chunk's next transmission.
    pub(super) fn set_retransmission_cause(&mut self, tsn: u32, cause: &str) {
        let at = self.causes.iter().position(|known| known == cause).unwrap_or_else(|| {
            self.causes.push(cause.to_owned());
            self.causes.len() - 1
        });
        self.chunks.send_again(tsn, at as u8);
    }

    pub(super) fn timed_out(&mut self, at: u64, path: Option<usize>) {
        self.timeouts += 1;
        if let Some(path) = path {
            self.sums[path].timeouts += 1;
            self.sums[path].timeout_wait += at - self.paths[path].moved.min(at);
            self.paths[path].moved = at;
        }
    }

    pub(super) fn state(&mut self, at: u64, path: usize, state: &str, rule: &str) {
        self.sums[path].states.push((at, state.to_owned(), rule.to_owned()));
    }

    /// Records an abandoned message. `sent` is `true` if a part of it had been sent.
    pub(super) fn abandoned(&mut self, cause: &str, rule: &str, sent: bool) {
        let is = |(known, by): &(String, String)| known == cause && by == rule;
        let sums = self.abandoned.of(is, || (cause.to_owned(), rule.to_owned()));
        *sums = (sums.0 + 1, sums.1 + u64::from(!sent));
    }

    pub(super) fn unknown(&mut self, decision: &str) {
        *self.unknown.of(|known| known == decision, || decision.to_owned()) += 1;
    }

    pub(super) fn sent(&mut self, at: u64, path: usize, tsn: u32, bytes: u64) {
        self.paths[path].moved = at;
        let sums = &mut self.sums[path].sent;
        *sums = (sums.0 + 1, sums.1 + bytes);
        let Some(repeat) = self.chunks.sent(tsn, path, at) else { return };
        let cause = match repeat.reason.and_then(|reason| self.causes.get(usize::from(reason))) {
            Some(cause) => cause,
            // Copies are sent together with the first transmission.
            None if repeat.at_once => "copies",
            None => "other",
        };
        let is = |(known, from, to): &ResentKey| known == cause && *from == repeat.from && *to == path;
        let sums = self.resent.of(is, || (cause.to_owned(), repeat.from, path));
        *sums = (sums.0 + 1, sums.1 + u64::from(repeat.spurious));
    }

    pub(super) fn received(&mut self, path: usize, tsn: u32, bytes: u64) {
        let sums = &mut self.sums[path];
        sums.received = (sums.received.0 + 1, sums.received.1 + bytes);
        sums.duplicates += u64::from(!self.chunks.arrived(tsn));
    }
}

/// Returns the first activity that applies. The order is that of the conditions for sending: an active path, room in its congestion
/// window, room in the peer's window, data, and the scheduler's choice.
fn spends(
    path: &CurrentState,
    lost_counts: bool,
    blocked: bool,
    queued: u64,
    lost_waits: bool,
) -> PathActivity {
    let counts = path.outstanding + if lost_counts { path.lost_unsent } else { 0 };
    if path.state != ACTIVE {
        PathActivity::OutOfService
    } else if counts >= path.cwnd {
        PathActivity::Full
    } else if blocked {
        PathActivity::PeerWindow
    } else if lost_waits {
        PathActivity::LostWait
    } else if queued == 0 {
        PathActivity::NoData
    } else {
        match path.refused.as_deref() {
            Some(PACED) => PathActivity::Paced,
            // The path has reached its in-flight cap instead of its window.
            Some(IN_FLIGHT_CAP) => PathActivity::Full,
            _ => PathActivity::PassedOver,
        }
    }
}

impl PathSums {
    fn add_time(&mut self, path: &CurrentState, spends: PathActivity, span: u64) {
        match spends {
            PathActivity::OutOfService => {
                *self.out_of_service.of(|known| *known == path.state, || path.state.clone()) += span;
            }
            PathActivity::Full => self.full += span,
            PathActivity::PeerWindow => self.peer_window += span,
            PathActivity::NoData => self.no_data += span,
            PathActivity::LostWait => self.lost_wait += span,
            PathActivity::Paced => self.paced += span,
            PathActivity::PassedOver => {
                let reason = match path.refused.as_deref() {
                    None => NOT_CONSIDERED,
                    Some(WINDOW_FULL) => SINCE_FULL,
                    Some(reason) => reason,
                };
                *self.passed_over.of(|known| known == reason, || reason.to_owned()) += span;
            }
        }
        if spends != PathActivity::OutOfService {
            let weight = span as f64;
            self.in_service += span;
            self.cwnd += path.cwnd as f64 * weight;
            self.outstanding += path.outstanding as f64 * weight;
            self.unused += path.cwnd.saturating_sub(path.outstanding) as f64 * weight;
        }
        if let Some(srtt) = path.srtt_ms {
            self.srtt += srtt * span as f64;
            self.srtt_known += span;
        }
    }
}
