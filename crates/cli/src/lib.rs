//! The `anabranch` command as a library, so that other programs can run it in their own process.

mod bench;
mod builtin;
mod columns;
mod compare;
mod completions;
mod costs;
mod decrypt;
pub mod endpoint;
mod exit;
mod explain;
mod external_commands;
mod forward;
mod groups;
mod init;
mod interrupt;
mod keys;
mod live_output;
mod man;
mod output;
mod paths;
mod progress;
mod quantity;
mod relay;
mod rendezvous;
mod run;
pub mod schemes;
mod seeds;
mod served_peers;
mod signal;
mod state_dir;
mod table;
mod tilde;
#[cfg(unix)]
mod top;
mod trace;
mod transfer;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use exit::CommandError;
pub use exit::Status;
pub use external_commands::{ExternalCommand, PYTHON_COMMANDS};
pub use init::{built_in_files, built_in_names};

/// Send files over all your networks at the same time; simulate multipath SCTP.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArguments),
    Init(init::InitArguments),
    Explain(explain::ExplainArguments),
    Schemes(schemes::SchemesArguments),
    Send(Box<transfer::SendArguments>),
    Serve(Box<transfer::ServeArguments>),
    Recv(Box<transfer::RecvArguments>),
    Keys(keys::KeysArguments),
    Decrypt(decrypt::DecryptArguments),
    Relay(Box<relay::RelayArguments>),
    Rendezvous(rendezvous::RendezvousArguments),
    Trace(trace::TraceArguments),
    Compare(compare::CompareArguments),
    Paths(Box<paths::PathsArguments>),
    Bench(Box<bench::BenchArguments>),
    Forward(Box<forward::ForwardArguments>),
    Gateway(Box<forward::GatewayArguments>),
    #[cfg(target_os = "linux")]
    Tun(Box<forward::TunArguments>),
    #[cfg(unix)]
    Top(top::TopArguments),
    Completions(completions::CompletionsArguments),
    #[command(hide = true)]
    Man(completions::ManArguments),
}

/// Examples. Every line fits a terminal of 80 columns, on which clap would break longer ones.
const EXAMPLES: &str = "\
Examples:
  anabranch run two-path              compare schemes on a built-in scenario
  anabranch init                      list scenarios, or write one to change
  anabranch explain out/trace         explain a run's time and capacity
  anabranch schemes                   list the schemes
  anabranch send --code FILE          offer a file with a one-time code
  anabranch recv CODE@HOST            fetch that file on another machine
  anabranch serve --dir inbox         store files from holders of known keys
  anabranch send FILE HOST            send a file over every path
  anabranch recv HOST NAME            fetch a file from a server
  anabranch forward -D 1080 HOST      proxy for other programs over all paths
  anabranch tun HOST                  this machine's packets over all paths
  anabranch gateway                   connect to hosts for such proxies
  anabranch rendezvous                let two sides behind NATs meet
  anabranch top                       show paths and connections of a command
  anabranch keys show                 print your public key
  anabranch relay --help              simulate links between real sockets
  anabranch compare two-path          run in the simulator and over sockets
  anabranch trace info FILE           describe a recorded network
  anabranch paths                     list the local addresses of paths
  anabranch bench --help              measure each path and all together
  anabranch completions bash          complete commands in the shell
  anabranch help run                  show all options of a command

Exit status: 0 on success, 1 if a run failed or a file could not be read or
written, 2 if the command line or the scenario is wrong, 3 if a transfer ended
without some of its files, 4 if the identity of a peer is wrong, 130 after
Ctrl-C.";

/// Runs the command with these arguments. The first one is the name of the program.
pub fn main_with<I, A>(arguments: I) -> ExitCode
where
    I: IntoIterator<Item = A>,
    A: Into<OsString> + Clone,
{
    ExitCode::from(status_of(arguments).code())
}

/// Like [`main_with`], for callers that need the exit status as a number.
pub fn status_of<I, A>(arguments: I) -> Status
where
    I: IntoIterator<Item = A>,
    A: Into<OsString> + Clone,
{
    status_of_with(arguments, &[])
}

