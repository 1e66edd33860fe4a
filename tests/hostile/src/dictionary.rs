//! Values that are likely to be handled wrongly.

use anabranch_transfer::protocol::{FileTime, MAX_RUNS, Run};
use anabranch_transfer::{BLOCK_BYTES, Hash, MAX_NAME_BYTES};
use fastrand::Rng;

/// Names that lead out of a folder, resemble others, are invalid, or conflict with the content of an [`Inbox`](crate::Inbox).
const NAMES: [&str; 68] = [
    "",
    ".",
    "..",
    "...",
    "../outside/planted",
    "../beside",
    "../inbox/x",
    "/",
    "/planted",
    "//planted",
    "a/../../planted",
    "./a",
    "a//b",
    "a/",
    "a/.",
    "~",
    "~/x",
    "-rf",
    "$(touch planted)",
    "`touch planted`",
    "%2e%2e/planted",
    "..\\planted",
    "C:\\planted",
    "C:planted",
    "a:b",
    "nul",
    "con.txt",
    "a\0b",
    "a\nb",
    "a\x1b[2Jb",
    "a\u{7f}",
    "\u{85}",
    "\u{202e}gpj.exe",
    "\u{2066}a\u{2069}",
    "\u{200b}",
    "\u{feff}a",
    "e\u{301}",
    "é",
    "ｅxisting",
    "EXISTING",
    "Existing",
    "existing",
    "existing/below",
    "existing.1",
    "empty",
    "big",
    "kept",
    "kept/inside",
    "kept/inside/below",
    "alias",
    "alias/inside",
    "alias/planted",
    "out",
    "out/planted",
    "out/secret",
    "out/folder/deep",
    "absolute/planted",
    "link",
    "link/x",
    "dangling",
    "loop",
    "loop/x",
    ".anabranch-stored",
    ".anabranch-stored/x",
    ".existing.anabranch-part",
    ".big.anabranch-journal",
    ".A.ANABRANCH-PART",
    "x.anabranch-part/y",
];

/// Returns a name: one of those, one that is too long or nearly so, or a short one that other peers choose, too.
pub fn name(dice: &mut Rng) -> String {
    match dice.u8(..100) {
        0..40 => NAMES[dice.usize(..NAMES.len())].to_owned(),
        40..46 => long_name(dice),
        46..57 => format!("d{}/f{}", dice.u8(..3), dice.u8(..20)),
        // The path may lead through a link.
        57..60 => format!("d{}/f{}/f{}", dice.u8(..3), dice.u8(..20), dice.u8(..5)),
        60..64 => format!("d{}", dice.u8(..3)),
        _ => format!("f{}", dice.u8(..60)),
    }
}

/// Returns the target of a symbolic link: out of the folder, to the content of an [`Inbox`](crate::Inbox), or to names that other
/// peers choose.
pub fn target(dice: &mut Rng) -> String {
    let targets = [
        "..",
        "../..",
        "../outside/secret",
        "../../outside",
        "/etc/passwd",
        ".",
        "./",
        "inside",
        "x/../../..",
        "../existing",
        "../kept/inside",
        "a\nb",
        ".anabranch-stored",
    ];
    match dice.u8(..4) {
        0 => name(dice),
        1 => format!("f{}", dice.u8(..20)),
        _ => targets[dice.usize(..targets.len())].to_owned(),
    }
}

fn long_name(dice: &mut Rng) -> String {
    let near = |limit: usize, dice: &mut Rng| limit - 2 + dice.usize(..4);
    match dice.u8(..5) {
        0 => "a".repeat(near(255, dice)),
        1 => "é".repeat(near(128, dice)),
        2 => "a/".repeat(near(128, dice)) + "a",
        3 => {
            let mut name = "abcdefg/".repeat(MAX_NAME_BYTES / 8 + 1);
            name.truncate(near(MAX_NAME_BYTES, dice));
            name
        }
        _ => format!("{}/{}", "x".repeat(255), "y".repeat(255)),
    }
}

