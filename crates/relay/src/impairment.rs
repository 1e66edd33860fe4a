//! Links that packets pass through, without sockets and clock.

use anabranch_core::PacketBuffer;
use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;
use anabranch_sim::lane::Lane;
use anabranch_sim::{ConfigError, LinkChange, LinkConfig, Seeds};

use crate::totals::Totals;

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From a client to the target.
    Forward,
    /// From the target to a client.
    Reverse,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];

    pub(crate) const fn index(self) -> usize {
        match self {
            Direction::Forward => 0,
            Direction::Reverse => 1,
        }
    }
}

/// Packet that has arrived at the far end of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Direction of the packet.
    pub direction: Direction,
    /// Time of arrival.
    pub at: Time,
    /// Owner that was passed to [`Impairment::offer`].
    pub owner: u32,
}

/// Two links, one per direction, for packets of real bytes.
///
/// The result depends only on the configuration and the calls. Packets are treated exactly as by links with the same description,
/// names and seeds in a [`World`](anabranch_sim::World).
pub struct Impairment {
    lanes: [Lane; 2],
    overhead: WireBytes,
}

impl Impairment {
    /// Creates links for the two directions. `source` names the flow whose packets they lose, `overhead` is the size of the headers
    /// of each payload on a link, and `changes` are scheduled.
    ///
    /// # Errors
    /// Fails if a value is out of range, or if both links have the same name and would lose the same packets.
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

    /// Accepts a packet. Its delivery returns `owner`.
    pub fn offer(&mut self, direction: Direction, now: Time, owner: u32, payload: &[u8]) {
        let wire = self.overhead + WireBytes::new(payload.len() as u64);
        self.lanes[direction.index()].offer(now, wire, owner, payload);
    }

    /// Returns the earliest packet of both directions that has arrived by now, and replaces the content of `payload` with its
    /// bytes.
    pub fn poll_deliver(&mut self, now: Time, payload: &mut PacketBuffer) -> Option<Delivery> {
        let due = |direction: &Direction| Some((self.lanes[direction.index()].first_due(now)?, *direction));
        let (_, direction) = Direction::BOTH.iter().filter_map(due).min()?;
        let delivery = self.lanes[direction.index()].poll_deliver(now, payload)?;
        Some(Delivery { direction, at: delivery.at, owner: delivery.owner })
    }

    /// Returns the time before which no packet can arrive, or `None` if both links are empty.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.lanes.iter().filter_map(Lane::poll_timeout).min()
    }

    /// Changes the link of a direction now.
    ///
    /// # Errors
    /// Fails if the new value is out of range.
    pub fn change(
        &mut self,
        direction: Direction,
        now: Time,
        change: &LinkChange,
    ) -> Result<(), ConfigError> {
        self.lanes[direction.index()].change(now, change)
    }

    /// Returns the link of a direction, in its state at the latest call with a time.
    pub fn link(&self, direction: Direction) -> &anabranch_sim::Link {
        self.lanes[direction.index()].link()
    }

    /// Returns the counters of a direction.
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
    fn change_applies_to_one_direction() {
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
