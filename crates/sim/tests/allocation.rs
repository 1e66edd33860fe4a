//! A running world allocates nothing.

use std::alloc::System;

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    Address, CoDel, Datagram, Discipline, Envelope, Faults, FqCoDel, Host, LinkConfig, LossModel, LossPlace,
    Pie, QueueConfig, Red, Seeds, TrafficConfig, TrafficKind, World,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Host that answers every packet with a packet, and also sends one every millisecond.
struct Echo {
    way: Envelope,
    owed: u32,
    next: Time,
}

impl Host for Echo {
    fn handle_datagram(&mut self, _: Time, datagram: Datagram<'_>) {
        self.owed += u32::from(datagram.payload.len() > 500);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.next = now + Span::from_millis(1);
        self.owed += 1;
    }

    fn poll_transmit(&mut self, _: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        self.owed = self.owed.checked_sub(1)?;
        buf.extend_from_slice(&[7; 1200][..if self.owed.is_multiple_of(2) { 1200 } else { 60 }]);
        Some(self.way)
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        Some(self.next)
    }
}

#[test]
fn no_allocation_per_packet() {
    assert_no_allocation(Discipline::DropTail);
    assert_no_allocation(Discipline::Red(Red::default()));
    assert_no_allocation(Discipline::CoDel(CoDel::default()));
    assert_no_allocation(Discipline::FqCoDel(FqCoDel::default()));
    assert_no_allocation(Discipline::Pie(Pie::default()));
}

fn assert_no_allocation(discipline: Discipline) {
    let mut world = World::new(Seeds::new(1, 0));
    let ends: [Address; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    let mut links = Vec::new();
    for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        let echo = Echo { way: Envelope::plain(from, to), owed: 0, next: Time::ZERO };
        world.add_host(Box::new(echo), &[from]).unwrap();
        let config = LinkConfig::new(
            from.to_string(),
            Rate::from_bps(20_000_000),
            Span::from_millis(5),
            QueueConfig::packets(20).with_discipline(discipline),
        );
        let faults =
            Faults { duplicate: 0.01, reorder: 0.01, extra_delay: Span::from_millis(1), corrupt: 0.01 };
        let lossy = config.with_loss(LossModel::Bernoulli(0.05), LossPlace::AfterQueue).with_faults(faults);
        links.push(world.add_link(lossy).unwrap());
    }
    for (link, (from, to)) in links.iter().zip([(0, 1), (1, 0)]) {
        world.add_route(ends[from], ends[to], &[*link], None).unwrap();
        let kind = TrafficKind::Cbr { rate: Rate::from_bps(15_000_000), jitter: 0.5 };
        let name = format!("cross-{from}");
        world.add_traffic(TrafficConfig::new(name, kind, WireBytes::new(1000)), &[*link]).unwrap();
    }
    world.enable_digest();
    world.run_until(Time::ZERO + Span::from_secs(20));

    let before = world.handled_events();
    let region = Region::new(GLOBAL);
    world.run_until(Time::ZERO + Span::from_secs(40));
    let change = region.change();
    assert!(world.handled_events() - before > 100_000);
    assert_eq!((change.allocations, change.reallocations), (0, 0), "{discipline:?}");
}
