//! Quantities with a number and a unit: `"45 ms"`, `"10 Mbit/s"`, `"64 KiB"`.
//!
//! Parsing is exact. A value that is not a whole number of nanoseconds, bits per second or bytes is rejected, not rounded, so that
//! output equals input.

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_sim::QueueLimit;

use crate::nearest;
use crate::text::quoted;

/// A unit and its size in units of the smallest one.
struct Unit {
    name: &'static str,
    scale: u64,
}

const fn unit(name: &'static str, scale: u64) -> Unit {
    Unit { name, scale }
}

/// Units of one quantity, smallest first.
struct Quantity {
    /// Name with its article, as in "expected a duration".
    name: &'static str,
    units: &'static [Unit],
    /// Plural of the smallest unit.
    smallest: &'static str,
    example: &'static str,
    /// Other spellings, and their replacements.
    aliases: &'static [(&'static str, &'static str)],
}

const DURATION: Quantity = Quantity {
    name: "a duration",
    units: &[
        unit("ns", 1),
        unit("us", 1_000),
        unit("ms", 1_000_000),
        unit("s", 1_000_000_000),
        unit("min", 60_000_000_000),
        unit("h", 3_600_000_000_000),
    ],
    smallest: "nanoseconds",
    example: "45 ms",
    aliases: &[
        ("µs", "us"),
        ("μs", "us"),
        ("usec", "us"),
        ("msec", "ms"),
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("m", "min"),
        ("minutes", "min"),
        ("hours", "h"),
    ],
};

const RATE: Quantity = Quantity {
    name: "a rate",
    units: &[
        unit("bit/s", 1),
        unit("kbit/s", 1_000),
        unit("Mbit/s", 1_000_000),
        unit("Gbit/s", 1_000_000_000),
    ],
    smallest: "bits per second",
    example: "10 Mbit/s",
    aliases: &[
        ("bps", "bit/s"),
        ("b/s", "bit/s"),
        ("kbps", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("kbit", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gb/s", "Gbit/s"),
        ("gbit", "Gbit/s"),
    ],
};

const SIZE: Quantity = Quantity {
    name: "a size",
    units: &[
        unit("B", 1),
        unit("kB", 1_000),
        unit("KiB", 1 << 10),
        unit("MB", 1_000_000),
        unit("MiB", 1 << 20),
        unit("GB", 1_000_000_000),
        unit("GiB", 1 << 30),
    ],
    smallest: "bytes",
    example: "64 KiB",
    aliases: &[
        ("byte", "B"),
        ("bytes", "B"),
        ("K", "KiB"),
        ("KB", "KiB"),
        ("M", "MiB"),
        ("G", "GiB"),
        ("packets", "B"),
    ],
};

const PACKETS: Quantity = Quantity {
    name: "a number of packets",
    units: &[unit("packets", 1), unit("packet", 1)],
    smallest: "packets",
    example: "50 packets",
    aliases: &[],
};

/// Error in a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}{}", proposal(.nearest))]
pub struct UnitError {
    /// Expected form.
    pub expected: String,
    /// Text as written.
    pub found: String,
    /// Known unit closest to the given one.
    pub nearest: Option<String>,
    /// Set if number and unit are valid, but the value is too large or too fine.
    pub out_of_range: bool,
}

fn proposal(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|nearest| format!("; did you mean `{nearest}`?")).unwrap_or_default()
}

/// Reads a duration such as `"1.5 s"`.
///
/// # Errors
/// Returns an error if the text is no number with a unit of time, or is finer than 1 ns or longer than 2^64 ns.
///
/// ```
/// use anabranch_core::time::Span;
/// assert_eq!(anabranch_scenario::units::parse_span("1.5 s"), Ok(Span::from_millis(1500)));
/// ```
pub fn parse_span(text: &str) -> Result<Span, UnitError> {
    parse(text, &[&DURATION]).map(|(value, _)| Span::from_nanos(value))
}

/// Reads a rate such as `"387 kbit/s"`. Prefixes are decimal.
///
/// # Errors
/// Returns an error if the text is no number with a unit of rate, or is finer than 1 bit/s.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    parse(text, &[&RATE]).map(|(value, _)| Rate::from_bps(value))
}

/// Reads a size in bytes such as `"64 KiB"` (binary) or `"10 MB"` (decimal).
///
/// # Errors
/// Returns an error if the text is no number with a unit of size, or no whole number of bytes.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    parse(text, &[&SIZE]).map(|(value, _)| value)
}

