//! Sizes and rates as iperf3 prints them.

/// Formats bytes in steps of 1024, with three or more digits.
pub(super) fn bytes(amount: u64) -> String {
    scaled(amount as f64, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Formats bits per second in steps of 1000.
pub(super) fn rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, 1000.0, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

fn scaled(amount: f64, step: f64, units: [&str; 5]) -> String {
    let mut at = 0;
    let mut left = amount;
    while left >= step && at + 1 < units.len() {
        left /= step;
        at += 1;
    }
    match at {
        0 => format!("{left:.0} {}", units[0]),
        _ if left < 10.0 => format!("{left:.2} {}", units[at]),
        _ if left < 100.0 => format!("{left:.1} {}", units[at]),
        _ => format!("{left:.0} {}", units[at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_printed_with_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(65_536), "64.0 KiB");
        assert_eq!(rate(94_123_456.0), "94.1 Mbit/s");
        assert_eq!(rate(940_000_000.0), "940 Mbit/s");
        assert_eq!(rate(1_230.0), "1.23 kbit/s");
    }
}
