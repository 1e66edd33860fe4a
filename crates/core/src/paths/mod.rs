//! All state of the paths of an association, and the facts that policies see of it.
//!
//! [`Paths`] alone changes a [`Path`] or its [`PathFacts`]: other modules get shared references, and name the transition that they
//! want. Each file contains the transitions of one concern. A transition asks no policy and draws no random number.

mod cost;
mod heartbeat;
mod mtu;
mod mtu_search;
mod pacer;
mod pacing;
mod path;
mod pseudo;
mod recovery;
mod rtt;
mod sending;
mod timers;
mod validation;

use std::ops::Index;
use std::sync::Arc;

use crate::address::{LocalEnd, PathAddress};
use crate::path_cost::PathCost;
use crate::path_id::{MAX_PATHS, PathId, PathSet, PathState};
use crate::policy::{Estimates, Limiter, PathFacts, SendStamps, Window};
use crate::profile::Profile;
use crate::send::{PathBytes, Sender};
use crate::time::{Span, Time};
use crate::units::ChunkBytes;

pub(crate) use mtu::MtuStep;
pub(crate) use mtu_search::{LEAST_WAIT, MtuSearch, Sizes};
pub(crate) use path::{AddressValidation, Path, PathSource, PendingHeartbeat};
pub(crate) use timers::PathTimer;
pub(crate) use validation::REPLY_FACTOR;

/// Length of the SCTP common header.
const COMMON_HEADER_BYTES: usize = 12;

/// The paths of an association, by id. A removed path keeps its id until no transmission refers to it.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    profile: Arc<Profile>,
    /// All paths by id, at most [`MAX_PATHS`].
    paths: Vec<Path>,
    /// Facts of each path, by id.
    facts: Vec<PathFacts>,
    options: PathOptions,
    /// Length of the packets that every path carries.
    smallest_packet_bytes: usize,
    /// Costs of local ends that are not free.
    local_costs: Vec<(LocalEnd, PathCost)>,
    /// Paths whose HEARTBEAT was started and is not queued yet.
    unsent_heartbeats: PathSet,
    /// Set if the pacing of a path has changed, and the timer has not been adapted yet.
    pacing_changed: bool,
}

/// Part of the configuration that concerns paths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathOptions {
    /// Packet size before the first path is added.
    pub(crate) default_packet_bytes: usize,
    /// `true` if packet sizes are searched for.
    pub(crate) searches_mtu: bool,
    /// Time after which a path without any answer has failed.
    pub(crate) silence_limit: Option<Span>,
}

/// Path that is about to be added.
#[derive(Debug)]
pub(crate) struct NewPath {
    pub(crate) address: PathAddress,
    pub(crate) packet_bytes: usize,
    pub(crate) mtu: Option<MtuSearch>,
}

/// Access to paths by id, address and state.
impl Paths {
    pub(crate) const fn new(profile: Arc<Profile>, options: PathOptions) -> Self {
        Paths {
            profile,
            options,
            smallest_packet_bytes: options.default_packet_bytes,
            paths: Vec::new(),
            facts: Vec::new(),
            local_costs: Vec::new(),
            unsent_heartbeats: PathSet::EMPTY,
            pacing_changed: false,
        }
    }

    /// Returns the number of ids in use, including those of removed paths.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    /// Returns the ids of all paths, including removed ones.
    #[inline]
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = PathId> + use<> {
        (0..self.paths.len()).map(PathId::new)
    }