/// Reads the length of a queue in packets, bytes or time.
///
/// # Errors
/// Returns an error if the text is no number with a unit of one of these.
pub fn parse_queue(text: &str) -> Result<QueueLimit, UnitError> {
    let (value, index) = parse(text, &[&PACKETS, &SIZE, &DURATION])?;
    Ok(match index {
        0 => QueueLimit::Packets(value),
        1 => QueueLimit::Bytes(WireBytes::new(value)),
        _ => QueueLimit::Time(Span::from_nanos(value)),
    })
}

/// Returns a duration in the form of scenario files.
pub fn format_span(span: Span) -> String {
    format(span.as_nanos(), &DURATION)
}

/// Returns a rate in the form of scenario files.
pub fn format_rate(rate: Rate) -> String {
    format(rate.as_bps(), &RATE)
}

/// Returns a size in bytes in the form of scenario files.
pub fn format_size(bytes: u64) -> String {
    format(bytes, &SIZE)
}

/// Returns the length of a queue in the form of scenario files.
pub fn format_queue(queue: QueueLimit) -> String {
    match queue {
        QueueLimit::Unlimited => "unlimited".to_owned(),
        QueueLimit::Packets(1) => "1 packet".to_owned(),
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Bytes(bytes) => format_size(bytes.get()),
        QueueLimit::Time(span) => format_span(span),
    }
}

/// Returns the description of a duration.
pub(crate) fn expected_span() -> String {
    expected(&[&DURATION])
}

/// Returns the description of a rate.
pub(crate) fn expected_rate() -> String {
    expected(&[&RATE])
}

/// Returns the description of a size of data.
pub(crate) fn expected_size() -> String {
    expected(&[&SIZE])
}

/// Returns the description of a packet size.
pub(crate) fn expected_packet_size() -> String {
    expected(&[&Quantity { example: "1500 B", ..SIZE }])
}

/// Returns the description of a queue length.
pub(crate) fn expected_queue() -> String {
    "a queue length in packets, bytes or time, such as \"50 packets\", \"64 KiB\" or \"100 ms\"".to_owned()
}

fn expected(quantities: &[&Quantity]) -> String {
    match quantities {
        [one] => {
            let names: Vec<&str> = one.units.iter().map(|unit| unit.name).collect();
            format!("{} in {}, such as \"{}\"", one.name, or_list(&names), one.example)
        }
        _ => expected_queue(),
    }
}

/// Returns words as a list such as "a, b or c".
pub(crate) fn or_list(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}

/// Parses text with the units of several quantities. Returns the value in the smallest unit of its quantity, and the index of that
/// quantity.
fn parse(text: &str, quantities: &[&Quantity]) -> Result<(u64, usize), UnitError> {
    let fail = |found: String, nearest: Option<String>| UnitError {
        expected: expected(quantities),
        found,
        nearest,
        out_of_range: false,
    };
    let trimmed = text.trim();
    let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..end], trimmed[end..].trim_start());
    if number.is_empty() {
        let sign = if trimmed.starts_with('-') { ", which is negative" } else { "" };
        return Err(fail(quoted(text) + sign, None));
    }
    let Some(decimal) = Decimal::parse(number) else {
        return Err(fail(format!("{} with the number {}", quoted(text), quoted(number)), None));
    };
    if unit.is_empty() {
        return Err(fail(format!("{} without a unit", quoted(text)), None));
    }
    let known = quantities.iter().enumerate().flat_map(|(index, q)| q.units.iter().map(move |u| (index, u)));
    let Some((index, known)) = known.into_iter().find(|(_, known)| known.name == unit) else {
        let found = format!("{} with the unknown unit {}", quoted(text), quoted(unit));
        return Err(fail(found, nearest_unit(unit, quantities)));
    };
    let quantity = quantities[index];
    let value = decimal.times(known.scale).map_err(|misfit| UnitError {
        expected: match misfit {
            UnitMismatch::TooLarge => format!("{} below 2^64 {}", quantity.name, quantity.smallest),
            UnitMismatch::TooFine => format!("a whole number of {}", quantity.smallest),
        },
        found: quoted(text),
        nearest: None,
        out_of_range: true,
    })?;
    Ok((value, index))
}

fn nearest_unit(unit: &str, quantities: &[&Quantity]) -> Option<String> {
    let aliases = || quantities.iter().flat_map(|quantity| quantity.aliases);
    let exact = aliases().find(|(alias, _)| *alias == unit);
    let names = || quantities.iter().flat_map(|quantity| quantity.units).map(|unit| unit.name);
    let same = names().find(|name| name.eq_ignore_ascii_case(unit));
    let alias = exact.or_else(|| aliases().find(|(alias, _)| alias.eq_ignore_ascii_case(unit)));
    alias.map(|(_, name)| *name).or(same).or_else(|| nearest(unit, names())).map(str::to_owned)
}

