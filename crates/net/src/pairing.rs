//! Pairing of local addresses with addresses that a protected peer reports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use anabranch_core::time::{Span, Time};
use anabranch_core::{Association, AssociationId, LocalEnd, PathAddress};

use crate::config::DEFAULT_UDP_PORT;
use crate::interface::LocalAddress;
use crate::reach::{Reach, best};

/// Minimum interval between two checks of routes, which bounds the cost of a peer that reports addresses continually.
const LOOK_EVERY: Span = Span::from_millis(200);

/// Time after which a report makes unanswered pairs eligible again: the peer's interface may have regained its carrier.
const TRY_AGAIN_AFTER: Span = Span::from_secs(10);

/// Maximum number of pairs offered in that time, which bounds a peer that continually reports other addresses.
const MOST_TRIED: usize = 64;

/// Offered pairs that did not answer.
#[derive(Debug)]
struct UnansweredPairs {
    pairs: Vec<PathAddress>,
    since: Time,
}

/// Associations whose local addresses are to be paired with the addresses reported by their peers.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    waiting: BTreeSet<AssociationId>,
    /// Earliest time of the next check of routes.
    not_before: Option<Time>,
    tried: BTreeMap<AssociationId, UnansweredPairs>,
}

impl Pairing {
    /// Requests pairing of an association's addresses, at once unless routes were read within the last [`LOOK_EVERY`].
    pub(crate) fn want(&mut self, now: Time, id: AssociationId) {
        self.not_before.get_or_insert(now);
        self.waiting.insert(id);
    }

    /// Handles a report of addresses by the peer.
    pub(crate) fn reported(&mut self, now: Time, id: AssociationId) {
        if let Some(tried) = self.tried.get_mut(&id)
            && now.since(tried.since) >= TRY_AGAIN_AFTER
        {
            *tried = UnansweredPairs { pairs: Vec::new(), since: now };
        }
    }

    /// Makes unanswered pairs eligible again.
    pub(crate) fn forget_tried(&mut self) {
        self.tried.clear();
    }

    /// Returns the associations to pair now; none before it is time.
    pub(crate) fn take_due(&mut self, now: Time) -> BTreeSet<AssociationId> {
        if self.deadline().is_none_or(|at| at > now) {
            return BTreeSet::new();
        }
        self.not_before = Some(now + LOOK_EVERY);
        std::mem::take(&mut self.waiting)
    }

    /// Offers paths to an association from these local addresses.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        id: AssociationId,
        association: &mut Association,
        locals: &[(LocalEnd, &LocalAddress)],
    ) {
        let tried = self.tried.entry(id).or_insert_with(|| UnansweredPairs { pairs: Vec::new(), since: now });
        Offers::new(now, association, locals, &mut tried.pairs).make();
    }

    /// Returns the time of the next due action.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.not_before.filter(|_| !self.waiting.is_empty())
    }

    pub(crate) fn forget(&mut self, id: AssociationId) {
        self.waiting.remove(&id);
        self.tried.remove(&id);
    }
}

fn path_between(local: LocalEnd, remote: SocketAddr) -> PathAddress {
    PathAddress::over_udp(local.address, remote).from_end(local)
}

/// Returns the addresses of an association's paths.
pub(crate) fn path_addresses(association: &Association) -> impl Iterator<Item = PathAddress> + '_ {
    association.paths().iter().filter_map(|facts| association.path_address(facts.id))
}

/// Association to which paths are being offered.
struct Offers<'a> {
    now: Time,
    association: &'a mut Association,
    locals: &'a [(LocalEnd, &'a LocalAddress)],
    reported: Vec<SocketAddr>,
    live: Vec<PathAddress>,
    tried: &'a mut Vec<PathAddress>,
}

impl<'a> Offers<'a> {
    fn new(
        now: Time,
        association: &'a mut Association,
        locals: &'a [(LocalEnd, &'a LocalAddress)],
        tried: &'a mut Vec<PathAddress>,
    ) -> Self {
        let socket_address = |(address, port): (IpAddr, Option<u16>)| {
            SocketAddr::new(address, port.unwrap_or(DEFAULT_UDP_PORT))
        };
        let reported = association.reported_addresses().map(socket_address).collect();
        let live = path_addresses(association).collect();
        Offers { now, association, locals, reported, live, tried }
    }

    /// Offers a path to each reported address without one, and from each local address without one, if there is an untried route.
    /// Prefers pairs in one network, then the address with the fewest paths.
    fn make(mut self) {
        for at in 0..self.reported.len() {
            let remote = self.reported[at];
            if self.live.iter().any(|path| path.remote == remote.ip()) {
                continue;
            }
            let uses = |end: LocalEnd| self.live.iter().filter(|path| path.local_end() == end).count();
            let reaches = self.locals.iter().map(|&local| (self.reach(local, remote), uses(local.0)));
            if let Some(local) = best(reaches) {
                self.add(path_between(self.locals[local].0, remote));
            }
        }
        for &local in self.locals {
            if self.live.iter().any(|path| path.local_end() == local.0) {
                continue;
            }
            let uses = |remote: IpAddr| self.live.iter().filter(|path| path.remote == remote).count();
            let reaches = self.reported.iter().map(|remote| (self.reach(local, *remote), uses(remote.ip())));
            if let Some(remote) = best(reaches) {
                self.add(path_between(local.0, self.reported[remote]));
            }
        }
    }

    fn reach(&self, (end, local): (LocalEnd, &LocalAddress), remote: SocketAddr) -> Option<Reach> {
        let fits = local.address.is_ipv4() == remote.is_ipv4();
        if !fits || self.tried.len() >= MOST_TRIED || self.tried.contains(&path_between(end, remote)) {
            return None;
        }
        Some(Reach::between(local, remote)).filter(|reach| *reach != Reach::Unknown)
    }

    fn add(&mut self, path: PathAddress) {
        self.tried.push(path);
        if self.association.offer_path(self.now, path).is_ok() {
            self.live.push(path);
        }
    }
}