    /// Returns the ids of the paths that are not removed.
    #[inline]
    pub(crate) fn live(&self) -> impl Iterator<Item = PathId> + '_ {
        self.paths.iter().enumerate().filter(|(_, path)| !path.removed).map(|(index, _)| PathId::new(index))
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter()
    }

    /// Returns a path that is not removed.
    #[inline]
    pub(crate) fn get_live(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id.index()).filter(|path| !path.removed)
    }

    /// Returns the live path with these addresses.
    pub(crate) fn find(&self, address: PathAddress) -> Option<PathId> {
        self.paths.iter().position(|path| !path.removed && path.address == address).map(PathId::new)
    }

    /// Returns the facts of a path.
    #[inline]
    pub(crate) fn facts(&self, id: PathId) -> &PathFacts {
        &self.facts[id.index()]
    }

    /// Returns the facts of a path that a policy or the peer has named, if there is one.
    #[inline]
    pub(crate) fn get_facts(&self, id: PathId) -> Option<&PathFacts> {
        self.facts.get(id.index())
    }

    /// Returns the facts of all paths, by id.
    #[inline]
    pub(crate) fn all_facts(&self) -> &[PathFacts] {
        &self.facts
    }

    /// Returns the profile.
    #[inline]
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the part of the configuration that concerns paths.
    #[inline]
    pub(crate) fn options(&self) -> &PathOptions {
        &self.options
    }

    /// Returns `true` if a live path is active.
    pub(crate) fn any_active(&self) -> bool {
        self.live().any(|id| self.facts(id).is_active())
    }

    /// Returns `true` if a path is active and not removed.
    #[inline]
    pub(crate) fn is_in_service(&self, id: PathId) -> bool {
        self.get_facts(id).is_some_and(PathFacts::is_active) && !self[id].removed
    }

    /// Returns `true` if the peer has ever answered on a path.
    pub(crate) fn was_confirmed(&self, id: PathId) -> bool {
        let facts = self.facts(id);
        facts.state == PathState::Active || facts.rtt.smoothed.is_some()
    }
}

impl Index<PathId> for Paths {
    type Output = Path;

    #[inline]
    fn index(&self, id: PathId) -> &Path {
        &self.paths[id.index()]
    }
}

/// Addition and removal of paths.
impl Paths {
    /// Returns the id of the next path. The id of a removed path is reused if `is_named` returns `false` for it.
    pub(crate) fn free_id(&self, is_named: impl Fn(PathId) -> bool) -> Option<PathId> {
        let retired = self.ids().find(|&id| self[id].removed && !is_named(id));
        retired.or_else(|| (self.paths.len() < MAX_PATHS).then(|| PathId::new(self.paths.len())))
    }

    /// Adds a path under a [free id](Self::free_id). It is unconfirmed, and the primary one if no other is.
    pub(crate) fn add(&mut self, id: PathId, new: NewPath) {
        let NewPath { address, packet_bytes, mtu } = new;
        let primary = !self.live().any(|live| self.facts(live).primary);
        let facts = self.new_facts(id, largest_chunk(packet_bytes), primary, address.remote.is_ipv6());
        let path = Path { mtu, ..Path::new(address, packet_bytes) };
        if id.index() == self.paths.len() {
            // Most associations have one or two paths.
            self.paths.reserve_exact(1);
            self.facts.reserve_exact(1);
            self.paths.push(path);
            self.facts.push(facts);
        } else {
            self.paths[id.index()] = path;
            self.facts[id.index()] = facts;
        }
        self.adopt_own_cost(id);
        self.find_smallest_packet();
    }

    fn new_facts(&self, id: PathId, largest: ChunkBytes, primary: bool, ipv6: bool) -> PathFacts {
        PathFacts { rto: self.profile.rto_initial, primary, ipv6, ..PathFacts::new(id, largest) }
    }

    /// Resets a path to the state of a new one, because the peer has restarted. Its addresses stay validated.
    pub(crate) fn restart(&mut self, id: PathId, mtu: Option<MtuSearch>) {
        let facts = self.facts(id);
        let facts = self.new_facts(id, facts.largest_chunk, facts.primary, facts.ipv6);
        let old = &self[id];
        let (removed, validation, source) = (old.removed, old.validation, old.source);
        let fresh = Path::new(old.address, old.packet_bytes);
        self.paths[id.index()] = Path { removed, validation, source, mtu, ..fresh };
        self.facts[id.index()] = facts;
        self.adopt_own_cost(id);
        self.find_smallest_packet();
    }

