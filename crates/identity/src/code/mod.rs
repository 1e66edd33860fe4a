//! One-time codes that authenticate two users without shared keys.

mod exchange;
mod words;

use std::fmt;
use std::str::FromStr;

use anabranch_keying::crypto::rand::{SecureRandom as _, SystemRandom};
use zeroize::{Zeroize as _, Zeroizing};

pub use exchange::{
    Accepted, Answered, BINDING_LABEL, ChannelBinding, CodeError, EXCHANGE_VERSION, Initiator,
    LONGEST_MESSAGE, Offer, Opening, Waiting, is_of_version_1, is_resumed, resume, version_1_probe,
};

use crate::error::IdentityError;
use words::WORDS;

/// Number of values of a code's number.
const NUMBERS: u8 = 100;

/// Maximum length of a text that is parsed as a code, in bytes.
const LONGEST_TEXT: usize = 64;

/// One-time code: a number below 100 and two of 256 words, such as `42-marble-river`. An attacker has one guess in 6,553,600.
#[derive(Clone, PartialEq, Eq)]
pub struct OneTimeCode {
    number: u8,
    words: [u8; 2],
}

/// Error of parsing a code. It does not contain the text, which may be almost a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongCode {
    /// The format is wrong.
    #[error("a code is a number and two words, such as 42-marble-river")]
    Form,
    /// A word is not in the word list.
    #[error("word {0} of the code is misspelt: codes have no such word")]
    Word(usize),
}

impl OneTimeCode {
    /// Generates a uniformly random code.
    ///
    /// # Errors
    /// Returns [`IdentityError::NoRandomness`] if the system provides no random bytes.
    pub fn random() -> Result<Self, IdentityError> {
        loop {
            let mut bytes = Zeroizing::new([0; 3]);
            SystemRandom::new().fill(&mut *bytes).map_err(|_| IdentityError::NoRandomness)?;
            // Rejects the last 56 of 256 values, which would favour some numbers.
            if bytes[0] < 2 * NUMBERS {
                return Ok(OneTimeCode { number: bytes[0] % NUMBERS, words: [bytes[1], bytes[2]] });
            }
        }
    }

    /// Returns the password for the key exchange: the canonical text of the code.
    fn password(&self) -> Zeroizing<String> {
        Zeroizing::new(self.to_string())
    }
}

/// Accepts words in upper case, separated by blanks, hyphens or both.
impl FromStr for OneTimeCode {
    type Err = WrongCode;

    fn from_str(text: &str) -> Result<Self, WrongCode> {
        if text.len() > LONGEST_TEXT {
            return Err(WrongCode::Form);
        }
        let text = Zeroizing::new(text.to_ascii_lowercase());
        let mut parts = text.split(|c: char| c == '-' || c.is_whitespace()).filter(|part| !part.is_empty());
        let (Some(number), Some(first), Some(second), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(WrongCode::Form);
        };
        let is_number = number.len() <= 2 && number.bytes().all(|digit| digit.is_ascii_digit());
        let number = number.parse().ok().filter(|_| is_number).ok_or(WrongCode::Form)?;
        let word = |at: usize, word: &str| {
            let index = WORDS.binary_search(&word).map_err(|_| WrongCode::Word(at))?;
            u8::try_from(index).map_err(|_| WrongCode::Word(at))
        };
        Ok(OneTimeCode { number, words: [word(1, first)?, word(2, second)?] })
    }
}

/// Canonical text, for display to the user who passes the code on.
impl fmt::Display for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, second] = self.words.map(|index| WORDS[usize::from(index)]);
        write!(f, "{}-{first}-{second}", self.number)
    }
}

impl fmt::Debug for OneTimeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneTimeCode(..)")
    }
}

impl Drop for OneTimeCode {
    fn drop(&mut self) {
        self.number.zeroize();
        self.words.zeroize();
    }
}

/// Fuzz target: a text is rejected, or the code parsed from it survives a round trip.
#[cfg(feature = "fuzzing")]
pub(crate) fn fuzz(text: &str) {
    if let Ok(code) = text.parse::<OneTimeCode>() {
        assert_eq!(code.to_string().parse(), Ok(code));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn code_is_read_in_all_usual_spellings() {
        let code: OneTimeCode = "7-apple-river".parse().expect("a code");
        for text in ["7 apple river", " 7 - Apple - RIVER\n", "07-apple-river", "7  apple-river"] {
            assert_eq!(text.parse(), Ok(code.clone()), "{text}");
        }
        assert_eq!(code.to_string(), "7-apple-river");
    }

    #[test]
    fn example_of_error_message_is_a_code() {
        let message = WrongCode::Form.to_string();
        let example = message.rsplit(' ').next().expect("the last word");
        assert!(example.parse::<OneTimeCode>().is_ok(), "{message}");
    }

    #[test]
    fn malformed_code_is_refused_without_using_a_guess() {
        for text in ["", "7", "7-apple", "7-apple-river-apple", "100-apple-river", "+7-apple-river", "a-b-c"]
        {
            assert_eq!(text.parse::<OneTimeCode>(), Err(WrongCode::Form), "{text}");
        }
        assert_eq!("7-appel-river".parse::<OneTimeCode>(), Err(WrongCode::Word(1)));
        assert_eq!("7-apple-rivers".parse::<OneTimeCode>(), Err(WrongCode::Word(2)));
        assert_eq!(" ".repeat(65).parse::<OneTimeCode>(), Err(WrongCode::Form));
    }

    #[test]
    fn a_code_is_not_shown_by_accident() {
        let code: OneTimeCode = "42-apple-river".parse().expect("a code");
        assert_eq!(format!("{code:?}"), "OneTimeCode(..)");
    }

    #[test]
    fn every_number_and_word_is_drawn_about_as_often_as_any_other() {
        let (mut numbers, mut words) = ([0_u32; 100], [0_u32; 256]);
        for _ in 0..25_600 {
            let code = OneTimeCode::random().expect("random bytes");
            numbers[usize::from(code.number)] += 1;
            code.words.iter().for_each(|word| words[usize::from(*word)] += 1);
        }
        // The expected counts are 256 and 200. A count outside these bounds has a probability below 10^-11.
        assert!(numbers.iter().all(|count| (128..400).contains(count)), "{numbers:?}");
        assert!(words.iter().all(|count| (90..330).contains(count)), "{words:?}");
    }

    proptest! {
        #[test]
        fn every_code_is_read_as_it_was_written(number in 0_u8..100, words in any::<[u8; 2]>()) {
            let code = OneTimeCode { number, words };
            prop_assert_eq!(code.to_string().parse(), Ok(code));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = text.parse::<OneTimeCode>();
        }
    }
}
