//! Packets per second through two links, from host to host and as background traffic.

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    Address, Datagram, Envelope, Host, LinkConfig, LinkId, LossModel, LossPlace, QueueConfig, Seeds,
    TrafficConfig, TrafficKind, World,
};
use divan::Bencher;
use divan::counter::ItemsCount;

const PACKETS: u64 = 100_000;
const GAP: Span = Span::from_micros(100);

fn main() {
    divan::main();
}

struct Sender {
    way: Envelope,
    next: Time,
    left: u64,
}

impl Host for Sender {
    fn handle_datagram(&mut self, _: Time, _: Datagram<'_>) {}
    fn handle_timeout(&mut self, _: Time) {}
    fn poll_transmit(&mut self, now: Time, buf: &mut PacketBuffer) -> Option<Envelope> {
        if self.next > now || self.left == 0 {
            return None;
        }
        self.left -= 1;
        self.next += GAP;
        buf.extend_from_slice(&[0; 1230]);
        Some(self.way)
    }
    fn poll_timeout(&mut self) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }
}

/// Adds two links of 110 Mbit/s with a little loss. Packets of 1250 bytes use nine tenths of their capacity.
fn links(world: &mut World) -> Vec<LinkId> {
    let make = |name: &&str| {
        let queue = QueueConfig::packets(100);
        let config = LinkConfig::new(*name, Rate::from_bps(110_000_000), Span::from_millis(20), queue);
        world.add_link(config.with_loss(LossModel::Bernoulli(0.001), LossPlace::BeforeQueue)).unwrap()
    };
    ["first", "second"].iter().map(make).collect()
}

fn end() -> Time {
    Time::ZERO + GAP.times(PACKETS)
}

#[divan::bench]
fn background(bencher: Bencher<'_, '_>) {
    let build = || {
        let mut world = World::new(Seeds::new(1, 0));
        let links = links(&mut world);
        let kind = TrafficKind::Cbr { rate: Rate::from_bps(100_000_000), jitter: 0.5 };
        world.add_traffic(TrafficConfig::new("cross", kind, WireBytes::new(1250)), &links).unwrap();
        world
    };
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(build)
        .bench_values(|mut world| world.run_until(end()));
}

#[divan::bench]
fn host_to_host(bencher: Bencher<'_, '_>) {
    let build = || {
        let mut world = World::new(Seeds::new(1, 0));
        let links = links(&mut world);
        let ends: [Address; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        for (end, left) in ends.into_iter().zip([PACKETS, 0]) {
            let way = Envelope::plain(ends[0], ends[1]);
            world.add_host(Box::new(Sender { way, next: Time::ZERO, left }), &[end]).unwrap();
        }
        world.add_route(ends[0], ends[1], &links, None).unwrap();
        world
    };
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(build)
        .bench_values(|mut world| world.run_until(end()));
}
