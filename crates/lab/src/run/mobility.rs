//! Handovers of a scenario's paths, for the network and for the hosts that move.

use anabranch_core::time::Time;
use anabranch_core::{Association, AssociationId, Endpoint, PathAddress};
use anabranch_scenario::{Mover, Scenario};
use anabranch_sim::{Address, HandoverTimes, HostId, LinkId, Seeds, Station, World};

use crate::run::RunError;
use crate::run::address::{GENERATIONS, address, address_after};

/// Returns the side whose address changes.
fn side_of(mover: Mover) -> Option<usize> {
    match mover {
        Mover::Left => Some(0),
        Mover::Right => Some(1),
        Mover::Neither => None,
    }
}

/// Returns `true` if a path of the scenario changes addresses.
pub(crate) fn changes_addresses(scenario: &Scenario) -> bool {
    let movers = scenario.paths.iter().filter_map(|path| path.handover).map(|handover| handover.mover);
    movers.filter_map(side_of).next().is_some()
}

/// Schedules the handovers of all paths. `links` has the own links of each path, and `ends` the hosts of each flow.
pub(crate) fn add(
    world: &mut World,
    scenario: &Scenario,
    links: &[Vec<LinkId>],
    ends: &[[HostId; 2]],
) -> Result<(), RunError> {
    for (index, path) in scenario.paths.iter().enumerate() {
        let Some(handover) = path.handover else { continue };
        let times = times(scenario, world.seeds(), index);
        let station = |flow: usize, side: usize| Station {
            host: ends[flow][side],
            addresses: (0..GENERATIONS).map(|number| address_after(number, flow, index, side)).collect(),
        };
        let flows = scenario.flows.iter().enumerate().filter(|(_, flow)| flow.paths.contains(&index));
        let side = side_of(handover.mover);
        let stations = flows.filter_map(|(flow, _)| side.map(|side| station(flow, side))).collect();
        world.add_handovers(&links[index], times, stations)?;
    }
    Ok(())
}

/// Returns the handovers of a path, which are the same for the network and each host. The path has the key `handover`.
pub(crate) fn times(scenario: &Scenario, seeds: Seeds, path: usize) -> HandoverTimes {
    let path = &scenario.paths[path];
    let Some(handover) = path.handover else {
        unreachable!("the caller has checked that the path has handovers")
    };
    handover.times.times(seeds.stream(&["handover", &path.name]))
}

/// Addresses of an end that change in the course of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moves(Vec<MovingPath>);

#[derive(Clone, Debug)]
struct MovingPath {
    flow: usize,
    path: usize,
    side: usize,
    times: HandoverTimes,
    /// End of the next handover.
    next: Option<Time>,
    ended: usize,
}

impl MovingPath {
    fn local(&self) -> Address {
        address_after(self.ended, self.flow, self.path, self.side)
    }

    /// Moves to the address behind the next handover, and returns the earlier one.
    fn advance(&mut self) -> Address {
        let old = self.local();
        self.ended += 1;
        self.next = self.times.next().map(|(_, end)| end);
        old
    }
}

impl Moves {
    pub(crate) fn new(scenario: &Scenario, seeds: Seeds, flow: usize, side: usize) -> Self {
        let moves = |path: &&usize| {
            let handover = scenario.paths[**path].handover;
            handover.and_then(|handover| side_of(handover.mover)) == Some(side)
        };
        let moving = |&path: &usize| {
            let mut times = times(scenario, seeds, path);
            let next = times.next().map(|(_, end)| end);
            MovingPath { flow, path, side, times, next, ended: 0 }
        };
        Moves(scenario.flows[flow].paths.iter().filter(moves).map(moving).collect())
    }

    /// Returns the end of the next handover.
    pub(crate) fn due(&self) -> Option<Time> {
        self.0.iter().filter_map(|moving| moving.next).min()
    }

    /// Replaces the addresses of handovers that have ended, as a driver does when an interface gets another one.
    pub(crate) fn advance(&mut self, now: Time, endpoint: &mut Endpoint, id: Option<AssociationId>) {
        for moving in &mut self.0 {
            while moving.next.is_some_and(|end| end <= now) {
                let old = moving.advance();
                let remote = address(moving.flow, moving.path, 1 - moving.side);
                let path = PathAddress::from((moving.local(), remote));
                if let Some(association) = id.and_then(|id| endpoint.association_mut(id)) {
                    replace(now, association, old, path);
                }
            }
        }
    }
}

/// Replaces a local address. A closed association has none, and one whose peer does not know the address continues without it.
fn replace(now: Time, association: &mut Association, old: Address, path: PathAddress) {
    let _ = association.remove_local_address(now, old);
    let _ = association.restore_path(now, path);
}
