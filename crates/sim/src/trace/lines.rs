//! Reading lines of numbers within bounds.

use std::io::{BufRead, Read};

use super::{MAX_LINE, TraceError};

/// Lines of a text with numbers, without blank lines and comments that begin with `#`.
pub(super) struct Lines<R> {
    input: R,
    line: u64,
    buffer: Vec<u8>,
    /// Set if the line in `buffer` was only peeked at.
    is_peeked: bool,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, line: 0, buffer: Vec::new(), is_peeked: false }
    }

    /// Returns the next line without taking it.
    pub(super) fn peek(&mut self) -> Result<Option<&str>, TraceError> {
        let is_there = self.next()?.is_some();
        self.is_peeked = is_there;
        if is_there { self.current().map(|(_, text)| Some(text)) } else { Ok(None) }
    }

    /// Returns the next line with its number, from 1.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &str)>, TraceError> {
        if std::mem::take(&mut self.is_peeked) {
            return self.current().map(Some);
        }
        loop {
            self.line += 1;
            let line = self.line;
            self.buffer.clear();
            let unreadable =
                |error: std::io::Error| TraceError::Unreadable { line, reason: error.to_string() };
            let most = MAX_LINE as u64 + 1;
            let read =
                self.input.by_ref().take(most).read_until(b'\n', &mut self.buffer).map_err(unreadable)?;
            if read == 0 {
                return Ok(None);
            }
            if self.buffer.len() > MAX_LINE {
                return Err(TraceError::LongLine { line });
            }
            let text = self.buffer.trim_ascii();
            if !text.is_empty() && !text.starts_with(b"#") {
                break;
            }
        }
        self.current().map(Some)
    }

    /// Returns the line in the buffer.
    fn current(&self) -> Result<(u64, &str), TraceError> {
        let line = self.line;
        let text = std::str::from_utf8(self.buffer.trim_ascii());
        let text = text.map_err(|error| TraceError::Unreadable { line, reason: error.to_string() })?;
        Ok((line, text))
    }
}

/// Returns the fields of a line, which commas, semicolons, tabs or blanks separate.
pub(super) fn fields(text: &str) -> impl Iterator<Item = &str> {
    let separator = [',', ';', '\t'].into_iter().find(|separator| text.contains(*separator));
    text.split(move |c: char| separator.map_or(c == ' ', |separator| c == separator))
        .map(str::trim)
        .filter(move |field| separator.is_some() || !field.is_empty())
}

/// Most digits of a number.
const MAX_DIGITS: usize = 30;

/// Parses a decimal number that is not negative as an integer of `10^-places`, rounded to the nearest. It may have an exponent. No
/// floats are involved: a time of ten digits before the point keeps its nanoseconds.
pub(super) fn decimal(text: &str, places: i32) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i16>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.len() + fraction.len();
    if digits == 0 || digits > MAX_DIGITS {
        return None;
    }
    let mut number = 0_u128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        number = number * 10 + u128::from(digit.is_ascii_digit().then(|| digit - b'0')?);
    }
    let shift = i32::from(exponent) - fraction.len() as i32 + places;
    let power = 10_u128.checked_pow(shift.unsigned_abs());
    let number = match (shift >= 0, power) {
        (true, Some(power)) => number.checked_mul(power)?,
        (true, None) if number > 0 => return None,
        (false, Some(power)) => (number + power / 2) / power,
        _ => 0,
    };
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_numbers_are_exact() {
        for (text, places, expected) in [
            ("1683983910.4", 9, 1_683_983_910_400_000_000),
            ("0.000000001", 9, 1),
            ("0.0000000004", 9, 0),
            ("0.0000000005", 9, 1),
            ("12.345", 6, 12_345_000),
            ("1.5e+03", 0, 1500),
            ("15E-1", 0, 2),
            (".5", 1, 5),
            ("7.", 0, 7),
            ("+3", 0, 3),
            ("0e300", 9, 0),
            ("1e-300", 9, 0),
        ] {
            assert_eq!(decimal(text, places), Some(expected), "{text}");
        }
        for text in [
            "",
            "-1",
            "1,5",
            "nan",
            "inf",
            "1e",
            "e5",
            ".",
            "1.2.3",
            "1e99",
            "18446744073709551616",
            "0x1",
            "1_0",
        ] {
            assert_eq!(decimal(text, 0), None, "{text}");
        }
        assert_eq!(decimal(&"1".repeat(31), 0), None);
    }

    #[test]
    fn fields_are_separated_by_commas_tabs_or_blanks() {
        for text in ["1,2", "1, 2", "1\t2", "1 2", "1   2", "1;2"] {
            assert_eq!(fields(text).collect::<Vec<_>>(), ["1", "2"], "{text:?}");
        }
        assert_eq!(fields("1,,2").collect::<Vec<_>>(), ["1", "", "2"]);
    }

    #[test]
    fn lines_are_bounded_and_numbered() {
        let mut lines = Lines::new(&b"# comment\n\n 5 \r\nx"[..]);
        assert_eq!(lines.next(), Ok(Some((3, "5"))));
        assert_eq!(lines.next(), Ok(Some((4, "x"))));
        assert_eq!(lines.next(), Ok(None));
        let long = [b'1'; 10 * MAX_LINE];
        assert_eq!(Lines::new(&long[..]).next(), Err(TraceError::LongLine { line: 1 }));
        assert!(matches!(Lines::new(&b"1\n\xff\xfe"[..]).next(), Ok(Some((1, "1")))));
        let mut lines = Lines::new(&b"\xff\xfe"[..]);
        assert!(matches!(lines.next(), Err(TraceError::Unreadable { line: 1, .. })));
    }
}