    /// Removes a path and stops its timers. If it was the primary path, another path becomes the primary one.
    pub(crate) fn retire(&mut self, id: PathId) {
        let path = &mut self.paths[id.index()];
        path.removed = true;
        path.timers = path::PathTimers::default();
        path.pending_heartbeat = None;
        path.measuring = None;
        path.pending_mtu_probe = None;
        path.successor = None;
        for other in &mut self.paths {
            other.successor.take_if(|successor| *successor == id);
        }
        let next = self.live().next();
        if self.facts(id).primary
            && let Some(next) = next
        {
            self.set_primary(next);
        }
        self.find_smallest_packet();
    }

    pub(crate) fn set_primary(&mut self, id: PathId) {
        for facts in &mut self.facts {
            facts.primary = facts.id == id;
        }
    }

    /// Sets the state of a path. Returns the state before if it differs.
    pub(crate) fn set_state(&mut self, id: PathId, to: PathState, now: Time) -> Option<PathState> {
        let facts = &mut self.facts[id.index()];
        let from = std::mem::replace(&mut facts.state, to);
        if from == to {
            return None;
        }
        facts.potentially_failed_since = (to == PathState::PotentiallyFailed).then_some(now);
        self.find_smallest_packet();
        Some(from)
    }

    /// Counts an error (RFC 9260 section 8.2).
    pub(crate) fn count_error(&mut self, id: PathId) {
        self.facts[id.index()].error_count += 1;
    }

    pub(crate) fn clear_errors(&mut self, id: PathId) {
        self.facts[id.index()].error_count = 0;
    }
}

/// Facts that other modules provide.
impl Paths {
    /// Adopts the byte counts that have changed in the sender.
    #[inline]
    pub(crate) fn adopt_counts(&mut self, sender: &mut Sender) {
        for path in sender.take_changed().iter() {
            if let Some(facts) = self.facts.get_mut(path.index()) {
                let PathBytes { in_flight, lost_unsent, bound, held, sent, lost, delivered } =
                    *sender.bytes(path);
                facts.in_flight = in_flight;
                facts.lost_unsent = lost_unsent;
                facts.bound = bound;
                facts.held = held;
                facts.sent = sent;
                facts.lost = lost;
                facts.delivered = delivered;
            }
        }
    }

    /// Adopts the window of congestion control. Returns `true` if cwnd or ssthresh has changed.
    pub(crate) fn adopt_window(&mut self, id: PathId, window: Window) -> bool {
        let facts = &mut self.facts[id.index()];
        facts.partial_bytes_acked = window.partial_bytes_acked;
        let changed = facts.cwnd != window.cwnd || facts.ssthresh != window.ssthresh;
        facts.cwnd = window.cwnd;
        facts.ssthresh = window.ssthresh;
        changed
    }

    /// Adopts the figures of the estimator. Returns `true` if they withdraw a path that is active and was not withdrawn before.
    pub(crate) fn adopt_estimates(&mut self, id: PathId, estimates: Estimates) -> bool {
        let facts = &mut self.facts[id.index()];
        let withdraws = estimates.withdrawn && !facts.estimates.withdrawn;
        facts.estimates = estimates;
        withdraws && facts.is_active()
    }

    /// Returns `true` if the pacing of a path has changed since the last call.
    #[inline]
    pub(crate) fn take_pacing_changed(&mut self) -> bool {
        std::mem::take(&mut self.pacing_changed)
    }

    pub(crate) fn set_limiter(&mut self, id: PathId, limiter: Limiter) {
        self.facts[id.index()].limiter = limiter;
    }

    pub(crate) fn set_within_share(&mut self, id: PathId, within_share: bool) {
        self.facts[id.index()].within_share = within_share;
    }

    pub(crate) fn note_loss(&mut self, id: PathId, stamps: SendStamps) {
        self.facts[id.index()].latest_loss = Some(stamps);
    }
}

