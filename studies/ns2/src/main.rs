//! Compares goodput under profile `ns2` with that of ns-2, for each setting that ns-2 was run with.

mod compare;
mod point;
mod running;
mod setting;

use std::io::{Write as _, stdout};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser};

use crate::compare::{Comparison, Summary, Verdict};
use crate::point::{Point, all_points};
use crate::running::{Seeds, run_point};

/// Run ns-2's points under profile `ns2` and compare the goodput.
///
/// Each point is run with 30 seeds, and more until our interval is no wider than ns-2's or half a per cent of the
/// mean, at most 200.
#[derive(Debug, Parser)]
#[command(name = "make study NAME=ns2", after_help = EXAMPLES)]
struct Arguments {
    /// Only points with this text in their name
    filter: Option<String>,
    /// Six seeds per point, to find large differences
    #[arg(long)]
    quick: bool,
    /// One JSON object per point and line
    #[arg(long)]
    json: bool,
    /// Worker threads; by default one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  make study NAME=ns2                  all points; minutes
  make study NAME=ns2 ARGS=--quick     all points with six seeds; seconds
  make study NAME=ns2 ARGS=loss10      the points of one family
  make study NAME=ns2 ARGS=--json      for scripts

Exit status: 0 if nine points in ten agree and none is off by more than 8 %, 1
if not, 2 for a wrong command line.";

const HEADER: &str = "\
point                            n  goodput kbit/s     ns-2 kbit/s   difference  path 1      retransmissions  verdict
                                      ours ± 95 %        ± 95 %                   ours ns-2     ours   ns-2
";

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let points = chosen(all_points()?, arguments.filter.as_deref().unwrap_or_default());
    let seeds = if arguments.quick { Seeds::QUICK } else { Seeds::FULL };
    let mut out = stdout().lock();
    if !arguments.json {
        out.write_all(HEADER.as_bytes())?;
    }
    let mut comparisons = Vec::new();
    for point in &points {
        let comparison = run_point(point, seeds, arguments.threads.map(usize::from))?;
        let text = if arguments.json { json(&comparison)? } else { line(&comparison) };
        out.write_all(text.as_bytes())?;
        comparisons.push(comparison);
    }
    let summary = Summary::of(&comparisons);
    if !arguments.json {
        out.write_all(summary_text(&summary).as_bytes())?;
    }
    Ok(if summary.meets_goal() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the points with this text in their name, and ends the program if there is none.
fn chosen(all: Vec<Point>, text: &str) -> Vec<Point> {
    let mut families: Vec<String> =
        all.iter().map(|point| point.id.split('-').next().unwrap_or_default().to_owned()).collect();
    families.dedup();
    let points: Vec<Point> = all.into_iter().filter(|point| point.id.contains(text)).collect();
    if points.is_empty() {
        let message = format!("no point's name contains `{text}`; names begin with: {}", families.join(", "));
        Arguments::command().error(ErrorKind::InvalidValue, message).exit();
    }
    points
}

fn json(comparison: &Comparison) -> anyhow::Result<String> {
    Ok(serde_json::to_string(comparison)? + "\n")
}

fn line(c: &Comparison) -> String {
    let verdict = match c.verdict {
        Verdict::Agrees => "agrees",
        Verdict::Near => "within 8 %",
        Verdict::Off => "OFF",
        Verdict::Exempt => "not judged: ns-2 hung in some runs",
    };
    let share = c.ns2_path1_share.map_or_else(|| "  -  ".to_owned(), |s| format!("{s:.3}"));
    format!(
        "{:<29} {:>4}  {:>8.1} ± {:<5.1}  {:>8.1} ± {:<5.1}  {:>+6.2} %    {:.3} {share}  {:>7.1} {:>6.1}  {verdict}\n",
        c.id,
        c.ours.n,
        c.ours.goodput_kbps,
        c.ours.half_width_kbps,
        c.ns2_goodput_kbps,
        c.ns2_half_width_kbps,
        c.difference_percent,
        c.ours.path1_share,
        c.ours.retransmissions,
        c.ns2_retransmissions,
    )
}

fn summary_text(s: &Summary) -> String {
    let percent = 100.0 * s.agree as f64 / s.judged.max(1) as f64;
    format!(
        "\n{} of {} points ({percent:.0} %) agree with ns-2: within 3 % or inside the joint 95 % interval; {} off by more than \
         8 %; largest difference {:.2} %, mean {:+.2} %; {} more shown but not judged, because runs of ns-2 hung.\n\
         Goodput counts unique DATA chunks that arrived, 1468 B each, over the time after the start at 0.5 s.\n",
        s.agree, s.judged, s.off, s.largest_percent, s.mean_percent, s.exempt,
    )
}
