//! Columns of text on a terminal, and text cut to fit them.
//!
//! Text from others is [escaped](anabranch_transfer::escape) first. Escaping removes the joiners and variation selectors that
//! combine several characters into one glyph. So the text never takes more columns than the sum over its characters.

use unicode_width::UnicodeWidthChar;

/// Mark at the place where text was cut. It is ASCII, because terminals disagree on the width of `…`.
const ELISION: &str = "...";

/// Returns the columns that escaped text takes.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

fn width_of(character: char) -> usize {
    character.width().unwrap_or(0)
}

/// Returns the text, with its middle cut out if it takes more columns than `limit`.
pub(crate) fn elide_middle(text: &str, limit: usize) -> String {
    if width(text) <= limit {
        return text.to_owned();
    }
    let Some(kept) = limit.checked_sub(ELISION.len()).filter(|kept| *kept > 0) else {
        return head(text, limit).to_owned();
    };
    let front = head(text, kept / 2);
    // The column of a wide character that does not fit in front goes to the end, which identifies a file better.
    let back = tail(text, kept - width(front));
    format!("{front}{ELISION}{back}")
}

/// Returns the longest beginning that fits, with the combining characters of its last character.
fn head(text: &str, limit: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, character)| {
        used += width_of(*character);
        used > limit
    });
    end.map_or(text, |(at, _)| &text[..at])
}

/// Returns the longest end that fits and does not begin with a combining character.
fn tail(text: &str, limit: usize) -> &str {
    let (mut used, mut start) = (0, text.len());
    for (at, character) in text.char_indices().rev() {
        used += width_of(character);
        if used > limit {
            break;
        }
        if width_of(character) > 0 {
            start = at;
        }
    }
    &text[start..]
}

/// Returns the text with blanks behind it up to `columns`.
pub(crate) fn pad(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// Drops columns of the highest rank until the rest fits, with gaps between them, and returns their texts.
pub(crate) fn fitting(mut columns: Vec<(u8, String)>, gap: &str, limit: usize) -> Vec<String> {
    let needed = |columns: &[(u8, String)]| {
        let texts: usize = columns.iter().map(|(_, text)| width(text)).sum();
        texts + gap.len() * columns.len().saturating_sub(1)
    };
    while columns.len() > 1 && needed(&columns) > limit {
        let least = columns.iter().map(|(rank, _)| *rank).max();
        let at = columns.iter().position(|(rank, _)| Some(*rank) == least).unwrap_or(0);
        columns.remove(at);
    }
    columns.into_iter().map(|(_, text)| elide_middle(&text, limit)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_text_keeps_both_ends() {
        assert_eq!(elide_middle("holiday/2026/sunset.jpg", 15), "holida...et.jpg");
        assert_eq!(elide_middle("short.txt", 15), "short.txt");
        assert_eq!(elide_middle("abcdef", 3), "abc");
        assert_eq!(elide_middle("abcdef", 0), "");
    }

    #[test]
    fn wide_and_combining_characters_are_cut_as_a_whole() {
        // Each of these ideographs takes two columns.
        assert_eq!(elide_middle("漢字漢字漢字", 8), "漢...字");
        assert_eq!(width("e\u{301}"), 1);
        let accents = "e\u{301}".repeat(10);
        assert_eq!(elide_middle(&accents, 5), "e\u{301}...e\u{301}");
    }

    #[test]
    fn columns_of_highest_rank_are_dropped_first() {
        let columns =
            || vec![(0, "active".to_owned()), (2, "cwnd 64 kB".to_owned()), (1, "RTT 3 ms".to_owned())];
        assert_eq!(fitting(columns(), "  ", 28), ["active", "cwnd 64 kB", "RTT 3 ms"]);
        assert_eq!(fitting(columns(), "  ", 27), ["active", "RTT 3 ms"]);
        assert_eq!(fitting(columns(), "  ", 4), ["...e"], "the last one is cut");
    }

    proptest! {
        #[test]
        fn elided_text_fits_every_limit(text in "\\PC{0,60}", limit in 0_usize..80) {
            let elided = elide_middle(&text, limit);
            prop_assert!(width(&elided) <= limit, "{elided:?}");
            prop_assert!(width(&text) > limit || elided == text);
        }
    }
}
