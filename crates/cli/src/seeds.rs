//! Seeds on the command line.

use std::str::FromStr;

use anabranch_scenario::Scenario;

/// Maximum number of seeds, as in scenario files.
const MOST: usize = 100_000;

/// Seeds with which every scheme is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub(crate) Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    /// Reads `5`, which is 1 to 5, or a list such as `3,7,10-12`. A comma makes even a single number a list.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().starts_with('-') {
            return Err(
                "a seed is not negative; write a count such as 20, or a list such as 3,7,10-12".to_owned()
            );
        }
        let seeds = match text.trim().parse::<u64>() {
            Ok(count) => range(1, count)?,
            Err(_) => list(text)?,
        };
        match seeds.len() {
            0 => Err("there has to be one seed at least".to_owned()),
            n if n > MOST => Err(too_many()),
            _ => no_seed_twice(&seeds).map(|()| Seeds(seeds)),
        }
    }
}

fn list(text: &str) -> Result<Vec<u64>, String> {
    let mut seeds = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            Some((first, last)) => seeds.extend(range(number(first)?, number(last)?)?),
            None => seeds.push(number(part)?),
        }
    }
    Ok(seeds)
}

fn range(first: u64, last: u64) -> Result<Vec<u64>, String> {
    match last.checked_sub(first) {
        Some(more) if more >= MOST as u64 => Err(too_many()),
        Some(_) => Ok((first..=last).collect()),
        None if last == 0 => Err("there has to be one seed at least".to_owned()),
        None => Err(format!("{first}-{last} goes backwards")),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let seed = text.trim().parse().ok().filter(|seed| *seed <= i64::MAX as u64);
    seed.ok_or_else(|| {
        format!("`{}` is not a seed; write a count such as 20, or a list such as 3,7,10-12", text.trim())
    })
}

fn too_many() -> String {
    format!("more than {MOST} seeds")
}

fn no_seed_twice(seeds: &[u64]) -> Result<(), String> {
    let mut sorted = seeds.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("seed {} is in the list twice", pair[0])),
        None => Ok(()),
    }
}

/// Returns the seeds of a scenario in words: `seed 4`, `seeds 1 to 5`, `seeds 3, 7, 9`.
pub(crate) fn in_words(scenario: &Scenario) -> String {
    const SHOWN: usize = 10;
    let seeds = &scenario.run.seeds;
    let consecutive = seeds.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
    match (seeds.first(), seeds.last()) {
        (Some(only), _) if seeds.len() == 1 => format!("seed {only}"),
        (Some(first), Some(last)) if consecutive && seeds.len() > 2 => format!("seeds {first} to {last}"),
        _ => {
            let shown: Vec<String> = seeds.iter().take(SHOWN).map(u64::to_string).collect();
            let more = seeds.len().saturating_sub(SHOWN);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("seeds {}{rest}", shown.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u64>, String> {
        text.parse::<Seeds>().map(|seeds| seeds.0)
    }

    #[test]
    fn a_number_is_a_count_and_a_comma_makes_a_list() {
        assert_eq!(read("3"), Ok(vec![1, 2, 3]));
        assert_eq!(read("3,7,9"), Ok(vec![3, 7, 9]));
        assert_eq!(read("7,"), Ok(vec![7]));
        assert_eq!(read(" 5 , 10-12"), Ok(vec![5, 10, 11, 12]));
        assert_eq!(read("0,"), Ok(vec![0]));
    }

    #[test]
    fn invalid_list_of_seeds_is_refused_with_the_reason() {
        let cases = [
            ("0", "one seed at least"),
            ("", "one seed at least"),
            ("1,2,1", "seed 1 is in the list twice"),
            ("5-3", "goes backwards"),
            ("100001", "more than 100000"),
            ("0-18446744073709551615", "not a seed"),
            ("1,x", "`x` is not a seed"),
            ("-3", "not negative; write a count such as 20"),
            ("-3,4", "not negative"),
        ];
        for (text, expected) in cases {
            let error = read(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
