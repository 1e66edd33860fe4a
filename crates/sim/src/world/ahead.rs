//! A world whose links are computed ahead: departures and background traffic need no events.

use std::cmp::Ordering;
use std::num::NonZeroU64;

use anabranch_core::time::Time;

use super::{LinkEntry, World};
use crate::link::precedence;
use crate::packet::{Packet, PacketId};
use crate::route::{LinkId, Route, Sink};
use crate::world::Target;

/// Additional state of a world whose links are computed ahead.
#[derive(Clone, Debug)]
pub(crate) struct AheadState {
    /// Number of packets that hosts have offered, plus one.
    offers: NonZeroU64,
    /// Links with an arrival at the current time.
    tied: Vec<LinkId>,
    order_is_unknown: bool,
}

impl World {
    /// Computes the times of packets on links when they are offered, from now on, and returns `true` if that is possible. No events
    /// are handled for departures and background traffic, which take most of the time of many runs. Packets that hosts send and
    /// receive, and the counters of links, are the same to the nanosecond.
    ///
    /// This computation is possible only before the world has begun to run. Links must not change, except for recorded delays and
    /// losses, delays must not be random, and losses must take place before the queue. Background traffic must pass one link and draw its gaps at random. There must be
    /// neither a digest nor a tap that follows links. A tap does not observe drops of background traffic.
    ///
    /// [`World::link`] shows the state after [`World::run_until`]; in between, background traffic is counted late.
    ///
    /// Packets of hosts that arrive in the same nanosecond are handled in the order of a world with events. In rare cases that
    /// order is unknown, since it depends on packets of background traffic. Then [`World::order_is_unknown`] returns `true`, and
    /// only a run with events gives the same result.
    pub fn compute_ahead(&mut self) -> bool {
        let can = self.handled == 0
            && self.digest.is_none()
            && !self.tap_follows_links
            && self.handovers.is_empty()
            && self.schedules.iter().all(|entry| self.link(entry.link).can_follow_ahead(&entry.schedule))
            && self.links.iter().all(|entry| entry.link.can_compute_ahead())
            && self.traffic.iter().all(|entry| {
                entry.source.draws_gaps() && self.routes[entry.route.0 as usize].links.len() == 1
            });
        if can {
            self.begin_ahead();
        }
        can
    }

    fn begin_ahead(&mut self) {
        self.ahead = Some(AheadState { offers: NonZeroU64::MIN, tied: Vec::new(), order_is_unknown: false });
        self.links.iter_mut().for_each(|entry| entry.link.begin_ahead());
        for entry in self.schedules.drain(..) {
            self.events.cancel(entry.slot);
            self.links[entry.link.index()].link.follow_ahead(entry.schedule);
        }
        for (index, entry) in self.traffic.iter().enumerate() {
            self.events.cancel(entry.slot);
            let link = self.routes[entry.route.0 as usize].links[0];
            self.links[link.index()].background.push(index);
        }
    }

    /// Returns `true` if packets arrived in the same nanosecond whose [order with events is unknown](Self::compute_ahead).
    pub fn order_is_unknown(&self) -> bool {
        self.ahead.as_ref().is_some_and(|state| state.order_is_unknown)
    }

    pub(crate) fn assert_not_ahead(&self) {
        assert!(self.ahead.is_none(), "a world whose links are computed ahead accepts no more parts");
    }

    /// Offers a packet of a host, after all background traffic before it. Background traffic of the same time comes after hosts.
    pub(super) fn enter_ahead(&mut self, link: LinkId, packet: PacketId) {
        if let Some(before) = self.now.as_nanos().checked_sub(1) {
            self.offer_background(link, Time::from_nanos(before));
        }
        let Some(state) = &mut self.ahead else { return };
        state.offers = state.offers.saturating_add(1);
        let order = state.offers;
        let &Packet { source, wire, .. } = self.pool.get(packet);
        let offered = self.links[link.index()].link.offer_of_host(self.now, source, wire, packet, order);
        match offered {
            Ok(None) => {}
            Ok(Some(time)) => self.events.schedule(self.links[link.index()].arrival, time),
            Err(drop) => self.discard(link, drop, packet),
        }
    }

    /// Sends the background traffic of a link up to and including `until`.
    fn offer_background(&mut self, link: LinkId, until: Time) {
        while let Some(index) = self.next_background(link, until) {
            let entry = &mut self.traffic[index];
            let Route { source, sink, .. } = self.routes[entry.route.0 as usize];
            debug_assert_eq!(sink, Sink::Nowhere);
            let LinkEntry { link, background, .. } = &mut self.links[link.index()];
            while let Some(now) = entry.next.filter(|next| *next <= until) {
                for wire in entry.source.sizes() {
                    // The link counts a dropped packet, and no other component uses it.
                    let _dropped = link.offer_background(now, source, wire);
                }
                entry.next = entry.source.after(now);
                entry.sent_at = Some(now);
                if background.len() > 1 {
                    // The next transmission may be that of another source.
                    break;
                }
            }
        }
    }

    /// Returns the source that sends next by `until`. Of those with the same time, the one whose event was scheduled first sends
    /// first.
    fn next_background(&self, link: LinkId, until: Time) -> Option<usize> {
        let due = |&index: &usize| {
            let entry = &self.traffic[index];
            entry.next.filter(|next| *next <= until).map(|next| (next, entry.sent_at, index))
        };
        match &self.links[link.index()].background[..] {
            [] => None,
            [only] => due(only).map(|_| *only),
            several => several.iter().filter_map(due).min().map(|(.., index)| index),
        }
    }

    /// Updates the counters of links.
    pub(super) fn settle_links(&mut self) {
        if self.ahead.is_none() {
            return;
        }
        for index in 0..self.links.len() {
            self.offer_background(LinkId(index as u32), self.now);
            self.links[index].link.settle_ahead(self.now);
        }
    }

    /// Returns the link whose arrival is handled first among those at the current time. The arrival of `link` was taken out of the
    /// queue of events.
    pub(super) fn first_of_tied(&mut self, link: LinkId) -> LinkId {
        if !matches!(self.events.peek_at(self.now), Some(Target::Arrival(_))) {
            return link;
        }
        let Some(mut state) = self.ahead.take() else { return link };
        let mut first = link;
        while let Some(Target::Arrival(other)) = self.events.peek_at(self.now) {
            self.events.pop_until(self.now);
            let order = self.precedence(first, other);
            state.order_is_unknown |= order.is_none();
            let later =
                if order == Some(Ordering::Greater) { std::mem::replace(&mut first, other) } else { other };
            state.tied.push(later);
        }
        for later in state.tied.drain(..) {
            self.events.schedule(self.links[later.index()].arrival, self.now);
        }
        self.ahead = Some(state);
        first
    }

    fn precedence(&self, one: LinkId, other: LinkId) -> Option<Ordering> {
        precedence(self.links[one.index()].link.ahead()?, self.links[other.index()].link.ahead()?)
    }
}
