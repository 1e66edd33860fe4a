//! Texts with the values of constants, built at compile time, so that a rule of a card cannot differ from the code.

use anabranch_core::time::Span;

/// Maximum number of bytes of a value: 20 digits of a whole number, or with a point and six decimals.
const MOST_BYTES: usize = 32;

/// Text of a value.
#[derive(Clone, Copy)]
pub(crate) struct Digits {
    bytes: [u8; MOST_BYTES],
    length: usize,
}

impl Digits {
    const EMPTY: Digits = Digits { bytes: [0; MOST_BYTES], length: 0 };

    const fn with(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            self.bytes[self.length] = text[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    /// Appends a number with at least this many digits.
    const fn with_number(mut self, number: u64, least_digits: u32) -> Self {
        let mut digits = 1;
        while number / 10_u64.pow(digits - 1) >= 10 || digits < least_digits {
            digits += 1;
        }
        while digits > 0 {
            digits -= 1;
            self.bytes[self.length] = b'0' + (number / 10_u64.pow(digits) % 10) as u8;
            self.length += 1;
        }
        self
    }

    const fn without_trailing_zeros(mut self) -> Self {
        while self.bytes[self.length - 1] == b'0' {
            self.length -= 1;
        }
        self
    }
}

/// Value of a constant in a text.
pub(crate) struct Figure<T>(pub(crate) T);

impl Figure<u64> {
    pub(crate) const fn digits(self) -> Digits {
        Digits::EMPTY.with_number(self.0, 1)
    }
}

impl Figure<u32> {
    pub(crate) const fn digits(self) -> Digits {
        Digits::EMPTY.with_number(self.0 as u64, 1)
    }
}

impl Figure<f64> {
    /// Returns a number from zero on, rounded to six decimals, without trailing zeros.
    pub(crate) const fn digits(self) -> Digits {
        let millionths = (self.0 * 1e6 + 0.5) as u64;
        let whole = Digits::EMPTY.with_number(millionths / 1_000_000, 1);
        match millionths % 1_000_000 {
            0 => whole,
            rest => whole.with(".").with_number(rest, 6).without_trailing_zeros(),
        }
    }
}

impl Figure<Span> {
    /// Returns a time in seconds, or in milliseconds below one.
    pub(crate) const fn digits(self) -> Digits {
        let seconds = self.0.as_nanos() as f64 / 1e9;
        if seconds < 1.0 {
            Figure(seconds * 1e3).digits().with(" ms")
        } else {
            Figure(seconds).digits().with(" s")
        }
    }
}

/// Returns the length of a template with its values. Panics unless there is a value for each `{}`.
pub(crate) const fn length(template: &str, values: &[Digits]) -> usize {
    let template = template.as_bytes();
    let (mut length, mut at, mut value) = (0, 0, 0);
    while at < template.len() {
        if template[at] == b'{' {
            assert!(template[at + 1] == b'}', "a value has no format");
            length += values[value].length;
            value += 1;
            at += 2;
        } else {
            length += 1;
            at += 1;
        }
    }
    assert!(value == values.len(), "each value has a place");
    length
}

/// Returns the bytes of a template with its values.
pub(crate) const fn render<const LENGTH: usize>(template: &str, values: &[Digits]) -> [u8; LENGTH] {
    let template = template.as_bytes();
    let mut out = [0; LENGTH];
    let (mut length, mut at, mut value) = (0, 0, 0);
    while at < template.len() {
        if template[at] == b'{' {
            let mut digit = 0;
            while digit < values[value].length {
                out[length] = values[value].bytes[digit];
                length += 1;
                digit += 1;
            }
            value += 1;
            at += 2;
        } else {
            out[length] = template[at];
            length += 1;
            at += 1;
        }
    }
    out
}

/// Returns the bytes as text.
pub(crate) const fn utf8(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => panic!("values are inserted between characters"),
    }
}

/// Returns a text in which each `{}` is replaced by the value of a constant expression. A wrong number of values does not compile.
macro_rules! text {
    ($template:literal, $($value:expr),+ $(,)?) => {{
        use $crate::definition::text::{Digits, Figure, length, render, utf8};
        const VALUES: &[Digits] = &[$(Figure($value).digits()),+];
        const BYTES: [u8; length($template, VALUES)] = render($template, VALUES);
        const TEXT: &str = utf8(&BYTES);
        TEXT
    }};
}
pub(crate) use text;

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span::from_secs(10);

    #[test]
    fn values_of_constants_replace_their_places() {
        const SHARE: f64 = 0.75;
        assert_eq!(text!("at most {} of {} ≥ 1", SHARE, SPAN), "at most 0.75 of 10 s ≥ 1");
        assert_eq!(text!("{}{}", 7_u32, 1_000_000_u64), "71000000");
    }

    #[test]
    fn decimals_and_times_have_no_trailing_zeros() {
        assert_eq!(text!("{} {} {}", 2.0, 100.0 * 0.02, 1.0 / 8.0), "2 2 0.125");
        assert_eq!(text!("{} {}", 0.001, 1.05), "0.001 1.05");
        assert_eq!(text!("{} {}", 1.0 - 0.15, 0.0), "0.85 0");
        let times = text!("{} {} {}", Span::from_millis(4), Span::from_millis(1500), Span::from_micros(500));
        assert_eq!(times, "4 ms 1.5 s 0.5 ms");
    }
}