/// A decimal number, exactly: `digits / 10^places`.
struct Decimal {
    digits: u128,
    places: u32,
}

enum UnitMismatch {
    TooLarge,
    TooFine,
}

impl Decimal {
    /// Parses a number. A point needs digits on both sides.
    fn parse(text: &str) -> Option<Decimal> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let all = format!("{whole}{fraction}");
        // More digits than the type holds are too large or too fine for every unit.
        let digits = all.parse().unwrap_or(u128::MAX);
        Some(Decimal { digits, places: u32::try_from(fraction.len()).unwrap_or(u32::MAX) })
    }

    fn times(&self, scale: u64) -> Result<u64, UnitMismatch> {
        let scaled = self.digits.checked_mul(u128::from(scale));
        let divisor = 10u128.checked_pow(self.places);
        match (scaled, divisor) {
            (Some(scaled), Some(divisor)) if scaled % divisor == 0 => {
                u64::try_from(scaled / divisor).map_err(|_| UnitMismatch::TooLarge)
            }
            (_, _) if self.places > 0 => Err(UnitMismatch::TooFine),
            _ => Err(UnitMismatch::TooLarge),
        }
    }
}

/// Returns the shortest form of a value as a whole number of one of its units.
fn format(value: u64, quantity: &Quantity) -> String {
    let exact = |unit: &&Unit| value.is_multiple_of(unit.scale);
    let texts =
        quantity.units.iter().filter(exact).map(|unit| format!("{} {}", value / unit.scale, unit.name));
    let shortest = texts.min_by_key(String::len);
    shortest.unwrap_or_else(|| format!("{value} {}", quantity.units[0].name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_decimal_for_rates_and_both_for_sizes() {
        assert_eq!(parse_rate("387kbit/s"), Ok(Rate::from_bps(387_000)));
        assert_eq!(parse_size("64 KiB"), Ok(65_536));
        assert_eq!(parse_size("10 MB"), Ok(10_000_000));
        assert_eq!(parse_queue("100 ms"), Ok(QueueLimit::Time(Span::from_millis(100))));
        assert_eq!(parse_queue("1 packet"), Ok(QueueLimit::Packets(1)));
    }

    #[test]
    fn fractions_are_exact_or_refused() {
        assert_eq!(parse_span("0.1 s"), Ok(Span::from_millis(100)));
        assert_eq!(
            parse_span("1.500000000000000000000000000000000000000000 ms"),
            Ok(Span::from_micros(1500))
        );
        let error = parse_span("0.5 ns").expect_err("half a nanosecond");
        assert_eq!(error.expected, "a whole number of nanoseconds");
        let error = parse_size("99999999999999999999 GB").expect_err("too many bytes");
        assert_eq!(error.expected, "a size below 2^64 bytes");
    }

    #[test]
    fn other_spellings_are_corrected() {
        let nearest = |text| parse_rate(text).expect_err("a wrong unit").nearest;
        assert_eq!(nearest("10 Mbps"), Some("Mbit/s".to_owned()));
        assert_eq!(nearest("10 mbit/s"), Some("Mbit/s".to_owned()));
        assert_eq!(nearest("10 bit/sec"), Some("bit/s".to_owned()));
        assert_eq!(parse_span("10 ns").map(format_span), Ok("10 ns".to_owned()));
        assert_eq!(parse_span("3 sec").expect_err("a wrong unit").nearest, Some("s".to_owned()));
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in [
            "", " ", "NaN s", "inf s", "-5 ms", "+5 ms", "1e3 ms", ".5 s", "1. s", "1.2.3 s", "5", "ms",
            "1,5 s",
        ] {
            assert!(parse_span(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn values_are_written_the_short_way() {
        assert_eq!(format_span(Span::from_secs(200)), "200 s");
        assert_eq!(format_span(Span::from_millis(45)), "45 ms");
        assert_eq!(format_span(Span::ZERO), "0 s");
        assert_eq!(format_size(65_536), "64 KiB");
        assert_eq!(format_size(8_000_000), "8 MB");
        assert_eq!(format_size(1452), "1452 B");
        assert_eq!(format_rate(Rate::from_bps(387_000)), "387 kbit/s");
    }
}
