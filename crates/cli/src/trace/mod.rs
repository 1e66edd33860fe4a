//! `anabranch trace`: recorded networks.

mod input;
mod output_file;
mod statistics;

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::path::PathBuf;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_lab::recorded::Model;
use anabranch_sim::CapacityTrace;
use clap::{Args, Subcommand, ValueEnum};

use crate::exit::{CommandError, Status};
use crate::quantity;
use crate::relay::Cut;

use self::input::{Input, Recorded};
use self::output_file::Output;
use self::statistics::Group;

const EXAMPLES: &str = "\
Examples:
  Print rates, outages and the correlation of two operators in one table:
    anabranch trace info drive.csv --column rate_a --column rate_b
  Convert one of them to a file of Mahimahi, and cut a minute out of it:
    anabranch trace convert drive.csv --column rate_a --to mahimahi --out a
    anabranch trace cut a 30s..90s --to mahimahi --out minute
  Fit a model to both operators, and generate an hour like it:
    anabranch trace fit drive-*.csv --column rate_a --column rate_b \\
        --source 'my drives' --out drives.toml
    anabranch trace make drives.toml --duration 1h --out generated.csv

A trace is a file of Mahimahi, or a table with a time and a rate in each line.
Links follow it with the key `capacity` of scenario files.";

/// Inspect, convert and generate traces of recorded networks.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArguments {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(Debug, Subcommand)]
enum TraceCommand {
    Info(InfoArguments),
    Convert(ConvertArguments),
    Cut(CutArguments),
    Fit(FitArguments),
    Make(MakeArguments),
}

/// Print rates, outages, autocorrelation, and the correlation between traces.
#[derive(Debug, Args)]
struct InfoArguments {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    steps: Steps,

    /// Print one JSON object per trace and pair
    #[arg(long)]
    json: bool,
}

/// Convert a trace to another format.
#[derive(Debug, Args)]
struct ConvertArguments {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    target: Target,
}

/// Write a section of a trace.
#[derive(Debug, Args)]
struct CutArguments {
    /// File with the trace
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Beginning and end of the section, such as 30s..90s
    #[arg(value_name = "FROM..TO")]
    section: Cut,

    #[command(flatten)]
    columns: input::TableArguments,

    #[command(flatten)]
    target: Target,
}

/// Fit a semi-Markov model of about 15 kB; each file is a section.
#[derive(Debug, Args)]
struct FitArguments {
    #[command(flatten)]
    input: Input,

    #[command(flatten)]
    steps: Steps,

    /// Origin and licence of the data, stored in the model
    #[arg(long, value_name = "TEXT", default_value = "")]
    source: String,

    #[command(flatten)]
    output: Output,
}

/// Generate traces from a model, as a table of seconds and Mbit/s.
#[derive(Debug, Args)]
struct MakeArguments {
    /// File that `anabranch trace fit` wrote
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// Duration of the traces
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = read_span)]
    duration: Span,

    /// Seed of the traces
    #[arg(long, value_name = "N", default_value = "1")]
    seed: NonZeroU64,

    #[command(flatten)]
    output: Output,
}

/// Step of rates, and threshold of outages.
#[derive(Clone, Copy, Debug, Args)]
struct Steps {
    /// Time over which rates are averaged
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = read_span)]
    step: Span,

    /// Rate below which the network is out
    #[arg(long, value_name = "RATE", default_value = "100kbit", value_parser = quantity::read_rate)]
    outage: Rate,
}

/// Format of the output.
#[derive(Debug, Args)]
struct Target {
    /// Format to write
    #[arg(long, value_enum, default_value_t = Format::Rates)]
    to: Format,

    /// Time over which rates are averaged in a table
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = read_span)]
    step: Span,

    /// Factor of the rates
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    scale: f64,

    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Milliseconds of opportunities to deliver 1,504 bytes
    Mahimahi,
    /// Seconds and Mbit/s
    Rates,
    /// Seconds and bytes per second
    Bytes,
}

fn read_span(text: &str) -> Result<Span, String> {
    let time = quantity::read_time(text)?;
    let nanos = u64::try_from(time.as_nanos()).ok().filter(|nanos| *nanos > 0);
    nanos.map(Span::from_nanos).ok_or_else(|| "expected a time above zero".to_owned())
}

