//! Relays that the command line requests.

use anabranch_relay::{Direction, RelayConfig};
use anabranch_sim::{LinkChange, Seeds};

use super::RelayArguments;
use super::spec::LinkSpec;

/// Returns a relay for each `--listen`.
pub(super) fn configs(arguments: &RelayArguments) -> Result<Vec<RelayConfig>, String> {
    let count = arguments.listen.len();
    let to = spread("--to", &arguments.to, count)?;
    let from = spread("--from", &arguments.from, count)?;
    let both = links("--link", &arguments.link, count)?;
    let forward = links("--link-forward", &arguments.link_forward, count)?;
    let reverse = links("--link-reverse", &arguments.link_reverse, count)?;
    let mut configs = Vec::new();
    for (index, listen) in arguments.listen.iter().enumerate() {
        let link = |own: &[Option<LinkSpec>], direction: &str| {
            let spec = own[index].clone().or_else(|| both[index].clone());
            spec.map(|spec| spec.named(format!("{}/{direction}", name(index))))
                .ok_or_else(|| format!("there is no link for {direction}: give --link"))
        };
        let (there, back) = (link(&forward, "forward")?, link(&reverse, "reverse")?);
        let to = to[index].ok_or("--to is missing")?;
        let mut config = RelayConfig::new(*listen, to, there, back);
        config.from = from[index];
        config.seeds = Seeds::new(arguments.seed, 0);
        config.mtu_bytes = arguments.mtu;
        config.changes = changes(arguments);
        config.max_clients = usize::from(arguments.clients.get());
        config.idle = arguments.idle;
        configs.push(config);
    }
    Ok(configs)
}

/// Returns the name of a relay.
pub(super) fn name(index: usize) -> String {
    format!("relay-{}", index + 1)
}

fn changes(arguments: &RelayArguments) -> Vec<(Direction, anabranch_core::time::Time, LinkChange)> {
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

fn links(flag: &str, texts: &[String], count: usize) -> Result<Vec<Option<LinkSpec>>, String> {
    let read = |text: &String| LinkSpec::read(text).map_err(|error| format!("{flag} '{text}': {error}"));
    let specs = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    spread(flag, &specs, count)
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
