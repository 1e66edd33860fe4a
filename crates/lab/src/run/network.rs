//! Links, cross traffic and routes of a scenario.

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    ConfigError, GilbertElliott, LinkChange, LinkConfig, LinkId, LossModel as SimLoss, LossPlace as SimPlace,
    LossTrace, QueueConfig, TrafficConfig, TrafficKind, World,
};

use crate::run::observer::address;
use crate::scenario::{
    Background, Direction, Duplex, Event, Flow, Loss, LossModel, LossPlace, OneWay, Queue, Scenario, Source,
};

/// One direction of a link: usually one link of the simulator, more if it loses packets in several ways.
type Chain = Vec<LinkId>;

/// The links of each path, forward and reverse.
pub(crate) struct Network {
    paths: Vec<[Chain; 2]>,
}

/// Lays all links of a scenario and starts the traffic on them.
pub(crate) fn lay(
    world: &mut World,
    scenario: &Scenario,
    in_service_counts: bool,
) -> Result<Network, ConfigError> {
    let flows: Vec<&str> = scenario.flows.iter().map(|f| f.name.as_str()).collect();
    let layer = Layer { in_service_counts, flows };
    let mut shared = Vec::new();
    for link in &scenario.links {
        shared.push(layer.duplex(world, &link.name, &link.duplex)?);
    }
    let mut paths = Vec::new();
    for path in &scenario.paths {
        let own = match &path.own {
            Some(duplex) => Some(layer.duplex(world, &path.name, duplex)?),
            None => None,
        };
        let mut forward: Chain = path.via.iter().flat_map(|&l| shared[l][0].clone()).collect();
        forward.extend(own.iter().flat_map(|o| o[0].clone()));
        // The way back passes the same links in the opposite order.
        let mut reverse: Chain = own.iter().flat_map(|o| o[1].clone()).collect();
        reverse.extend(path.via.iter().rev().flat_map(|&l| shared[l][1].clone()));
        paths.push([forward, reverse]);
    }
    Ok(Network { paths })
}

impl Network {
    /// Routes of a flow over its paths, both ways.
    pub(crate) fn route(&self, world: &mut World, index: usize, flow: &Flow) -> Result<(), ConfigError> {
        for &path in &flow.paths {
            let (left, right) = (address(index, path, 0), address(index, path, 1));
            world.add_route(left, right, &self.paths[path][0], Some(&flow.name))?;
            world.add_route(right, left, &self.paths[path][1], Some(&flow.name))?;
        }
        Ok(())
    }
}

struct Layer<'a> {
    in_service_counts: bool,
    flows: Vec<&'a str>,
}

