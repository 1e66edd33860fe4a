//! Sizes, rates and times on the command line, read in the same way by all commands.
//!
//! A quantity is a number and a unit, with or without a blank between them: `64KiB`, `10 Mbit/s`, `1.5s`. The units are those of
//! scenario files. On the command line they may also be left out (bytes, bits per second, seconds) or be short: `K`, `M` and `G`,
//! in either case, are powers of 1024 in sizes and of 1000 in rates, and the `/s` of a rate may be omitted.
//! `python/anabranch/command/quantities.py` follows the same rules.

use std::num::NonZeroU64;
use std::time::Duration;

use anabranch_core::time::Rate;
use anabranch_scenario::units;
use anabranch_sim::pcapng::SnapLength;

/// Reads a size in bytes.
pub(crate) fn read_size(text: &str) -> Result<u64, String> {
    let long = |unit: &str| {
        match unit {
            "" => "B",
            "K" | "k" => "KiB",
            "M" | "m" => "MiB",
            "G" | "g" => "GiB",
            _ => return None,
        }
        .into()
    };
    units::parse_size(&with_unit(text, long)).map_err(|_| {
        format!("`{text}` is not a size: expected bytes, or a unit as in 64K, 64KiB, 1.5M, 10MB or 1G")
    })
}

/// Reads the number of bytes that a capture keeps of each packet.
pub(crate) fn read_snap_length(text: &str) -> Result<SnapLength, String> {
    let bytes = if text == "full" { Ok(0) } else { read_size(text) };
    let length = bytes.ok().and_then(|bytes| u32::try_from(bytes).ok()).and_then(SnapLength::new);
    length.ok_or_else(|| {
        let least = SnapLength::LEAST;
        format!(
            "`{text}` is not a snap length: expected {least} bytes or more (shorter ones cut off headers), or 0 or `full` for \
             whole packets"
        )
    })
}

/// Reads a rate in bits per second.
pub(crate) fn read_rate(text: &str) -> Result<Rate, String> {
    let long = |unit: &str| {
        match unit {
            "" | "bit" => "bit/s",
            "K" | "k" | "kbit" | "Kbit" => "kbit/s",
            "M" | "m" | "Mbit" | "mbit" => "Mbit/s",
            "G" | "g" | "Gbit" | "gbit" => "Gbit/s",
            _ => return None,
        }
        .into()
    };
    units::parse_rate(&with_unit(text, long)).map_err(|_| {
        format!(
            "`{text}` is not a rate: expected bits per second, or a unit as in 500K, 8M, 10Mbit or 1Gbit/s"
        )
    })
}

/// Reads a time in seconds.
pub(crate) fn read_time(text: &str) -> Result<Duration, String> {
    let long = |unit: &str| (unit.is_empty()).then_some("s");
    let span = units::parse_span(&with_unit(text, long)).map_err(|_| {
        format!("`{text}` is not a time: expected seconds, or a unit as in 500ms, 5s, 2min or 1h")
    })?;
    Ok(span.into())
}

/// Reads a time between two bounds.
pub(crate) fn read_time_within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    match read_time(text)? {
        time if (least..=most).contains(&time) => Ok(time),
        _ => Err(format!("`{text}` is not between {} and {}", shown(least), shown(most))),
    }
}

/// Reads a time in milliseconds, of an option whose name states them. Another unit may be given.
pub(crate) fn read_milliseconds(text: &str) -> Result<NonZeroU64, String> {
    let whole = match text.trim().parse() {
        Ok(milliseconds) => milliseconds,
        Err(_) => u64::try_from(read_time(text)?.as_millis()).unwrap_or(u64::MAX),
    };
    NonZeroU64::new(whole).ok_or_else(|| format!("`{text}` is less than a millisecond"))
}

/// Returns a time as it can be written on the command line.
fn shown(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{}ms", time.as_millis()),
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds => format!("{seconds}s"),
    }
}

/// Replaces a short unit by the one of scenario files.
fn with_unit(text: &str, long: impl Fn(&str) -> Option<&'static str>) -> String {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    format!("{number} {}", long(unit).unwrap_or(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_short_long_or_left_out() {
        for (text, bytes) in [
            ("17", 17),
            ("64K", 65_536),
            ("64k", 65_536),
            ("64 KiB", 65_536),
            ("64kB", 64_000),
            ("1.5m", 1_572_864),
            ("512MiB", 512 << 20),
            ("1G", 1 << 30),
            ("0", 0),
        ] {
            assert_eq!(read_size(text), Ok(bytes), "{text}");
        }
        for (text, bits) in [
            ("100", 100),
            ("500K", 500_000),
            ("8M", 8_000_000),
            ("10Mbit", 10_000_000),
            ("10 Mbit/s", 10_000_000),
            ("80 kbit/s", 80_000),
            ("1.5g", 1_500_000_000),
        ] {
            assert_eq!(read_rate(text).map(Rate::as_bps), Ok(bits), "{text}");
        }
        for (text, milliseconds) in [
            ("5", 5000),
            ("0.5", 500),
            ("5s", 5000),
            ("250 ms", 250),
            ("2min", 120_000),
            ("1h", 3_600_000),
            ("0", 0),
        ] {
            assert_eq!(read_time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
    }

    #[test]
    fn other_text_is_refused_with_examples() {
        for text in ["", "K", "-1", "1X", "ten", "1e30", "nan", "inf", "1.2.3", "99999999999999999999"] {
            assert!(read_size(text).is_err_and(|error| error.contains("64K")), "{text}");
            assert!(read_rate(text).is_err_and(|error| error.contains("8M")), "{text}");
            assert!(read_time(text).is_err_and(|error| error.contains("5s")), "{text}");
        }
        let milliseconds = |text| read_milliseconds(text).map(NonZeroU64::get);
        assert_eq!((milliseconds("300"), milliseconds("1.5s")), (Ok(300), Ok(1500)));
        assert!(milliseconds("0").is_err() && milliseconds("5us").is_err() && milliseconds("-1").is_err());
        let day = Duration::from_secs(86_400);
        let error = read_time_within("4s", Duration::from_secs(5), day).expect_err("too short");
        assert_eq!(error, "`4s` is not between 5s and 24h");
        assert_eq!(read_time_within("24h", Duration::from_secs(5), day), Ok(day));
    }
}
