//! Policer, jitter and aggregation of a link on the command line, with the words and limits of scenario files:
//! `policer=1.5Mbit/30kB`, `jitter=5ms`, `aggregation=5ms/32`.

use anabranch_core::time::Span;
use anabranch_core::units::WireBytes;
use anabranch_scenario::units;
use anabranch_sim::{Aggregation, Jitter, JitterDistribution, JitterOrder, Policer};

use super::rate::read_rate;
use crate::quantity;

/// Smallest burst: a full packet. With less, large packets would never pass.
const LEAST_BURST_BYTES: u64 = 1500;
const LONGEST: Span = Span::from_secs(3600);
const MOST_PACKETS: u64 = 1_000_000;

/// Reads a policer: a rate and a burst, such as `1.5Mbit/30kB`.
pub(super) fn read_policer(text: &str) -> Result<Policer, String> {
    // The rate may contain a slash itself: `1.5Mbit/s/30kB`.
    let Some((rate, burst)) = text.rsplit_once('/') else {
        return Err(format!("`policer`: expected a rate and a burst such as `1.5Mbit/30kB`, found `{text}`"));
    };
    let burst = quantity::read_size(burst.trim()).map_err(|error| format!("`policer`: {error}"))?;
    if burst < LEAST_BURST_BYTES {
        return Err(format!(
            "`policer`: a burst of {burst} B lets no full packet through; give at least 1500 B"
        ));
    }
    Ok(Policer { rate: read_rate("policer", rate.trim())?, burst: WireBytes::new(burst) })
}

/// Reads jitter: the maximum addition to the delay, such as `5ms`, or `normal(mean=5ms,deviation=2ms)`. A suffix `/free` lets
/// packets overtake each other.
pub(super) fn read_jitter(text: &str) -> Result<Jitter, String> {
    let (text, order) = match text.rsplit_once('/') {
        Some((text, "free")) => (text.trim_end(), JitterOrder::Free),
        Some((text, "kept")) => (text.trim_end(), JitterOrder::Kept),
        Some((_, word)) => {
            return Err(format!("`jitter`: expected `kept` or `free` after the stroke, found `{word}`"));
        }
        None => (text, JitterOrder::Kept),
    };
    let normal = text.strip_prefix("normal(").and_then(|inside| inside.strip_suffix(')'));
    let distribution = match normal {
        Some(inside) => read_normal(inside)?,
        None => JitterDistribution::Uniform(read_time("jitter", text)?),
    };
    Ok(Jitter { distribution, order })
}

fn read_normal(inside: &str) -> Result<JitterDistribution, String> {
    let (mut mean, mut deviation) = (None, None);
    for item in inside.split(',') {
        let place = match item.split_once('=').map(|(key, _)| key.trim()) {
            Some("mean") => &mut mean,
            Some("deviation") => &mut deviation,
            _ => {
                return Err(format!("`jitter`: expected `mean` and `deviation` of `normal`, found `{item}`"));
            }
        };
        let value = item.split_once('=').map_or("", |(_, value)| value.trim());
        if place.replace(value).is_some() {
            return Err(format!("`jitter`: `{}` comes twice: leave one of them out", item.trim()));
        }
    }
    let (Some(mean), Some(deviation)) = (mean, deviation) else {
        return Err("`jitter`: `normal` needs both, as in `normal(mean=5ms,deviation=2ms)`".to_owned());
    };
    let mean = read_time("jitter", mean)?;
    let deviation = units::parse_span(deviation).map_err(|error| format!("`jitter`: {error}"))?;
    if deviation > mean {
        return Err(
            "`jitter`: a deviation above the mean cuts most delays off; give at most the mean".to_owned()
        );
    }
    Ok(JitterDistribution::Normal { mean, deviation })
}

/// Reads an aggregation: the waiting time of a batch's first packet and the maximum number of packets of a batch, such as `5ms` or
/// `5ms/32`.
pub(super) fn read_aggregation(text: &str) -> Result<Aggregation, String> {
    let (period, packets) = match text.split_once('/') {
        Some((period, packets)) => (period.trim(), Some(packets.trim())),
        None => (text, None),
    };
    let count = |packets: &str| match packets.parse::<u64>() {
        Ok(number @ 1..=MOST_PACKETS) => Ok(number),
        _ => {
            Err(format!("`aggregation`: expected 1 to {MOST_PACKETS} packets of a batch, found `{packets}`"))
        }
    };
    let most_packets = packets.map(count).transpose()?;
    Ok(Aggregation { period: read_time("aggregation", period)?, most_packets })
}

/// Reads a time above zero, of at most an hour.
fn read_time(key: &str, text: &str) -> Result<Span, String> {
    let time = units::parse_span(text).map_err(|error| format!("`{key}`: {error}"))?;
    if time == Span::ZERO || time > LONGEST {
        return Err(format!(
            "`{key}`: expected a time above 0 and 1 h at most, such as `5ms`, found `{text}`"
        ));
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::time::Rate;

    #[test]
    fn each_is_written_as_it_is_meant() {
        let policer = Policer { rate: Rate::from_bps(1_500_000), burst: WireBytes::new(30_000) };
        for text in ["1.5Mbit/30kB", "1.5 Mbit/s / 30 kB"] {
            assert_eq!(read_policer(text), Ok(policer), "{text}");
        }
        let uniform = JitterDistribution::Uniform(Span::from_millis(5));
        let normal =
            JitterDistribution::Normal { mean: Span::from_millis(5), deviation: Span::from_millis(2) };
        for (text, distribution, order) in [
            ("5ms", uniform, JitterOrder::Kept),
            ("5ms/free", uniform, JitterOrder::Free),
            ("normal(mean=5ms, deviation=2ms)", normal, JitterOrder::Kept),
            ("normal(deviation=2ms,mean=5ms)/free", normal, JitterOrder::Free),
        ] {
            assert_eq!(read_jitter(text), Ok(Jitter { distribution, order }), "{text}");
        }
        let period = Span::from_millis(5);
        assert_eq!(read_aggregation("5ms"), Ok(Aggregation { period, most_packets: None }));
        assert_eq!(read_aggregation("5 ms / 32"), Ok(Aggregation { period, most_packets: Some(32) }));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        let policer = |text| read_policer(text).expect_err(text);
        let jitter = |text| read_jitter(text).expect_err(text);
        let aggregation = |text| read_aggregation(text).expect_err(text);
        for (error, expected) in [
            (policer("1.5Mbit"), "such as `1.5Mbit/30kB`"),
            (policer("1.5Mbit/100B"), "lets no full packet through"),
            (policer("0Mbit/30kB"), "`policer`"),
            (policer("fast/30kB"), "`policer`"),
            (jitter("0ms"), "above 0"),
            (jitter("2h"), "1 h at most"),
            (jitter("5"), "without a unit"),
            (jitter("5ms/lost"), "`kept` or `free`"),
            (jitter("normal(mean=5ms)"), "needs both"),
            (jitter("normal(mean=5ms,mean=6ms)"), "comes twice"),
            (jitter("normal(mean=5ms,deviation=6ms)"), "at most the mean"),
            (jitter("normal(middle=5ms)"), "found `middle=5ms`"),
            (aggregation("0s"), "above 0"),
            (aggregation("5ms/0"), "1 to 1000000 packets"),
            (aggregation("5ms/many"), "found `many`"),
        ] {
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