impl Layer<'_> {
    fn duplex(&self, world: &mut World, name: &str, duplex: &Duplex) -> Result<[Chain; 2], ConfigError> {
        let forward = self.one_way(world, &format!("{name}/forward"), &duplex.forward)?;
        let reverse = self.one_way(world, &format!("{name}/reverse"), &duplex.reverse)?;
        let main = [forward.0, reverse.0];
        for direction in [Direction::Forward, Direction::Reverse] {
            let link = main[direction as usize];
            let events = duplex.events.iter().filter(|e| e.direction == direction);
            let schedule: Vec<_> = events.flat_map(|e| self.changes(e)).collect();
            if !schedule.is_empty() {
                world.add_schedule(link, schedule)?;
            }
        }
        for (index, background) in duplex.background.iter().enumerate() {
            let chain = [&forward.1, &reverse.1][background.direction as usize];
            self.traffic(world, &format!("{name}/background-{}", index + 1), background, chain)?;
        }
        Ok([forward.1, reverse.1])
    }

    /// The link itself, and the chain it stands in: further losses are links without length before or after it.
    fn one_way(&self, world: &mut World, name: &str, way: &OneWay) -> Result<(LinkId, Chain), ConfigError> {
        let mut losses = way.loss.iter();
        let own = losses.next();
        let mut main = LinkConfig::new(name, way.rate, way.delay, self.queue(way.queue));
        if let Some(loss) = own {
            main = main.with_loss(self.model(&loss.model), place(loss.place));
        }
        let (mut before, mut after) = (Chain::new(), Chain::new());
        for (index, loss) in losses.enumerate() {
            let extra = LinkConfig::new(
                format!("{name}/loss-{}", index + 2),
                anabranch_core::time::Rate::from_bps(u64::MAX / 2),
                anabranch_core::time::Span::ZERO,
                QueueConfig::unlimited(),
            )
            .with_loss(self.model(&loss.model), place(loss.place));
            let id = world.add_link(extra)?;
            match loss.place {
                LossPlace::BeforeQueue => before.push(id),
                LossPlace::AfterQueue => after.push(id),
            }
        }
        let id = world.add_link(main)?;
        before.push(id);
        before.extend(after);
        Ok((id, before))
    }

    fn queue(&self, queue: Queue) -> QueueConfig {
        let config = match queue {
            Queue::Packets(packets) => QueueConfig::packets(packets),
            Queue::Bytes(bytes) => QueueConfig::bytes(WireBytes::new(bytes)),
            Queue::Delay(span) => QueueConfig::time(span),
        };
        if self.in_service_counts { config.counting_in_service() } else { config }
    }

    fn model(&self, model: &LossModel) -> SimLoss {
        match model {
            LossModel::Bernoulli { rate } => SimLoss::Bernoulli(*rate),
            LossModel::GilbertElliott { p, r, loss_good, loss_bad } => {
                SimLoss::GilbertElliott(GilbertElliott {
                    to_bad: *p,
                    to_good: *r,
                    loss_in_good: *loss_good,
                    loss_in_bad: *loss_bad,
                })
            }
            LossModel::Trace { lost } => SimLoss::Trace(
                self.flows
                    .iter()
                    .fold(LossTrace::new(), |trace, flow| trace.lose(flow, lost.iter().copied())),
            ),
        }
    }

    fn changes(&self, event: &Event) -> Vec<(Time, LinkChange)> {
        let at = Time::ZERO + event.at;
        let mut changes = Vec::new();
        changes.extend(event.up.map(|up| (at, if up { LinkChange::Up } else { LinkChange::Down })));
        changes.extend(event.rate.map(|rate| (at, LinkChange::Rate(rate))));
        changes.extend(event.delay.map(|delay| (at, LinkChange::Delay(delay))));
        if let Some(losses) = &event.loss {
            let model = losses.first().map_or(SimLoss::None, |l: &Loss| self.model(&l.model));
            changes.push((at, LinkChange::Loss(model)));
        }
        changes
    }

    fn traffic(
        &self,
        world: &mut World,
        name: &str,
        background: &Background,
        chain: &[LinkId],
    ) -> Result<(), ConfigError> {
        for copy in 1..=background.count {
            let name = if background.count == 1 { name.to_owned() } else { format!("{name}/{copy}") };
            let (kind, fragment) = kind(&background.source);
            let mut config = TrafficConfig::new(name, kind, WireBytes::new(background.packet_bytes))
                .starting_at(Time::ZERO + background.start);
            if let Some(stop) = background.stop {
                config = config.stopping_at(Time::ZERO + stop);
            }
            if let Some(bytes) = fragment {
                config = config.with_fragment(WireBytes::new(bytes));
            }
            world.add_traffic(config, chain)?;
        }
        Ok(())
    }
}

fn kind(source: &Source) -> (TrafficKind, Option<u64>) {
    match *source {
        Source::Cbr { rate, jitter } => (TrafficKind::Cbr { rate, jitter }, None),
        Source::Poisson { rate } => (TrafficKind::Poisson { rate }, None),
        Source::Pareto { rate, burst, idle, shape, fragment_bytes } => {
            (TrafficKind::ParetoOnOff { rate, burst, idle, shape }, fragment_bytes)
        }
    }
}

fn place(place: LossPlace) -> SimPlace {
    match place {
        LossPlace::BeforeQueue => SimPlace::BeforeQueue,
        LossPlace::AfterQueue => SimPlace::AfterQueue,
    }
}
