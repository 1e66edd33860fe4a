//! `anabranch top`: the paths and connections of a running command, and orders to take paths out of use and back.

mod frame;
mod sample;
mod terminal;

use std::time::Duration;

use anabranch_observe::control::{Answer, AskError, Client, Folder, Link, Listed, Report, Request};
use anabranch_transfer::escape;
use anyhow::Context;
use clap::Args;
use tokio::time::sleep;

use self::sample::{Sample, Sampler};
use crate::exit::{CommandError, Status};
use crate::output::{self, Reader};
use crate::signal::interrupted;

/// Time between two samples.
const EVERY: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  Show the only command that runs, with keys to take paths out and back:
    anabranch top
  Choose one of several by its name or process:
    anabranch top forward
    anabranch top 4711
  Take a link out of use for now, and back:
    anabranch top --take-out wwan0
    anabranch top --take-back wwan0
  One JSON object per second, or one page of metrics:
    anabranch top --json
    anabranch top --openmetrics

It shows forward, tun, gateway, send, recv and serve of this user; as root
also those of system services. A path that was taken out carries nothing in
both directions until it is taken back or the command ends. The last usable
path stays.
Exit status: 0 if the command has ended or q was pressed, 1 if no command runs
or it refuses an order, 2 if several commands run and none is named.";

/// Show paths and connections of a running command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArguments {
    /// Name of the command, such as forward, or its process identifier [default: the only one that runs]
    #[arg(value_name = "NAME|PID")]
    which: Option<String>,

    /// Print one JSON object per second; the default if standard output is not a terminal
    #[arg(long)]
    json: bool,

    /// Print the metrics once in the OpenMetrics text format
    #[arg(long, conflicts_with = "json")]
    openmetrics: bool,

    /// Print one sample, of one second
    #[arg(long, conflicts_with = "openmetrics")]
    once: bool,

    /// Take the paths of this local address or interface out of use
    #[arg(long, value_name = "ADDR|IFACE", conflicts_with_all = ["json", "openmetrics", "once"])]
    take_out: Option<String>,

    /// Take the paths of this local address or interface back into use
    #[arg(long, value_name = "ADDR|IFACE", conflicts_with_all = ["json", "openmetrics", "once", "take_out"])]
    take_back: Option<String>,
}

/// Runs the command.
pub(crate) fn top(arguments: &TopArguments) -> Result<Status, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot wait for sockets")?;
    let listed = chosen(arguments.which.as_deref(), &all_listed())?;
    let client = runtime.block_on(Client::connect(&listed)).map_err(CommandError::failure)?;
    let mut session = Session { client, sampler: Sampler::default() };
    if arguments.openmetrics {
        return runtime.block_on(session.print_metrics());
    }
    for (link, is_out) in [(&arguments.take_out, true), (&arguments.take_back, false)] {
        if let Some(link) = link {
            return runtime.block_on(session.order_by_name(link, is_out));
        }
    }
    let is_json = arguments.json || !output::is_terminal();
    match output::screen().filter(|_| !is_json && !arguments.once) {
        Some(out) => terminal::show(out, &runtime, &mut session),
        None => runtime.block_on(session.print(is_json, arguments.once)),
    }
}

/// Returns the commands that run, in the order of their names.
fn all_listed() -> Vec<Listed> {
    Folder::searched().iter().flat_map(Folder::list).collect()
}

