//! Capacity of a path: the rate of its narrowest link over time.

use anabranch_scenario::{Direction, Duplex, Scenario};

/// Returns the bits that the named path could have carried between two times in nanoseconds, or `None` if there is no such path. A
/// link that is down carries nothing, and one with a policer at most the policer's rate. Other flows and cross traffic on the links
/// are not subtracted.
pub(super) fn bits(scenario: &Scenario, path: &str, reverse: bool, from: u64, until: u64) -> Option<f64> {
    let path = scenario.paths.iter().find(|p| p.name == path)?;
    let links: Vec<&Duplex> =
        path.via.iter().map(|&link| &scenario.links[link].duplex).chain(&path.own).collect();
    let direction = if reverse { Direction::Reverse } else { Direction::Forward };
    let events = links.iter().flat_map(|link| &link.events).filter(|event| event.direction == direction);
    let mut moments: Vec<u64> = events.map(|event| event.at.as_nanos()).collect();
    moments.extend([from, until]);
    moments.retain(|moment| (from..=until).contains(moment));
    moments.sort_unstable();
    let pieces = moments.windows(2).map(|piece| {
        let rate = links.iter().map(|link| rate_at(link, direction, piece[0])).min().unwrap_or(0);
        rate as f64 * (piece[1] - piece[0]) as f64 / 1e9
    });
    Some(pieces.sum())
}

/// Returns the bits per second from a time on.
fn rate_at(link: &Duplex, direction: Direction, at: u64) -> u64 {
    let way = match direction {
        Direction::Forward => &link.forward,
        Direction::Reverse => &link.reverse,
    };
    let (mut rate, mut up) = (way.rate.as_bps(), true);
    let past = link.events.iter().filter(|e| e.direction == direction && e.at.as_nanos() <= at);
    for event in past {
        rate = event.change.rate.map_or(rate, |rate| rate.as_bps());
        up = event.change.up.unwrap_or(up);
    }
    let policed = way.impairments.policer.map_or(u64::MAX, |policer| policer.rate.as_bps());
    if up { rate.min(policed) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_change_with_events_and_the_narrowest_link_counts() {
        let text = r#"
            run.duration = "10 s"
            [[link]]
            name = "shared"
            rate = "4 Mbit/s"
            delay = "1 ms"
            [[path]]
            name = "a"
            via = ["shared"]
            rate = "10 Mbit/s"
            delay = "1 ms"
            policer = { rate = "3 Mbit/s", burst = "16 KiB" }
            event = [{ at = "2 s", rate = "1 Mbit/s" }, { at = "5 s", up = false, direction = "forward" }, { at = "6 s", up = true, direction = "forward" }]
        "#;
        let scenario = Scenario::parse(text, "test", &[]).expect("a scenario");
        let second = 1_000_000_000;
        let mbit = |reverse, from, until| bits(&scenario, "a", reverse, from * second, until * second);
        // 1 s at 3, 3 s at 1, 1 s down, 4 s at 1 Mbit/s.
        assert_eq!(mbit(false, 1, 10), Some(10e6));
        // 2 s at 4, 8 s at 1 Mbit/s.
        assert_eq!(mbit(true, 0, 10), Some(16e6));
        assert_eq!(bits(&scenario, "b", false, 0, second), None);
    }
}
