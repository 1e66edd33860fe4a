//! Options `--include` and `--exclude`, in the order of the command line.

use anabranch_transfer::{BadRule, Filters, Rule};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

const OPTIONS: [(&str, &str); 2] = [
    (
        "exclude",
        "Leave out names that match, such as '*.o', cache/ or /photos/raw; can be repeated, the first match decides",
    ),
    ("include", "Take names that match, if no earlier --exclude does; can be repeated"),
];

/// Rules of both options, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct FilterOptions(Vec<Rule>);

impl FilterOptions {
    pub(super) fn filters(&self) -> Result<Filters, BadRule> {
        Filters::new(self.0.clone())
    }
}

impl FromArgMatches for FilterOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut rules = Vec::new();
        for (option, _) in OPTIONS {
            let patterns = matches.get_many::<String>(option).into_iter().flatten().cloned();
            let at = matches.indices_of(option).into_iter().flatten();
            rules.extend(
                at.zip(patterns).map(|(at, pattern)| (at, Rule { includes: option == "include", pattern })),
            );
        }
        rules.sort_by_key(|(at, _)| *at);
        Ok(FilterOptions(rules.into_iter().map(|(_, rule)| rule).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = FilterOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for FilterOptions {
    fn augment_args(command: Command) -> Command {
        let argument = |(option, help)| {
            Arg::new(option).long(option).value_name("PATTERN").action(ArgAction::Append).help(help)
        };
        command.args(OPTIONS.map(argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
