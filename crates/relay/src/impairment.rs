//! What happens to packets, without sockets and clock.

use anabranch_core::PacketBuffer;
use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;
use anabranch_sim::lane::Lane;
use anabranch_sim::{ConfigError, LinkChange, LinkConfig, Seeds};

use crate::totals::Totals;

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the target.
    Forward,
    /// From the target to a client.
    Reverse,
}

impl Direction {
    /// Both of them.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    pub(crate) const fn index(self) -> usize {
        match self {
            Direction::Forward => 0,
            Direction::Reverse => 1,
        }
    }
}

/// A packet that has arrived at the far end of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The direction it went.
    pub direction: Direction,
    /// When it arrived.
    pub at: Time,
    /// What was said of it when it was offered.
    pub owner: u32,
}

/// Two links, one for each direction, that packets of real bytes go through.
///
/// It depends on nothing but its configuration and the calls made, and does with packets what links of the
/// same description, names and seeds in a [`World`](anabranch_sim::World) do.
pub struct Impairment {
    lanes: [Lane; 2],
    overhead: WireBytes,
}

impl Impairment {
    /// Links for the two directions. `source` is whose packets they lose; `overhead` are the headers that each
    /// payload has on a link; `changes` are those that come by themselves.
    ///
    /// # Errors
    /// If a figure is out of its range, or if both links have the same name and would lose the same packets.
    pub fn new(
        forward: LinkConfig,
        reverse: LinkConfig,
        source: &str,
        seeds: Seeds,
        overhead: WireBytes,
        changes: &[(Direction, Time, LinkChange)],
    ) -> Result<Self, ConfigError> {
        if forward.name == reverse.name {
            return Err(ConfigError::DuplicateName(forward.name));
        }
        let of = |wanted| {
            let own = changes.iter().filter(move |(direction, ..)| *direction == wanted);
            own.map(|(_, time, change)| (*time, change.clone())).collect()
        };
        let lanes = [
            Lane::new(forward, source, seeds, of(Direction::Forward))?,
            Lane::new(reverse, source, seeds, of(Direction::Reverse))?,
        ];
        Ok(Impairment { lanes, overhead })
    }

    /// Takes a packet in. `owner` is handed back when it is delivered.
    pub fn offer(&mut self, direction: Direction, now: Time, owner: u32, payload: &[u8]) {
        let wire = self.overhead + WireBytes::new(payload.len() as u64);
        self.lanes[direction.index()].offer(now, wire, owner, payload);
    }

    /// Takes the next packet out that has arrived by now, of both directions the earlier one, and puts its bytes
    /// in place of what is in `payload`.
    pub fn poll_deliver(&mut self, now: Time, payload: &mut PacketBuffer) -> Option<Delivery> {
        let due = |direction: &Direction| Some((self.lanes[direction.index()].first_due(now)?, *direction));
        let (_, direction) = Direction::BOTH.iter().filter_map(due).min()?;
        let delivery = self.lanes[direction.index()].poll_deliver(now, payload)?;
        Some(Delivery { direction, at: delivery.at, owner: delivery.owner })
    }

    /// The moment before which nothing can arrive; none if both links are empty.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.lanes.iter().filter_map(Lane::poll_timeout).min()
    }

    /// Changes the link of a direction now.
    ///
    /// # Errors
    /// If the new value is out of its range.
    pub fn change(
        &mut self,
        direction: Direction,
        now: Time,
        change: &LinkChange,
    ) -> Result<(), ConfigError> {
        self.lanes[direction.index()].change(now, change)
    }

    /// The link of a direction as it was when the impairment was last told the time.
    pub fn link(&self, direction: Direction) -> &anabranch_sim::Link {
        self.lanes[direction.index()].link()
    }

    /// What became of the packets of a direction.
    pub fn totals(&self, direction: Direction) -> Totals {
        let lane = &self.lanes[direction.index()];
        Totals::of_link(lane.counters(), lane.packets_on_the_way(), self.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::time::{Rate, Span};
    use anabranch_sim::QueueConfig;

    const OVERHEAD: WireBytes = WireBytes::new(28);

    fn link(name: &str) -> LinkConfig {
        LinkConfig::new(name, Rate::from_bps(8_000_000), Span::from_millis(5), QueueConfig::packets(10))
    }

    fn impairment(changes: &[(Direction, Time, LinkChange)]) -> Impairment {
        let (forward, reverse) = (link("there"), link("back"));
        let made = Impairment::new(forward, reverse, "flow", Seeds::new(1, 0), OVERHEAD, changes);
        made.expect("valid links")
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    #[test]
    fn headers_count_on_the_link_and_not_in_the_payload() {
        let mut impairment = impairment(&[]);
        impairment.offer(Direction::Forward, Time::ZERO, 3, &[7; 972]);
        // 1000 bytes take 1 ms at 8 Mbit/s.
        assert_eq!(impairment.poll_timeout(), Some(at(6000)));
        let mut payload = PacketBuffer::new();
        let delivery = impairment.poll_deliver(at(9000), &mut payload);
        assert_eq!(delivery, Some(Delivery { direction: Direction::Forward, at: at(6000), owner: 3 }));
        let delivered = impairment.totals(Direction::Forward).delivered;
        assert_eq!((payload.len(), delivered.bytes, delivered.wire), (972, 972, WireBytes::new(1000)));
    }

    #[test]
    fn directions_do_not_disturb_each_other_and_come_out_by_time() {
        let mut impairment = impairment(&[]);
        impairment.offer(Direction::Forward, Time::ZERO, 1, &[0; 1972]);
        impairment.offer(Direction::Reverse, Time::ZERO, 2, &[0; 972]);
        impairment.offer(Direction::Reverse, at(100), 3, &[0; 1972]);
        let mut payload = PacketBuffer::new();
        let order: Vec<_> = std::iter::from_fn(|| impairment.poll_deliver(at(50_000), &mut payload))
            .map(|delivery| (delivery.at, delivery.owner))
            .collect();
        assert_eq!(order, [(at(6000), 2), (at(7000), 1), (at(8000), 3)]);
    }

    #[test]
    fn changes_are_of_one_direction() {
        let mut impairment = impairment(&[(Direction::Forward, at(1), LinkChange::Down)]);
        for direction in Direction::BOTH {
            impairment.offer(direction, at(2), 0, &[]);
        }
        assert_eq!(impairment.totals(Direction::Forward).outage.packets, 1);
        assert_eq!(impairment.totals(Direction::Reverse).on_the_way, 1);
        impairment.change(Direction::Forward, at(3), &LinkChange::Up).expect("a valid change");
        assert!(impairment.link(Direction::Forward).is_up());
    }

    #[test]
    fn two_links_of_one_name_are_refused() {
        let made = Impairment::new(link("a"), link("a"), "flow", Seeds::new(1, 0), OVERHEAD, &[]);
        assert_eq!(made.err(), Some(ConfigError::DuplicateName("a".to_owned())));
    }
}
