//! Commands outside of this program, and hints on how to install missing ones.

use std::ffi::OsString;

use clap::error::ErrorKind;

/// Command that the caller of [`status_of_with`](crate::status_of_with) runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalCommand {
    /// Name on the command line, with a blank between the native command and its subcommand.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
}

/// Commands of the Python package.
pub const PYTHON_COMMANDS: [ExternalCommand; 8] = [
    ExternalCommand { name: "sweep", about: "Run every point of a plan, on one machine or many" },
    ExternalCommand {
        name: "report",
        about: "Write tables, figures and timelines of a sweep as an HTML file",
    },
    ExternalCommand { name: "view", about: "Write a timeline of qlog events, SCTP or QUIC, as an HTML file" },
    ExternalCommand { name: "plot", about: "Draw a figure of a sweep or a trace" },
    ExternalCommand { name: "papers", about: "Show and reproduce the experiments and claims of five papers" },
    ExternalCommand {
        name: "video",
        about: "Encode, send and play real-time video, and compute its quality",
    },
    ExternalCommand {
        name: "trace plot",
        about: "Draw the rates of traces over time, and their distribution",
    },
    ExternalCommand { name: "trace import", about: "Convert columns of a Parquet file to a table" },
];

impl ExternalCommand {
    /// Returns `true` if the arguments after the program's name, and after `help`, begin with this command.
    fn is_typed(&self, typed: &[OsString]) -> bool {
        let mut typed = typed.iter().skip(1).skip_while(|word| *word == "help");
        self.name.split(' ').all(|word| typed.next().is_some_and(|next| next == word))
    }

    /// Adds the command to the native ones.
    pub(crate) fn add_to(&self, command: clap::Command) -> clap::Command {
        let new = |name| clap::Command::new(name).about(self.about);
        match self.name.split_once(' ') {
            Some((native, name)) => command.mut_subcommand(native, |native| native.subcommand(new(name))),
            None => command.subcommand(new(self.name)),
        }
    }
}

/// Returns a hint if a command of the Python package was requested and is missing.
pub(crate) fn hint(error: &clap::Error, typed: &[OsString]) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    PYTHON_COMMANDS.iter().find(|command| command.is_typed(typed)).map(|command| {
        format!(
            "`anabranch {}` comes with the Python package, whose `anabranch` has all commands of this one too.\n\
             To install it: pip install . in the folder of Anabranch's sources",
            command.name
        )
    })
}
