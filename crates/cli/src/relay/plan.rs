//! Relays that the command line requests.

use std::net::SocketAddr;

use anabranch_core::time::Time;
use anabranch_lab::run::{PathLanes, ScenarioFiles, link_lanes};
use anabranch_relay::{Direction, RelayConfig};
use anabranch_scenario::{Link, units};
use anabranch_sim::{LinkChange, Seeds};

use super::RelayArguments;

/// Returns the name and the configuration of a relay for each `--listen`.
pub(super) fn configs(arguments: &RelayArguments) -> Result<(Vec<String>, Vec<RelayConfig>), String> {
    let count = arguments.listen.len();
    let to = spread("--to", &arguments.to, count)?;
    let from = spread("--from", &arguments.from, count)?;
    let texts = spread("--link", &arguments.link, count)?;
    let (mut names, mut configs) = (Vec::new(), Vec::new());
    for (index, listen) in arguments.listen.iter().enumerate() {
        let to = to[index].ok_or("--to is missing")?;
        let text = texts[index].as_deref().ok_or("--link is missing")?;
        let (name, lanes) = link(text, &format!("relay-{}", index + 1), arguments)?;
        if names.contains(&name) {
            return Err(format!("--link '{text}': two relays are named `{name}`; give each another name"));
        }
        let mut config = config(*listen, to, lanes);
        config.from = from[index];
        config.seeds = Seeds::new(arguments.seed, 0);
        config.mtu_bytes = arguments.mtu;
        config.changes.extend(cuts(arguments));
        config.max_clients = usize::from(arguments.clients.get());
        config.idle = arguments.idle;
        configs.push(config);
        names.push(name);
    }
    Ok((names, configs))
}

/// Returns the configuration of a relay over both directions of a path, with their changes.
pub(crate) fn config(listen: SocketAddr, to: SocketAddr, lanes: PathLanes) -> RelayConfig {
    let PathLanes { forward, reverse } = lanes;
    let mut config = RelayConfig::new(listen, to, forward.link, reverse.link);
    for (direction, changes) in [(Direction::Forward, forward.changes), (Direction::Reverse, reverse.changes)]
    {
        config.changes.extend(changes.into_iter().map(|(at, change)| (direction, at, change)));
    }
    config
}

/// Reads a link, and returns its name with its directions.
fn link(text: &str, default_name: &str, arguments: &RelayArguments) -> Result<(String, PathLanes), String> {
    let link = Link::parse(text, "--link", default_name).map_err(|error| error.to_string())?;
    let ways = [&link.duplex.forward, &link.duplex.reverse];
    if ways.iter().any(|way| way.outage_trace.is_some()) && !arguments.cut.is_empty() {
        return Err(format!("--link '{text}': `outage_trace` and --cut exclude each other; remove one"));
    }
    let mtu_bytes = arguments.mtu;
    if let Some(burst) = link.duplex.smallest_burst().filter(|burst| *burst < mtu_bytes) {
        let (burst, mtu) = (units::format_size(burst), units::format_size(mtu_bytes));
        return Err(format!(
            "--link '{text}': a `policer` with a burst of {burst} drops every packet as large as --mtu; give at least {mtu}"
        ));
    }
    let lanes = link_lanes(&link, RelayConfig::SOURCE, &ScenarioFiles::default())
        .map_err(|error| format!("--link '{text}': {error}"))?;
    Ok((link.name, lanes))
}

fn cuts(arguments: &RelayArguments) -> Vec<(Direction, Time, LinkChange)> {
    // Ordered by time, so that of two adjacent cuts the later one begins last. Overlapping cuts are merged.
    let mut cuts: Vec<_> = arguments.cut.iter().map(|cut| (cut.from, cut.to)).collect();
    cuts.sort_unstable();
    let mut merged: Vec<(_, _)> = Vec::new();
    for (from, to) in cuts {
        match merged.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => merged.push((from, to)),
        }
    }
    let both = |(from, to)| {
        Direction::BOTH
            .into_iter()
            .flat_map(move |way| [(way, from, LinkChange::Down), (way, to, LinkChange::Up)])
    };
    merged.into_iter().flat_map(both).collect()
}

/// Returns one value for each relay: the common one, or its own.
fn spread<T: Clone>(flag: &str, values: &[T], count: usize) -> Result<Vec<Option<T>>, String> {
    match values {
        [] => Ok(vec![None; count]),
        [one] => Ok(vec![Some(one.clone()); count]),
        all if all.len() == count => Ok(all.iter().cloned().map(Some).collect()),
        all => Err(format!(
            "{} times {flag} for {count} times --listen: give one for all, or one for each in their order",
            all.len()
        )),
    }
}
