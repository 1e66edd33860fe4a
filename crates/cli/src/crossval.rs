//! `anabranch crossval`: results of this simulator compared with those of ns-2.

use anabranch_lab::crossval::{Comparison, Point, Seeds, Summary, Verdict, all_points, run_point, summarise};
use clap::Args;

use crate::exit::{CommandError, Status};
use crate::interrupt;
use crate::output::{self, Reader};
use crate::progress;

/// Run ns-2's points under profile `ns2` and compare.
///
/// Each point is run with 30 seeds, and more until our interval is no wider than ns-2's or half a per cent of the
/// mean, at most 200.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CrossvalArguments {
    /// Only points whose name contains this
    filter: Option<String>,
    /// Six seeds a point, to see whether something is badly off
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
  anabranch crossval                all points; minutes
  anabranch crossval --quick        all points with six seeds; seconds
  anabranch crossval loss10         the points of one family
  anabranch crossval --json         for scripts

Exit status: 0 if nine points in ten agree and none is off by more than 8 %, 1
if not.";

const HEADER: &str = "\
point                            n  goodput kbit/s     ns-2 kbit/s   difference  path 1      retransmissions  verdict
                                      ours ± 95 %        ± 95 %                   ours ns-2     ours   ns-2
";

/// Runs and prints the points, one after the other.
pub(crate) fn crossval(arguments: &CrossvalArguments) -> Result<Status, CommandError> {
    let points = chosen(arguments)?;
    let seeds = if arguments.quick { Seeds::QUICK } else { Seeds::FULL };
    let bar = progress::bar(points.len(), arguments.json);
    let stop = interrupt::watch(&bar);
    if !arguments.json && output::print(HEADER) == Reader::Gone {
        return Ok(Status::Success);
    }
    let mut comparisons = Vec::new();
    for point in &points {
        let comparison =
            run_point(point, seeds, arguments.threads.map(usize::from), stop).map_err(anyhow::Error::from)?;
        if interrupt::was_pressed() {
            break;
        }
        bar.inc(1);
        let line = if arguments.json { json(&comparison)? } else { line(&comparison) };
        if bar.suspend(|| output::print(&line)) == Reader::Gone {
            return Ok(Status::Success);
        }
        comparisons.push(comparison);
    }
    bar.finish_and_clear();
    Ok(conclude(arguments, &comparisons, points.len()))
}

fn chosen(arguments: &CrossvalArguments) -> Result<Vec<Point>, CommandError> {
    let all = all_points().map_err(anyhow::Error::from)?;
    let wanted = arguments.filter.as_deref().unwrap_or_default();
    let points: Vec<Point> = all.iter().filter(|p| p.id.contains(wanted)).cloned().collect();
    if points.is_empty() {
        let mut groups: Vec<&str> = all.iter().map(|p| p.id.split('-').next().unwrap_or_default()).collect();
        groups.dedup();
        return Err(CommandError::usage(format!(
            "no point's name contains `{wanted}`; names begin with: {}",
            groups.join(", ")
        )));
    }
    Ok(points)
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

fn conclude(arguments: &CrossvalArguments, comparisons: &[Comparison], planned: usize) -> Status {
    let summary = summarise(comparisons);
    if !arguments.json {
        output::print(&summary_text(&summary));
    }
    if comparisons.len() < planned {
        output::notice(format_args!(
            "interrupted: {} of {}",
            comparisons.len(),
            output::count(planned as u64, "point", "points")
        ));
        return Status::Interrupted;
    }
    if summary.meets_goal() { Status::Success } else { Status::Failure }
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
