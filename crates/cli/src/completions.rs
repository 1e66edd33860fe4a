//! `anabranch completions` and `anabranch man`.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use anabranch_schemes::registry::{COMPONENTS, PRESETS};
use clap::builder::PossibleValuesParser;
use clap::{Args, Command, ValueHint};
use clap_complete::{Shell, generate};

use crate::builtin::SCENARIOS;
use crate::exit::{CommandError, Status};
use crate::{init, man, output, relay};

/// Keys of scenarios, as `--set` and `--sweep` take them.
static KEYS: LazyLock<Vec<String>> =
    LazyLock::new(|| anabranch_scenario::keys().into_iter().map(|key| key + "=").collect());

/// Keys of links, as `--link` takes them.
static LINK_KEYS: LazyLock<Vec<String>> =
    LazyLock::new(|| relay::link_keys().map(|field| format!("{}=", field.key)).collect());

/// The program's name.
const NAME: &str = "anabranch";

const EXAMPLES: &str = "\
Examples:
  For this user's bash, zsh or fish:
    anabranch completions bash \\
        > ~/.local/share/bash-completion/completions/anabranch
    anabranch completions zsh \\
        > ~/.zfunc/_anabranch       # with ~/.zfunc in fpath
    anabranch completions fish > ~/.config/fish/completions/anabranch.fish

`make install` installs all three, and the man pages.";

/// Print completions for a shell, with schemes and scenario keys.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// Shell to print the script for
    #[arg(value_enum, value_name = "SHELL", value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Write the man pages of all commands into a folder.
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Folder to write to; it is created if it does not exist
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Runs the command `completions`.
pub(crate) fn completions(
    arguments: &CompletionsArguments,
    command: Command,
) -> Result<Status, CommandError> {
    let shell = match arguments.shell.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut script = Vec::new();
    generate(shell, &mut with_values(command, shell), NAME, &mut script);
    output::print(&with_scenarios(&String::from_utf8_lossy(&script), shell));
    Ok(Status::Success)
}

/// Writes a page for the program and one for each command that is not hidden.
pub(crate) fn man(arguments: &ManArguments, command: Command) -> Result<Status, CommandError> {
    let dir = &arguments.dir;
    let written = fs::create_dir_all(dir).and_then(|()| man::write_pages(command, dir));
    written.map_err(|error| {
        CommandError::failure(format!("{}: man pages cannot be written: {error}", dir.display()))
    })?;
    Ok(Status::Success)
}

/// Adds possible values to arguments that accept any text: lists of schemes, and keys with their values.
fn with_values(command: Command, shell: Shell) -> Command {
    let schemes: Vec<&str> = PRESETS.iter().map(|scheme| scheme.name).collect();
    let keys: Vec<&str> = KEYS.iter().map(String::as_str).collect();
    let cards: Vec<&str> =
        schemes.iter().copied().chain(COMPONENTS.iter().map(|component| component.name)).collect();
    command.mut_subcommands(move |command| {
        let is_cards = command.get_name() == "schemes";
        let is_init = command.get_name() == "init";
        let (schemes, cards, keys) = (schemes.clone(), cards.clone(), keys.clone());
        command.mut_args(move |argument| match argument.get_id().as_str() {
            "scheme" | "schemes" => argument.value_parser(PossibleValuesParser::new(schemes.clone())),
            "link" => argument.value_parser(PossibleValuesParser::new(LINK_KEYS.iter().map(String::as_str))),
            "set" | "sweep" => argument.value_parser(PossibleValuesParser::new(keys.clone())),
            // Bash completes files if none of the names begins with the typed text.
            "scenario" if shell == Shell::Bash => {
                argument.value_parser(PossibleValuesParser::new(scenarios().collect::<Vec<_>>()))
            }
            "scenario" | "sources_and_host" | "runs" => argument.value_hint(ValueHint::AnyPath),
            "name" if is_cards => argument.value_parser(PossibleValuesParser::new(cards.clone())),
            "name" if is_init => {
                argument.value_parser(PossibleValuesParser::new(init::names().collect::<Vec<_>>()))
            }
            _ => argument,
        })
    })
}

/// Returns the names of the built-in scenarios.
fn scenarios() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|file| file.name)
}

/// Adds the built-in scenarios to files, in shells whose generated script completes only one of both.
fn with_scenarios(script: &str, shell: Shell) -> String {
    let names = scenarios().collect::<Vec<_>>().join(" ");
    match shell {
        Shell::Zsh => {
            let action = format!(
                "_anabranch_scenarios() {{\n    _alternative 'files:file:_files' 'names:built-in scenario:({names})'\n}}\n\n"
            );
            let line = |line: &str| match line.trim_start().starts_with("':scenario -- ") {
                true => line.replace(":_files'", ":_anabranch_scenarios'"),
                false => line.to_owned(),
            };
            let script: Vec<String> = script.lines().map(line).collect();
            let script = script.join("\n") + "\n";
            script.replacen("_anabranch() {", &format!("{action}_anabranch() {{"), 1)
        }
        Shell::Fish => {
            format!("{script}complete -c {NAME} -n \"__fish_{NAME}_using_subcommand run\" -a \"{names}\"\n")
        }
        _ => script.to_owned(),
    }
}