/// Runs the command.
pub(crate) fn trace(arguments: &TraceArguments) -> Result<Status, CommandError> {
    match &arguments.command {
        TraceCommand::Info(info) => {
            let Steps { step, outage } = info.steps;
            statistics::print(&info.input.groups(step)?, step, outage, info.json);
        }
        TraceCommand::Convert(convert) => convert.target.write(&convert.input.load_one()?)?,
        TraceCommand::Cut(cut) => {
            let recorded = cut.columns.load(&cut.file)?;
            let [from, to] = [cut.section.from, cut.section.to].map(|time| time.since(Time::ZERO));
            let section = recorded.trace.cut(from, to).map_err(|error| recorded.fault(&error))?;
            cut.target.write(&Recorded { trace: section, ..recorded })?;
        }
        TraceCommand::Fit(fit) => fit.output.write(fit.model()?.to_toml().as_bytes())?,
        TraceCommand::Make(make) => make.output.write(make.table()?.as_bytes())?,
    }
    Ok(Status::Success)
}

impl Target {
    fn write(&self, recorded: &Recorded) -> Result<(), CommandError> {
        let scaled = match self.scale {
            1.0 => Ok(recorded.trace.clone()),
            factor => recorded.trace.scaled(factor),
        };
        let scaled = scaled.map_err(|error| recorded.fault(&error))?;
        let text = self.text(&scaled).map_err(|error| recorded.fault(&error))?;
        self.output.write(&text)
    }

    fn text(&self, trace: &CapacityTrace) -> std::io::Result<Vec<u8>> {
        let mut text = Vec::new();
        match self.to {
            Format::Mahimahi => trace.write_mahimahi(&mut text)?,
            Format::Rates => trace.write_rates(self.step, &mut text)?,
            Format::Bytes => {
                let rates = trace.rates(self.step).map_err(std::io::Error::other)?;
                text.extend_from_slice(b"second,bytes_per_second\n");
                for (at, rate) in rates {
                    text.extend_from_slice(
                        format!("{},{}\n", at.as_secs_f64(), rate.as_bps() / 8).as_bytes(),
                    );
                }
            }
        }
        Ok(text)
    }
}

impl FitArguments {
    fn model(&self) -> Result<Model, CommandError> {
        let Steps { step, outage } = self.steps;
        let mut groups = self.input.groups(step)?;
        if self.input.column_names().is_empty() {
            // Each file is a section of one trace.
            let sections = groups.drain(..).flat_map(|group| group.sections).collect();
            groups.push(Group { name: "rate".to_owned(), sections });
        }
        let count = groups.first().map_or(0, |group| group.sections.len());
        let section = |index: usize| groups.iter().map(|group| group.sections[index].clone()).collect();
        let sections: Vec<Vec<Vec<u64>>> = (0..count).map(section).collect();
        let names = groups.iter().map(|group| group.name.clone()).collect();
        Model::fit(&sections, names, step, outage.as_bps(), self.source.clone())
            .map_err(CommandError::failure)
    }
}

impl MakeArguments {
    fn table(&self) -> Result<String, CommandError> {
        let file = self.model.display();
        let text = std::fs::read_to_string(&self.model)
            .map_err(|error| CommandError::failure(format_args!("{file}: cannot be read: {error}")))?;
        let model =
            Model::parse(&text).map_err(|error| CommandError::failure(format_args!("{file}: {error}")))?;
        let steps = self.duration.as_nanos().div_ceil(model.step.as_nanos());
        let most = anabranch_sim::trace::MAX_POINTS;
        let steps = usize::try_from(steps).ok().filter(|steps| *steps <= most).ok_or_else(|| {
            CommandError::usage(format_args!("--duration: more than {most} steps of the model; give less"))
        })?;
        let traces = model.generate(steps, self.seed.get());
        let mut table = format!("seconds,{}\n", model.names.join(","));
        for at in 0..steps {
            let _ = write!(table, "{}", model.step.times(at as u64).as_secs_f64());
            for rates in &traces {
                let _ = write!(table, ",{}.{:06}", rates[at] / 1_000_000, rates[at] % 1_000_000);
            }
            table.push('\n');
        }
        Ok(table)
    }
}
