//! Groups of commands in the help of the program: clap has one list for all commands.

use std::fmt::Write as _;

use clap::Command;

/// Headings and their commands, in display order. The help leaves out commands of the Python package where that is absent.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Transfer", &["send", "recv", "serve", "keys", "paths", "bench"]),
    ("Forward", &["forward", "tun", "gateway", "rendezvous", "top"]),
    ("Simulate", &["run", "init", "schemes", "sweep", "papers", "video", "compare", "relay", "trace"]),
    ("Inspect", &["explain", "report", "plot", "view", "decrypt"]),
    ("Other", &["completions", "help"]),
];

const ABOUT_HELP: &str = "Print the help of a command";

/// Replaces the list of commands in the help by one list for each group.
pub(crate) fn group(command: Command) -> Command {
    let (lists, style) = (lists(&command), *command.get_styles().get_header());
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{lists}{style}Options:{style:#}\n{{options}}{{after-help}}"
    ))
}

fn lists(command: &Command) -> String {
    let style = *command.get_styles().get_header();
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{style}{heading}:{style:#}");
        for (name, about) in names.iter().filter_map(|name| Some((name, about(command, name)?))) {
            let style = *command.get_styles().get_literal();
            let _ = writeln!(text, "  {style}{name:<width$}{style:#}  {about}");
        }
        text.push('\n');
    }
    text
}

/// Returns the description of a command, or `None` where it is absent. clap adds `help` when it parses.
fn about(command: &Command, name: &str) -> Option<String> {
    if name == "help" {
        return Some(ABOUT_HELP.to_owned());
    }
    command.find_subcommand(name).map(|part| part.get_about().map(ToString::to_string).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use crate::command;
    use crate::external_commands::PYTHON_COMMANDS;
    use crate::man::TEXT_COLUMNS;

    #[test]
    fn every_visible_command_is_in_one_group() {
        let grouped: Vec<&str> = super::GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        for part in command(&PYTHON_COMMANDS).get_subcommands().filter(|part| !part.is_hide_set()) {
            let times = grouped.iter().filter(|name| **name == part.get_name()).count();
            assert_eq!(times, 1, "{}", part.get_name());
        }
    }

    #[test]
    fn help_lists_commands_by_group_in_80_columns() {
        let help = command(&PYTHON_COMMANDS).render_help().to_string();
        let start = |heading: &str| help.find(&format!("\n{heading}:\n")).expect(heading);
        assert!(start("Transfer") < start("Simulate") && start("Simulate") < start("Inspect"));
        assert!(!help.contains("Commands:"), "{help}");
        for line in help.lines() {
            assert!(line.chars().count() <= TEXT_COLUMNS + 2, "{line}");
        }
    }

    #[test]
    fn help_of_the_program_alone_omits_python_commands() {
        let help = command(&[]).render_help().to_string();
        assert!(PYTHON_COMMANDS.iter().all(|python| !help.contains(python.about)), "{help}");
    }
}