/// Returns a number: small, at a limit, or any.
pub fn number(dice: &mut Rng) -> u64 {
    let block = u64::from(BLOCK_BYTES);
    let edges = [
        0,
        1,
        2,
        255,
        61_440,
        61_441,
        block - 1,
        block,
        block + 1,
        2 * block + 7,
        1 << 32,
        (1 << 32) - 1,
        1 << 40,
        1 << 43,
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        u64::MAX / block,
        u64::MAX - block,
        u64::MAX - 1,
        u64::MAX,
    ];
    match dice.u8(..4) {
        0 => dice.u64(..8),
        1 => dice.u64(..),
        _ => edges[dice.usize(..edges.len())],
    }
}

/// Returns such a number in 32 bits.
pub fn small_number(dice: &mut Rng) -> u32 {
    match dice.u8(..3) {
        0 => u32::try_from(number(dice)).unwrap_or(u32::MAX),
        1 => dice.u32(..70),
        _ => number(dice).to_be_bytes()[7].into(),
    }
}

/// Returns a time: of an existing file, around 1970, or outside of the range of a file system.
pub fn changed(dice: &mut Rng) -> FileTime {
    let seconds = [1_000_000_000, 5, 0, -1, i64::from(u32::MAX), 1 << 40, i64::MAX, i64::MIN, i64::MIN + 1];
    let nanos = [0, 1, 999_999_999];
    FileTime { seconds: seconds[dice.usize(..seconds.len())], nanos: nanos[dice.usize(..nanos.len())] }
}

/// Returns a hash without content.
pub fn hash(dice: &mut Rng) -> Hash {
    let mut bytes = [0; Hash::LEN];
    dice.fill(&mut bytes);
    Hash(bytes)
}

/// Returns runs in order with gaps, as in an answer: none, few, or the maximum, up to the last possible block.
pub fn runs(dice: &mut Rng) -> Vec<Run> {
    let most = match dice.u8(..20) {
        0..8 => 0,
        8..19 => dice.usize(1..4),
        _ => MAX_RUNS,
    };
    let (mut runs, mut next) = (Vec::new(), 0_u64);
    for _ in 0..most {
        let (gap, count) =
            if dice.u8(..8) == 0 { (number(dice), number(dice)) } else { (dice.u64(..4), dice.u64(..4)) };
        let Some(first) = next.checked_add(gap.max(1)) else { break };
        let Some(end) = first.checked_add(count.max(1)) else { break };
        runs.push(Run { first: first - u64::from(runs.is_empty()), count: count.max(1) });
        next = end;
    }
    runs
}

/// Returns text for people, with control sequences of terminals.
pub fn text(dice: &mut Rng) -> String {
    let texts = ["", "no", "\x1b]0;owned\x07\x1b[2J", "\u{202e}on", "two\nlines\r", "é"];
    let text = texts[dice.usize(..texts.len())];
    if dice.u8(..10) == 0 { text.repeat(200).chars().take(500).collect() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use anabranch_transfer::Name;
    use anabranch_transfer::protocol::{Answer, Message};

    use super::*;

    #[test]
    fn good_and_bad_names_come_up() {
        let mut dice = Rng::with_seed(1);
        let names: Vec<String> = (0..2000).map(|_| name(&mut dice)).collect();
        let good = names.iter().filter(|name| Name::new(name).is_ok()).count();
        assert!((1000..1900).contains(&good), "{good} of 2000 are taken");
        assert!(names.iter().any(|name| name.len() > MAX_NAME_BYTES));
    }

    #[test]
    fn runs_are_what_the_protocol_takes() {
        let mut dice = Rng::with_seed(1);
        for _ in 0..2000 {
            let message = Message::Answer { id: 0, answer: Answer::Take { have: runs(&mut dice) } };
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
    }
}
