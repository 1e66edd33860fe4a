//! Amounts, rates and times for people.

use std::time::Duration;

use crate::output::count;

const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];

fn scale(bytes: f64) -> (f64, &'static str) {
    UNITS.into_iter().find(|(size, _)| bytes >= *size).unwrap_or((1.0, "B"))
}

fn digits(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

/// Formats an amount, such as `24 MB`.
#[allow(clippy::cast_precision_loss)]
pub(super) fn amount(bytes: u64) -> String {
    let (size, unit) = scale(bytes as f64);
    format!("{} {unit}", digits(bytes as f64 / size))
}

/// Formats a part of a whole, such as `239/388 MB`.
#[allow(clippy::cast_precision_loss)]
pub(super) fn part(done: u64, all: u64) -> String {
    let (size, unit) = scale(all as f64);
    format!("{}/{} {unit}", digits((done as f64 / size * 10.0).round() / 10.0), digits(all as f64 / size))
}

/// Formats a rate, such as `24 MB/s`.
pub(super) fn rate(bytes_per_second: f64) -> String {
    let (size, unit) = scale(bytes_per_second);
    format!("{} {unit}/s", digits((bytes_per_second / size * 10.0).round() / 10.0))
}

/// Formats a time, such as `1:41`.
pub(super) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Returns a time as whole units of the largest that fits, such as `3 days` or `1 minute`.
pub(super) fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => "less than a minute".to_owned(),
        60..3600 => count(seconds / 60, "minute", "minutes"),
        3600..86_400 => count(seconds / 3600, "hour", "hours"),
        _ => count(seconds / 86_400, "day", "days"),
    }
}

/// Returns a mean per second, or zero for no time.
#[allow(clippy::cast_precision_loss)]
pub(super) fn per_second(amount: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { amount as f64 / time.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!((amount(0), amount(999), amount(1_500), amount(24_400_000)).0, "0 B");
        assert_eq!(amount(1_500), "1.5 kB");
        assert_eq!(amount(24_400_000), "24 MB");
        assert_eq!(part(239_000_000, 388_000_000), "239/388 MB");
        assert_eq!(part(2_340, 3_000_000), "0/3 MB");
        assert_eq!(rate(1_234_567.0), "1.2 MB/s");
        assert_eq!(clock(Duration::from_secs(3_701)), "1:01:41");
        let durations = [0, 60, 7_199, 86_399, 86_400, 200_000].map(|s| duration(Duration::from_secs(s)));
        assert_eq!(durations, ["less than a minute", "1 minute", "1 hour", "23 hours", "1 day", "2 days"]);
        assert!(per_second(10, Duration::ZERO).abs() < f64::EPSILON);
    }
}
