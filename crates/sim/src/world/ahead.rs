//! A world whose links are computed ahead: departures and background traffic take no events.

use std::cmp::Ordering;
use std::num::NonZeroU64;

use anabranch_core::time::Time;

use super::{LinkEntry, World};
use crate::link::precedence;
use crate::packet::{Packet, PacketId};
use crate::route::{LinkId, Route, Sink};
use crate::world::Target;

/// What a world whose links are computed ahead keeps besides.
#[derive(Debug)]
pub(crate) struct AheadState {
    /// How many packets hosts have offered, and one more.
    offers: NonZeroU64,
    /// Links with an arrival at the present moment.
    tied: Vec<LinkId>,
    order_is_unknown: bool,
}

impl World {
    /// Computes the way of packets over links as they are offered, from now on, and says whether that can be: no event is handled for a
    /// departure, nor for background traffic, which takes most of the time of many runs. What hosts send and receive, and what links
    /// count, is the same to the nanosecond.
    ///
    /// It can be before the world has begun to run, if nothing changes links, delays are constant, losses strike before the queue,
    /// background traffic passes one link and draws its gaps at random, and neither a digest is taken nor a tap follows links. A tap is
    /// not told of background traffic that is dropped.
    ///
    /// Links are as [`World::link`] shows them after [`World::run_until`]; within, background traffic is counted late.
    ///
    /// Where two packets of hosts arrive in one nanosecond, the order in which they are handled is that of a world with events. Rarely
    /// it cannot be told, since packets of background traffic would have had to be compared: then [`World::order_is_unknown`], and
    /// who wants the same result has to run the world again with events.
    pub fn compute_ahead(&mut self) -> bool {
        let can = self.handled == 0
            && self.digest.is_none()
            && !self.tap_follows_links
            && self.schedules.is_empty()
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
        for (index, entry) in self.traffic.iter().enumerate() {
            self.events.cancel(entry.slot);
            let link = self.routes[entry.route.0 as usize].links[0];
            self.links[link.index()].background.push(index);
        }
    }

    /// Whether packets arrived in one nanosecond whose order with events [could not be told](Self::compute_ahead).
    pub fn order_is_unknown(&self) -> bool {
        self.ahead.as_ref().is_some_and(|state| state.order_is_unknown)
    }

    pub(crate) fn assert_not_ahead(&self) {
        assert!(self.ahead.is_none(), "a world whose links are computed ahead takes no more parts");
    }

    /// Offers a packet of a host, after all background traffic before it. What is due at this moment comes after hosts.
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
                    // A packet that is dropped is counted by the link, and nobody else asks for it.
                    let _dropped = link.offer_background(now, source, wire);
                }
                entry.next = entry.source.after(now);
                entry.sent_at = Some(now);
                if background.len() > 1 {
                    // It may be another's turn.
                    break;
                }
            }
        }
    }

    /// The source that sends next by `until`: of those of one moment the one whose event was scheduled first.
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

    /// Brings what links count up to date.
    pub(super) fn settle_links(&mut self) {
        if self.ahead.is_none() {
            return;
        }
        for index in 0..self.links.len() {
            self.offer_background(LinkId(index as u32), self.now);
            self.links[index].link.settle_ahead(self.now);
        }
    }

    /// Of the arrivals of this moment, of which that of `link` has come out of the queue of events, the one that is handled first.
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
