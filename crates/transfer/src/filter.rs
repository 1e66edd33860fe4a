//! Filters of the names in a transfer, by rsync's rules: the first matching pattern decides, and a name that matches none is
//! included.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::Name;
use crate::text::PeerText;

/// Maximum number of rules of a transfer.
pub const MAX_RULES: usize = 256;
/// Maximum length of a pattern, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1024;

/// A pattern, and the decision on the names that match it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Set if matching names are included.
    pub includes: bool,
    /// Pattern in which `*`, `?` and `[...]` have their meaning in a shell, and `**` stands for any number of folders. A pattern
    /// that begins with a slash matches from the root of the transfer. A pattern that ends with a slash matches folders only. A
    /// pattern without any other slash matches the last part of a name.
    pub pattern: String,
}

/// Reason why a rule is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadRule {
    /// The pattern cannot be parsed.
    #[error("`{pattern}` is not a pattern: {why}")]
    Pattern {
        /// The pattern as it was given.
        pattern: PeerText,
        /// Message of the parser.
        why: String,
    },
    /// Too many rules, or a rule that is too long.
    #[error("at most {MAX_RULES} patterns of {MAX_PATTERN_BYTES} B each; use fewer with *")]
    TooMuch,
}

/// Rules in order of evaluation.
#[derive(Clone, Debug, Default)]
pub struct Filters {
    rules: Vec<Rule>,
    compiled: Vec<Compiled>,
}

#[derive(Clone, Debug)]
struct Compiled {
    includes: bool,
    folders_only: bool,
    matcher: GlobMatcher,
}

impl PartialEq for Filters {
    fn eq(&self, other: &Self) -> bool {
        self.rules == other.rules
    }
}

impl Eq for Filters {}

impl Filters {
    /// Creates filters from rules in order of evaluation.
    ///
    /// # Errors
    /// Returns [`BadRule`] if a rule cannot be parsed, and if there are too many.
    ///
    /// ```
    /// use anabranch_transfer::{Filters, Name, Rule};
    /// let rule = |includes, pattern: &str| Rule { includes, pattern: pattern.to_owned() };
    /// let filters = Filters::new(vec![rule(true, "keep.o"), rule(false, "*.o")]).expect("two patterns");
    /// let takes = |name| filters.takes(&Name::new(name).expect("a name"), false);
    /// assert!(takes("src/keep.o") && !takes("src/main.o") && takes("src/main.c"));
    /// ```
    pub fn new(rules: Vec<Rule>) -> Result<Self, BadRule> {
        if rules.len() > MAX_RULES {
            return Err(BadRule::TooMuch);
        }
        let compiled = rules.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Filters { rules, compiled })
    }

    /// Returns the rules as they were given.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns `true` if the rules include the name, without regard to its folders.
    pub fn takes(&self, name: &Name, is_folder: bool) -> bool {
        let fits =
            |rule: &&Compiled| (is_folder || !rule.folders_only) && rule.matcher.is_match(name.as_str());
        self.compiled.iter().find(fits).is_none_or(|rule| rule.includes)
    }

    /// Returns `true` if a name and each folder that contains it are included.
    pub(crate) fn takes_all_of(&self, name: &Name, is_folder: bool) -> bool {
        let parents = name.parents().filter_map(|parent| Name::new(parent).ok());
        self.takes(name, is_folder) && parents.into_iter().all(|parent| self.takes(&parent, true))
    }
}

fn compile(rule: &Rule) -> Result<Compiled, BadRule> {
    let Rule { includes, pattern } = rule;
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(BadRule::TooMuch);
    }
    let bad = |why: &str| BadRule::Pattern { pattern: pattern.as_str().into(), why: why.to_owned() };
    let inner = pattern.strip_suffix('/').unwrap_or(pattern);
    let glob = match inner.strip_prefix('/') {
        Some(anchored) => anchored.to_owned(),
        None => format!("**/{inner}"),
    };
    if inner.trim_matches('/').is_empty() {
        return Err(bad("it is empty"));
    }
    // Braces have no special meaning in rsync's patterns.
    let escaped = glob.replace('{', "[{]").replace('}', "[}]");
    let glob = GlobBuilder::new(&escaped).literal_separator(true).backslash_escape(true).build();
    let matcher = glob.map_err(|error| bad(&error.kind().to_string()))?.compile_matcher();
    Ok(Compiled { includes: *includes, folders_only: pattern.ends_with('/'), matcher })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filters(rules: &[(bool, &str)]) -> Result<Filters, BadRule> {
        let rule = |&(includes, pattern): &(bool, &str)| Rule { includes, pattern: pattern.to_owned() };
        Filters::new(rules.iter().map(rule).collect())
    }

    fn takes(rules: &[(bool, &str)], name: &str, is_folder: bool) -> bool {
        filters(rules).expect("patterns").takes_all_of(&Name::new(name).expect("a name"), is_folder)
    }

    #[test]
    fn patterns_match_as_in_rsync() {
        for (pattern, name, is_left_out) in [
            ("*.o", "a.o", true),
            ("*.o", "d/e/a.o", true),
            ("*.o", "a.c", false),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("[ab]", "b", true),
            ("/a", "a", true),
            ("/a", "d/a", false),
            ("d/a", "x/d/a", true),
            ("d/*", "d/e", true),
            ("/d/**", "d/e/f", true),
            ("/d/*/f", "d/e/e/f", false),
            ("cache/", "x/cache/y", true),
            ("{a}", "a", false),
            ("{a}", "{a}", true),
            ("A", "a", false),
        ] {
            assert_eq!(takes(&[(false, pattern)], name, false), !is_left_out, "{pattern} {name}");
        }
        assert!(takes(&[(false, "cache/")], "cache", false), "a file of that name");
        assert!(!takes(&[(false, "cache/")], "cache", true));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = [(true, "*/"), (true, "*.c"), (false, "*")];
        assert!(takes(&rules, "d/a.c", false) && takes(&rules, "d", true));
        assert!(!takes(&rules, "d/a.o", false));
        // The content of an excluded folder is excluded, regardless of other rules.
        assert!(!takes(&[(true, "a.c"), (false, "d/")], "d/a.c", false));
    }

    #[test]
    fn invalid_or_excessive_patterns_are_refused() {
        for pattern in ["", "/", "//", "[a"] {
            assert!(matches!(filters(&[(false, pattern)]), Err(BadRule::Pattern { .. })), "{pattern}");
        }
        let long = "a".repeat(MAX_PATTERN_BYTES + 1);
        assert_eq!(filters(&[(false, &long)]), Err(BadRule::TooMuch));
        assert_eq!(filters(&vec![(false, "a"); MAX_RULES + 1]), Err(BadRule::TooMuch));
        assert!(filters(&vec![(false, "?*[a-z]**/?"); MAX_RULES]).is_ok());
    }

    proptest! {
        #[test]
        fn random_pattern_does_not_panic(pattern in r"[a*?\[\]!/\\{},^-]{0,20}", name in "[a/]{1,8}") {
            if let (Ok(filters), Ok(name)) = (filters(&[(false, &pattern)]), Name::new(&name)) {
                let _ = filters.takes_all_of(&name, false);
            }
        }
    }
}
