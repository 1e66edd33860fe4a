//! Pairs of local addresses and addresses that a protected peer reports.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use anabranch_core::time::{Span, Time};
use anabranch_core::{Association, AssociationId, LocalEnd, PathAddress};

use crate::config::DEFAULT_UDP_PORT;
use crate::interface::LocalAddress;
use crate::reach::{Reach, best};

/// Time between two looks at routes. A peer that reports addresses all the time costs no more than that.
const LOOK_EVERY: Span = Span::from_millis(200);

/// Time after which a report has pairs offered again that did not answer: the peer's interface may have a carrier again.
const TRY_AGAIN_AFTER: Span = Span::from_secs(10);

/// Pairs that are offered in that time, at most. A peer that reports other addresses all the time gets no more.
const MOST_TRIED: usize = 64;

/// Pairs that were offered and did not answer.
#[derive(Debug)]
struct Tried {
    pairs: Vec<PathAddress>,
    since: Time,
}

/// Associations whose local addresses are to be paired with those that their peers report.
#[derive(Debug, Default)]
pub(crate) struct Pairing {
    waiting: BTreeSet<AssociationId>,
    /// No look at routes before this.
    not_before: Option<Time>,
    tried: BTreeMap<AssociationId, Tried>,
}

impl Pairing {
    /// Has an association's addresses paired, at once unless routes were read within the last [`LOOK_EVERY`].
    pub(crate) fn want(&mut self, now: Time, id: AssociationId) {
        self.not_before.get_or_insert(now);
        self.waiting.insert(id);
    }

    /// The peer has reported addresses.
    pub(crate) fn reported(&mut self, now: Time, id: AssociationId) {
        if let Some(tried) = self.tried.get_mut(&id)
            && now.since(tried.since) >= TRY_AGAIN_AFTER
        {
            *tried = Tried { pairs: Vec::new(), since: now };
        }
    }

    /// Pairs that did not answer may do so now.
    pub(crate) fn forget_tried(&mut self) {
        self.tried.clear();
    }

    /// Takes the associations to pair now; none before it is time.
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
        let tried = self.tried.entry(id).or_insert_with(|| Tried { pairs: Vec::new(), since: now });
        Offers::new(now, association, locals, &mut tried.pairs).make();
    }

    /// When there is something to do.
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

/// Addresses of the paths of an association.
pub(crate) fn path_addresses(association: &Association) -> impl Iterator<Item = PathAddress> + '_ {
    association.paths().iter().filter_map(|facts| association.path_address(facts.id))
}

/// One association while paths are offered to it.
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

    /// Offers a path to each reported address that has none, and from each local address that has none, where there is a route that
    /// was not tried. A pair in one network is preferred, then the address that fewest paths use.
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
