//! Word list of one-time codes: words that are easy to say, hear and type.

/// Words of codes. No two words differ by one keystroke, so a typing error is detected before it spends the code.
#[rustfmt::skip]
pub(super) const WORDS: [&str; 256] = [
    "acorn", "admiral", "almond", "amber", "anchor", "apple", "april", "apron", "arrow", "artist",
    "atlas", "autumn", "avenue", "badger", "bamboo", "banjo", "barley", "basket", "beacon",
    "beetle", "bicycle", "biscuit", "blanket", "blossom", "bottle", "branch", "breeze", "bridge",
    "bronze", "bucket", "button", "cabin", "cactus", "camel", "candle", "canyon", "carbon",
    "carpet", "castle", "cedar", "cello", "cement", "chalk", "cherry", "chess", "chimney", "cinema",
    "circle", "citrus", "clover", "cobalt", "coffee", "comet", "compass", "copper", "coral",
    "cotton", "cricket", "crystal", "curtain", "cushion", "daisy", "dancer", "denim", "desert",
    "diamond", "dolphin", "donkey", "dragon", "drum", "eagle", "easel", "echo", "elbow", "emerald",
    "engine", "evening", "fabric", "falcon", "farmer", "feather", "fender", "ferry", "fiddle",
    "finger", "flute", "forest", "fossil", "freight", "garden", "garlic", "gazelle", "giraffe",
    "glacier", "goblet", "gondola", "granite", "grape", "guitar", "hammer", "harbor", "harvest",
    "hazel", "helmet", "hermit", "hobby", "honey", "horizon", "hunter", "icicle", "igloo", "indigo",
    "island", "ivory", "jacket", "jaguar", "jasmine", "jelly", "jigsaw", "jungle", "kayak",
    "kernel", "kettle", "kitten", "koala", "ladder", "lagoon", "lantern", "laundry", "lemon",
    "leopard", "library", "lilac", "lizard", "lobster", "locket", "lotus", "lumber", "magnet",
    "mango", "marble", "meadow", "melody", "mineral", "mirror", "morning", "mosaic", "muffin",
    "museum", "mustard", "napkin", "nectar", "needle", "nickel", "noodle", "nugget", "oasis",
    "ocean", "october", "olive", "onion", "orange", "orbit", "orchid", "otter", "oyster", "paddle",
    "palace", "panther", "paper", "parrot", "peanut", "pebble", "pelican", "pencil", "pepper",
    "piano", "pigeon", "pillow", "pirate", "planet", "plum", "poem", "pond", "poplar", "prairie",
    "pumpkin", "puzzle", "pyramid", "quartz", "rabbit", "radish", "raven", "ribbon", "river",
    "robin", "rubber", "saffron", "salmon", "sandal", "sapphire", "satin", "saturn", "scarf",
    "school", "scooter", "season", "shadow", "shelter", "silver", "sketch", "slipper", "sparrow",
    "spider", "spinach", "spring", "squash", "squirrel", "stable", "statue", "summer", "sunset",
    "swallow", "swan", "tailor", "temple", "thistle", "thunder", "tiger", "timber", "tomato",
    "topaz", "tractor", "trumpet", "tulip", "tunnel", "turtle", "umbrella", "unicorn", "valley",
    "vanilla", "velvet", "village", "violin", "volcano", "waffle", "wagon", "walnut", "walrus",
    "water", "whisper", "winter", "yogurt", "zebra", "zigzag", "zipper",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if inserting, deleting or replacing one letter turns one word into the other.
    fn one_apart(one: &str, other: &str) -> bool {
        let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
        let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
        let skip = if short.len() == long.len() { 1 } else { 0 };
        long.len() - short.len() <= 1
            && short.as_bytes().get(same + skip..) == long.as_bytes().get(same + 1..)
    }

    #[test]
    fn words_are_sorted_short_and_more_than_one_key_apart() {
        assert!(WORDS.is_sorted());
        assert!(
            WORDS
                .iter()
                .all(|word| (4..=8).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()))
        );
        assert!(one_apart("table", "cable") && one_apart("plan", "plane") && !one_apart("table", "maple"));
        for (at, one) in WORDS.iter().enumerate() {
            assert!(!WORDS[at + 1..].iter().any(|other| one_apart(one, other)), "{one}");
        }
    }
}