/// Returns the command that the user means.
fn chosen(which: Option<&str>, listed: &[Listed]) -> Result<Listed, CommandError> {
    let is_meant =
        |one: &&Listed| which.is_none_or(|which| one.command == which || one.pid.to_string() == which);
    let meant: Vec<&Listed> = listed.iter().filter(is_meant).collect();
    let named = |listed: &[&Listed]| {
        let one = |listed: &&Listed| format!("{} (process {})", listed.command, listed.pid);
        listed.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    match (&meant[..], which) {
        ([one], _) => Ok((*one).clone()),
        ([], Some(which)) if !listed.is_empty() => Err(CommandError::failure(format!(
            "no command `{which}` runs; these run: {}",
            named(&listed.iter().collect::<Vec<_>>())
        ))),
        ([], _) => Err(CommandError::failure(format!(
            "no command runs that can be shown (searched: {}); start `anabranch forward`, or run this as the user who started it",
            Folder::of_user().path().display()
        ))),
        (several, _) => Err(CommandError::usage(format!(
            "several commands run: {}; name one by its command or process",
            named(several)
        ))),
    }
}

/// Connection with the command that is shown.
struct Session {
    client: Client,
    sampler: Sampler,
}

impl Session {
    async fn report(&mut self) -> Result<Report, CommandError> {
        match self.client.ask(&Request::Report).await? {
            Answer::Report(report) => Ok(*report),
            answer => Err(unexpected(answer)),
        }
    }

    async fn sample(&mut self) -> Result<Sample, CommandError> {
        let report = self.report().await?;
        Ok(self.sampler.sample(report))
    }

    /// Takes a link out of use or back.
    async fn order(&mut self, link: &Link, is_out: bool) -> Result<(), CommandError> {
        let Link { local, interface_index, .. } = *link;
        let request = match is_out {
            true => Request::TakeOut { local, interface_index },
            false => Request::TakeBack { local, interface_index },
        };
        match self.client.ask(&request).await? {
            Answer::Done => Ok(()),
            answer => Err(unexpected(answer)),
        }
    }

    async fn order_by_name(&mut self, name: &str, is_out: bool) -> Result<Status, CommandError> {
        let links = self.sample().await?.links;
        let is_meant =
            |link: &&Link| link.interface.as_deref() == Some(name) || link.local.to_string() == name;
        let meant: Vec<&Link> = links.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let known: Vec<String> = links.iter().map(named).collect();
            return Err(CommandError::failure(format!(
                "`{name}` is no link of this command; its links are: {}",
                known.join(", ")
            )));
        }
        for link in meant {
            self.order(link, is_out).await?;
            let state = if is_out { "out of use" } else { "in use again" };
            output::notice(escape(&format!("{} is {state}", named(link))));
        }
        Ok(Status::Success)
    }

    async fn print_metrics(&mut self) -> Result<Status, CommandError> {
        match self.client.ask(&Request::Metrics).await? {
            Answer::Metrics { text } => {
                output::print(&text);
                Ok(Status::Success)
            }
            answer => Err(unexpected(answer)),
        }
    }

    /// Prints samples until the command ends, or Ctrl-C is pressed.
    async fn print(&mut self, is_json: bool, is_once: bool) -> Result<Status, CommandError> {
        let stop = interrupted()?;
        tokio::pin!(stop);
        self.sample().await?;
        loop {
            tokio::select! {
                () = sleep(EVERY) => {}
                () = &mut stop => return Ok(Status::Interrupted),
            }
            let sample = match self.report().await {
                Ok(report) => self.sampler.sample(report),
                Err(_) if !is_once && self.has_ended() => return Ok(Status::Success),
                Err(error) => return Err(error),
            };
            let text = match is_json {
                true => serde_json::to_string(&sample).context("a sample")? + "\n",
                false => frame::plain(&sample),
            };
            if output::print(&text) == Reader::Gone || is_once {
                return Ok(Status::Success);
            }
        }
    }

    /// Returns `true` if the command's socket is gone.
    fn has_ended(&self) -> bool {
        !all_listed().contains(self.client.listed())
    }
}

/// Returns a name of a link for people.
fn named(link: &Link) -> String {
    match &link.interface {
        Some(interface) => format!("{interface} ({})", link.local),
        None => link.local.to_string(),
    }
}

fn unexpected(answer: Answer) -> CommandError {
    match answer {
        Answer::Error { why } => CommandError::failure(why),
        _ => CommandError::failure(
            "the command gave another answer than expected; use the same version of anabranch",
        ),
    }
}

impl From<AskError> for CommandError {
    fn from(error: AskError) -> Self {
        CommandError::failure(error)
    }
}
