//! Links, cross traffic and routes of a scenario.

use anabranch_core::time::Time;
use anabranch_core::units::WireBytes;
use anabranch_scenario::{Background, BackgroundSource, Direction, Duplex, Flow, OneWay, Scenario};
use anabranch_sim::{
    ConfigError, LinkConfig, LinkId, LossPlace, QueueConfig, TrafficConfig, TrafficKind, World,
};

use crate::run::address::address;
use crate::run::cross::CrossTraffic;
use crate::run::lane::LaneMaker;
use crate::run::{RunError, ScenarioFiles};

/// One direction of a link: usually one link of the simulator, more if it loses packets in several ways.
type Chain = Vec<LinkId>;

/// Links of each path, forward and reverse.
pub(crate) struct Network {
    paths: Vec<[Chain; 2]>,
    /// Own links of each path, in both directions.
    pub(crate) own: Vec<Vec<LinkId>>,
    /// Cross traffic with congestion control.
    pub(crate) cross: Vec<CrossTraffic>,
}

/// Adds all links of a scenario to a world and starts the traffic on them.
pub(crate) fn lay(
    world: &mut World,
    scenario: &Scenario,
    in_service_counts: bool,
    files: &ScenarioFiles,
) -> Result<Network, RunError> {
    let maker = LaneMaker::new(scenario, in_service_counts, files);
    let mut layer = Layer { maker, cross: Vec::new() };
    let mut shared = Vec::new();
    for link in &scenario.links {
        shared.push(layer.duplex(world, &link.name, &link.duplex)?);
    }
    let (mut paths, mut own_links) = (Vec::new(), Vec::new());
    for path in &scenario.paths {
        let own = match &path.own {
            Some(duplex) => Some(layer.duplex(world, &path.name, duplex)?),
            None => None,
        };
        own_links.push(own.iter().flatten().flatten().copied().collect());
        let mut forward: Chain = path.via.iter().flat_map(|&l| shared[l][0].clone()).collect();
        forward.extend(own.iter().flat_map(|o| o[0].clone()));
        // The reverse direction passes the same links in the opposite order.
        let mut reverse: Chain = own.iter().flat_map(|o| o[1].clone()).collect();
        reverse.extend(path.via.iter().rev().flat_map(|&l| shared[l][1].clone()));
        paths.push([forward, reverse]);
    }
    Ok(Network { paths, own: own_links, cross: layer.cross })
}

impl Network {
    /// Adds the routes of a flow over its paths, in both directions.
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
    maker: LaneMaker<'a>,
    cross: Vec<CrossTraffic>,
}

impl Layer<'_> {
    fn duplex(&mut self, world: &mut World, name: &str, duplex: &Duplex) -> Result<[Chain; 2], RunError> {
        let forward = self.one_way(world, &format!("{name}/forward"), &duplex.forward)?;
        let reverse = self.one_way(world, &format!("{name}/reverse"), &duplex.reverse)?;
        let main = [forward.0, reverse.0];
        if let Some(access) = duplex.half_duplex {
            world.share_medium(main[0], main[1], access)?;
        }
        for direction in [Direction::Forward, Direction::Reverse] {
            let link = main[direction as usize];
            let schedule = self.maker.changes(duplex, direction);
            if !schedule.is_empty() {
                world.add_schedule(link, schedule)?;
            }
        }
        for (index, background) in duplex.background.iter().enumerate() {
            let name = format!("{name}/background-{}", index + 1);
            let mut chains = [&forward.1, &reverse.1];
            if background.direction == Direction::Reverse {
                chains.reverse();
            }
            match background.source {
                BackgroundSource::Packets { times, packet, fragment } => {
                    Self::traffic(world, &name, background, (times, packet, fragment), chains[0])?;
                }
                BackgroundSource::Reacting(reacting) => {
                    let (background, links) = (background.clone(), chains.map(Clone::clone));
                    self.cross.push(CrossTraffic { name, background, reacting, links });
                }
            }
        }
        Ok([forward.1, reverse.1])
    }

    /// Adds the link and returns it with its chain. Further losses are links without length before or after it.
    fn one_way(&self, world: &mut World, name: &str, way: &OneWay) -> Result<(LinkId, Chain), RunError> {
        let main = self.maker.link(name, way)?;
        let (mut before, mut after) = (Chain::new(), Chain::new());
        for (index, loss) in way.loss.iter().skip(1).enumerate() {
            let extra = LinkConfig::new(
                format!("{name}/loss-{}", index + 2),
                anabranch_core::time::Rate::from_bps(u64::MAX / 2),
                anabranch_core::time::Span::ZERO,
                QueueConfig::unlimited(),
            )
            .with_loss(self.maker.model(&loss.model), loss.place);
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

    fn traffic(
        world: &mut World,
        name: &str,
        background: &Background,
        (times, packet, fragment): (TrafficKind, WireBytes, Option<WireBytes>),
        chain: &[LinkId],
    ) -> Result<(), ConfigError> {
        for copy in 1..=background.count {
            let name = if background.count == 1 { name.to_owned() } else { format!("{name}/{copy}") };
            let mut config =
                TrafficConfig::new(name, times, packet).starting_at(Time::ZERO + background.start);
            if let Some(stop) = background.stop {
                config = config.stopping_at(Time::ZERO + stop);
            }
            if let Some(bytes) = fragment {
                config = config.with_fragment(bytes);
            }
            world.add_traffic(config, chain)?;
        }
        Ok(())
    }
}
