//! Quantities as iperf3's users write and read them.

use std::time::Duration;

const LARGEST: f64 = 1e18;

/// Bytes such as `64K` or `1.5M`, in powers of 1024.
pub(super) fn read_bytes(text: &str) -> Result<u64, String> {
    read(text, 1024.0).map_err(|()| "expected bytes, such as 4096, 64K, 100M or 1G".to_owned())
}

/// Bits per second such as `10M`, in powers of 1000.
pub(super) fn read_rate(text: &str) -> Result<u64, String> {
    read(text, 1000.0).map_err(|()| "expected bits per second, such as 500K, 10M or 1G".to_owned())
}

/// Seconds such as `10` or `0.5`.
pub(super) fn read_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, such as 10 or 0.5, at most a day".to_owned()),
    }
}

fn read(text: &str, step: f64) -> Result<u64, ()> {
    let (figure, power) = match text.char_indices().last() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => {
            let power = match unit.to_ascii_uppercase() {
                'K' => 1,
                'M' => 2,
                'G' => 3,
                _ => return Err(()),
            };
            (&text[..at], power)
        }
        _ => (text, 0),
    };
    let whole = figure.parse::<f64>().map_err(drop)? * step.powi(power);
    if (1.0..LARGEST).contains(&whole) { Ok(whole as u64) } else { Err(()) }
}

/// In steps of 1024, to three or more digits.
pub(super) fn bytes(amount: u64) -> String {
    scaled(amount as f64, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

/// In steps of 1000.
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
    fn bytes_go_by_1024_and_rates_by_1000() {
        assert_eq!(read_bytes("64K"), Ok(65_536));
        assert_eq!(read_bytes("1.5m"), Ok(1_572_864));
        assert_eq!(read_bytes("17"), Ok(17));
        assert_eq!(read_rate("10M"), Ok(10_000_000));
        assert_eq!(read_rate("1g"), Ok(1_000_000_000));
        for wrong in ["", "K", "-1", "0", "1X", "ten", "1e30", "nan", "1 M", "inf"] {
            assert!(read_bytes(wrong).is_err() && read_rate(wrong).is_err(), "{wrong}");
        }
        assert!(read_seconds("-1").is_err() && read_seconds("nan").is_err() && read_seconds("1e9").is_err());
        assert_eq!(read_seconds("0.5"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn amounts_are_printed_with_three_digits() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(65_536), "64.0 KiB");
        assert_eq!(rate(94_123_456.0), "94.1 Mbit/s");
        assert_eq!(rate(940_000_000.0), "940 Mbit/s");
        assert_eq!(rate(1_230.0), "1.23 kbit/s");
    }
}