/// Returns the largest DATA chunk in a packet. Padding is to four bytes, so it is a multiple of four.
fn largest_chunk(packet_bytes: usize) -> ChunkBytes {
    ChunkBytes::new(((packet_bytes - COMMON_HEADER_BYTES) / 4 * 4) as u64)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::policy::Pacing;
    use crate::profile::RecoveryPoint;
    use crate::time::Rate;

    const OPTIONS: PathOptions =
        PathOptions { default_packet_bytes: 1_452, searches_mtu: true, silence_limit: None };

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn address(host: u8) -> PathAddress {
        PathAddress::from((IpAddr::from([192, 0, 2, 1]), IpAddr::from([198, 51, 100, host])))
    }

    /// Returns active paths with ids from 0 on.
    fn active(count: usize, profile: Profile) -> Paths {
        let mut paths = Paths::new(Arc::new(profile), OPTIONS);
        for host in 0..count as u8 {
            let id = paths.free_id(|_| true).expect("there is a free id");
            paths.add(id, NewPath { address: address(host), packet_bytes: 1_452, mtu: None });
            paths.set_state(id, PathState::Active, Time::ZERO);
        }
        paths
    }

    fn id(index: usize) -> PathId {
        PathId::new(index)
    }

    #[test]
    fn removed_path_passes_primary_on_and_frees_its_id_when_unnamed() {
        let mut paths = active(2, Profile::rfc9260());
        assert!(paths.facts(id(0)).primary && !paths.facts(id(1)).primary);
        paths.start_t3(id(0), at(0));
        paths.set_successor(id(1), id(0));
        paths.retire(id(0));
        assert!(!paths.facts(id(0)).primary && paths.facts(id(1)).primary);
        assert_eq!((paths.next_timer(), paths[id(1)].successor), (None, None));
        assert_eq!(paths.free_id(|named| named == id(0)), Some(id(2)), "a transmission names the id");
        assert_eq!(paths.free_id(|_| false), Some(id(0)));
        assert_eq!((paths.find(address(0)), paths.find(address(1))), (None, Some(id(1))));
    }

    #[test]
    fn ninth_path_finds_no_id() {
        assert_eq!(active(MAX_PATHS, Profile::rfc9260()).free_id(|_| true), None);
    }

    #[test]
    fn change_of_state_reports_former_state_and_start_of_failure() {
        let mut paths = active(1, Profile::rfc9260());
        assert_eq!(paths.set_state(id(0), PathState::Active, at(1)), None);
        assert_eq!(paths.set_state(id(0), PathState::PotentiallyFailed, at(2)), Some(PathState::Active));
        assert_eq!(paths.facts(id(0)).potentially_failed_since, Some(at(2)));
        paths.set_state(id(0), PathState::Active, at(3));
        assert_eq!(paths.facts(id(0)).potentially_failed_since, None);
    }

    #[test]
    fn recovery_point_outlives_recovery_and_a_lower_one_is_forgotten() {
        let rule = RecoveryPoint::HighestOutstandingUnlessLower;
        let mut paths = active(1, Profile { recovery_point: rule, ..Profile::rfc9260() });
        paths.begin_recovery(id(0), 20, Time::ZERO);
        assert_eq!(paths.facts(id(0)).recovery_point, Some(20));
        paths.end_recovery(id(0));
        assert_eq!((paths.facts(id(0)).recovery_point, paths[id(0)].recovery.point), (None, 20));
        paths.begin_recovery(id(0), 10, Time::ZERO);
        assert_eq!((paths.facts(id(0)).recovery_point, paths[id(0)].recovery.point), (Some(0), 0));
    }

    #[test]
    fn only_path_that_lost_something_may_exceed_its_window_once() {
        let mut paths = active(2, Profile::rfc9260());
        paths.begin_loss_event();
        paths.note_loss_in_event(id(1));
        paths.grant_exemptions(true);
        assert_eq!(paths.all_facts().iter().map(|f| f.exempt_packets).collect::<Vec<_>>(), [0, 1]);
        assert!(!paths.use_exemption(id(1)), "nothing is in flight, so the window was not exceeded");
        assert_eq!(paths.facts(id(1)).exempt_packets, 0);
        paths.begin_loss_event();
        paths.grant_exemptions(true);
        assert_eq!(paths.facts(id(1)).exempt_packets, 0);
    }

    #[test]
    fn burst_is_limited_until_opportunity_ends_and_never_on_paced_path() {
        let mut paths = active(1, Profile::rfc9260());
        let most = paths.profile().max_burst;
        paths.refresh_burst(id(0), true);
        (0..most).for_each(|_| paths.count_burst(id(0)));
        assert_eq!(paths.facts(id(0)).burst_left, 0);
        paths.end_opportunity(|_| false);
        assert_eq!(paths.facts(id(0)).burst_left, u32::MAX);
        paths.refresh_burst(id(0), true);
        assert_eq!(paths.facts(id(0)).burst_left, most);
        let pacing = Pacing { rate: Some(Rate::from_bps(1_000_000)), in_flight_cap: None };
        assert_eq!(paths.adopt_pacing(id(0), pacing, at(0)), Some(pacing));
        paths.refresh_burst(id(0), true);
        assert_eq!(paths.facts(id(0)).burst_left, u32::MAX);
        assert!(paths.take_pacing_changed() && !paths.take_pacing_changed());
    }

    #[test]
    fn listed_address_gets_small_packets_and_seen_address_gets_its_allowance() {
        let mut paths = active(1, Profile::rfc9260());
        paths.mark_listed(id(0));
        assert!(paths.admit_packet(id(0), 64, 64, true) && !paths.admit_packet(id(0), 65, 64, true));
        paths.note_received(id(0), 100, true);
        assert!(paths.admit_packet(id(0), 300, 64, true) && !paths.admit_packet(id(0), 1, 64, true));
        paths.trust(id(0));
        assert!(paths.admit_packet(id(0), 65_000, 64, true));
    }

    #[test]
    fn repeated_heartbeat_keeps_time_of_error_and_only_its_nonce_answers() {
        let mut paths = active(1, Profile::rfc9260());
        paths.begin_heartbeat(id(0), 1, at(0));
        let error_at = paths.next_timer();
        paths.repeat_heartbeat(id(0), 2, at(500));
        assert_eq!(paths.next_timer(), error_at);
        assert!(paths.answer_heartbeat(id(0), 1).is_none());
        assert_eq!(paths.answer_heartbeat(id(0), 2).map(|pending| pending.sent_at), Some(at(500)));
        assert_eq!(paths.next_timer(), None);
    }

    #[test]
    fn withdrawal_of_active_path_is_reported_once() {
        let mut paths = active(2, Profile::rfc9260());
        paths.set_state(id(1), PathState::Inactive, at(0));
        let withdrawn = Estimates { withdrawn: true, ..Estimates::default() };
        assert!(paths.adopt_estimates(id(0), withdrawn) && !paths.adopt_estimates(id(1), withdrawn));
        assert!(!paths.adopt_estimates(id(0), withdrawn));
    }

    #[test]
    fn idle_clock_stops_after_enough_idle_rtos() {
        let mut paths = active(1, Profile::rfc9260());
        paths.restart_idle_clock(id(0), at(0));
        let mut expiries = 0;
        while let Some(due) = paths.next_timer() {
            assert!(paths.take_due(id(0), PathTimer::Idle, due));
            paths.count_idle_rto(id(0), due);
            expiries += 1;
        }
        assert_eq!(expiries, 32);
    }

    #[test]
    fn pseudo_cumulative_tsn_advances_when_expected_chunk_is_acknowledged() {
        let mut paths = active(1, Profile::rfc9260());
        paths.find_pseudo(id(0), |again| (!again).then_some(7));
        assert!(!paths.advance_pseudo(id(0), 8) && paths.advance_pseudo(id(0), 7));
        paths.find_pseudo(id(0), |again| (!again).then_some(9));
        paths.stop_waiting_for(9);
        paths.find_pseudo(id(0), |again| (!again).then_some(11));
        assert!(paths.advance_pseudo(id(0), 11));
    }

    #[test]
    fn least_round_trip_time_leaves_the_window_with_its_sample() {
        let window = Span::from_secs(10);
        let mut paths = active(1, Profile { min_rtt_window: window, ..Profile::rfc9260() });
        paths.note_least_rtt(id(0), at(0), at(20));
        paths.note_least_rtt(id(0), at(1_000), at(1_050));
        assert_eq!(paths.facts(id(0)).rtt.recent_min, Some(Span::from_millis(20)));
        paths.note_least_rtt(id(0), at(20_000), at(20_030));
        assert_eq!(paths.facts(id(0)).rtt.recent_min, Some(Span::from_millis(30)));
    }
}
