//! Expansion of `~` in paths that options take.
//!
//! A shell expands `~/inbox` if it is a word. Most shells pass `--dir=~/inbox` on unchanged, and the command would create a folder
//! with the name `~`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Arg, Command, ValueHint};

/// Expands a leading `~/` in all options of the command and its subcommands that have a path. A positional argument stays as typed.
pub(crate) fn expand_in_options(command: Command) -> Command {
    command.mut_args(expand_in_option).mut_subcommands(expand_in_options)
}

fn expand_in_option(argument: Arg) -> Arg {
    // clap gives this hint to each argument whose value is a path.
    if argument.is_positional() || argument.get_value_hint() != ValueHint::AnyPath {
        return argument;
    }
    let parser = OsStringValueParser::new().try_map(|typed| {
        if typed.is_empty() {
            Err("a path is needed here")
        } else {
            Ok(expand(&typed, std::env::home_dir().as_deref()))
        }
    });
    argument.value_parser(parser).value_hint(ValueHint::AnyPath)
}

/// Replaces a first component `~` by the user's home folder. Returns the path as typed if there is none.
fn expand(typed: &OsStr, home: Option<&Path>) -> PathBuf {
    let typed = Path::new(typed);
    match (typed.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_path_buf(),
        (Ok(rest), Some(home)) => home.join(rest),
        _ => typed.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_tilde_becomes_home_folder() {
        let home = Some(Path::new("/home/ada"));
        for (typed, expected) in [
            ("~", "/home/ada"),
            ("~/", "/home/ada"),
            ("~/inbox", "/home/ada/inbox"),
            ("~grace/inbox", "~grace/inbox"),
            ("./~/inbox", "./~/inbox"),
            ("inbox/~", "inbox/~"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(expand(OsStr::new(typed), home), Path::new(expected), "{typed}");
        }
    }

    #[test]
    fn tilde_stays_without_home_folder() {
        assert_eq!(expand(OsStr::new("~/inbox"), None), Path::new("~/inbox"));
    }

    #[test]
    fn every_path_of_an_option_is_expanded() {
        let home = std::env::home_dir().expect("tests have a home folder");
        let cases: [(&[&str], &str, &str); 4] = [
            (&["serve", "--dir=~/inbox"], "serve", "dir"),
            (&["recv", "host", "--dir=~/inbox"], "recv", "dir"),
            (&["send", "file", "host", "--keylog=~/inbox"], "send", "keylog"),
            (&["run", "two-path", "--pcap=~/inbox"], "run", "pcap"),
        ];
        for (line, subcommand, option) in cases {
            let typed = std::iter::once("anabranch").chain(line.iter().copied());
            let matches = crate::command(&[]).try_get_matches_from(typed).expect("a valid command line");
            let (name, matches) = matches.subcommand().expect("a subcommand");
            assert_eq!(name, subcommand);
            assert_eq!(matches.get_one::<PathBuf>(option), Some(&home.join("inbox")), "{line:?}");
        }
    }
}