/// Like [`status_of`], for callers with commands of their own, which the help lists beside the native ones. The caller runs its own
/// commands and passes all others on.
pub fn status_of_with<I, A>(arguments: I, external: &[ExternalCommand]) -> Status
where
    I: IntoIterator<Item = A>,
    A: Into<OsString> + Clone,
{
    output::forget_failure();
    let typed: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let status = match parse(&typed, external) {
        Ok(arguments) => run(arguments.command, &typed, external),
        Err(error) => report(&error, &typed),
    };
    live_output::finish();
    with_output_failure(status)
}

/// Runs a command.
fn run(command_line: Command, typed: &[OsString], external: &[ExternalCommand]) -> Status {
    let ended = match command_line {
        Command::Run(run) => run::run(&run),
        Command::Init(init) => init::init(&init),
        Command::Explain(explain) => explain::explain(&explain),
        Command::Schemes(schemes) => schemes::schemes(&schemes),
        Command::Send(send) => transfer::send(&send, typed),
        Command::Serve(serve) => transfer::serve(&serve),
        Command::Recv(recv) => transfer::recv(&recv, typed),
        Command::Keys(keys) => keys::keys(&keys),
        Command::Decrypt(decrypt) => decrypt::decrypt(&decrypt),
        Command::Relay(relay) => relay::relay(&relay),
        Command::Rendezvous(rendezvous) => rendezvous::rendezvous(&rendezvous),
        Command::Trace(trace) => trace::trace(&trace),
        Command::Compare(compare) => compare::compare(&compare),
        Command::Paths(paths) => paths::paths(&paths),
        Command::Bench(bench) => bench::bench(&bench),
        Command::Forward(forward) => forward::forward(&forward),
        Command::Gateway(gateway) => forward::gateway(&gateway),
        #[cfg(target_os = "linux")]
        Command::Tun(tun) => forward::tun(&tun),
        #[cfg(unix)]
        Command::Top(top) => top::top(&top),
        Command::Completions(completions) => completions::completions(&completions, command(external)),
        Command::Man(man) => completions::man(&man, command(external)),
    };
    ended.unwrap_or_else(|stopped: CommandError| stopped.report())
}

fn parse(typed: &[OsString], external: &[ExternalCommand]) -> Result<Arguments, clap::Error> {
    let mut command = command(external);
    let matches = command.try_get_matches_from_mut(typed)?;
    Arguments::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns the commands, with the external ones.
fn command(external: &[ExternalCommand]) -> clap::Command {
    let command = forward::hide_insecure(tilde::expand_in_options(Arguments::command()));
    groups::group(external.iter().fold(command, |command, other| other.add_to(command)))
}

/// Reports a result that could not be written. Success becomes failure; any other status stays.
fn with_output_failure(status: Status) -> Status {
    let Some(error) = output::failure() else { return status };
    output::notice(format_args!("standard output: {error}; the result is not written completely"));
    if status == Status::Success { Status::Failure } else { status }
}

/// Prints the error in the arguments, or the requested help or version, which is a success.
fn report(error: &clap::Error, typed: &[OsString]) -> Status {
    match external_commands::hint(error, typed) {
        Some(hint) => output::notice(hint),
        None if error.use_stderr() => drop(error.print()),
        None => drop(output::print_styled(&error.render())),
    }
    if error.use_stderr() { Status::Usage } else { Status::Success }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_passes_debug_assertions_of_clap() {
        command(&PYTHON_COMMANDS).debug_assert();
    }

    #[test]
    fn examples_fit_80_columns_in_help_and_man_pages() {
        let command = command(&[]);
        for part in std::iter::once(&command).chain(command.get_subcommands()) {
            let Some(text) = part.get_after_help() else { continue };
            for line in text.to_string().lines() {
                assert!(line.chars().count() <= man::TEXT_COLUMNS, "{}: {line}", part.get_name());
            }
        }
    }

    #[test]
    fn observation_has_only_options_that_observe() {
        for name in ["send", "serve", "recv", "bench", "paths", "forward", "gateway"] {
            let command = command(&[]);
            let part = command.find_subcommand(name).expect(name);
            let headed = part.get_arguments().filter(|one| one.get_help_heading() == Some("Observation"));
            let headed: Vec<&str> = headed.map(|one| one.get_id().as_str()).collect();
            assert_eq!(headed, ["pcap", "snaplen", "trace", "qlog", "metrics"], "{name}");
        }
    }
}
