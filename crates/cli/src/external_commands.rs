//! Commands outside of this program, and hints on how to install missing ones.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Command that the caller of [`status_of_with`](crate::status_of_with) runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalCommand {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
}

/// Commands of the Python package.
pub const PYTHON_COMMANDS: [ExternalCommand; 6] = [
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
];

/// Returns a hint if a command of the Python package was requested and is missing.
pub(crate) fn hint(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    PYTHON_COMMANDS.iter().find(|command| command.name == asked).map(|command| {
        format!(
            "`anabranch {}` comes with the Python package, whose `anabranch` has all commands of this one too.\n\
             To install it: pip install . in the folder of Anabranch's sources",
            command.name
        )
    })
}
