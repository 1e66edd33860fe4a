//! Progress bars.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::output;

const TEMPLATE: &str = "{wide_bar} {pos} of {len} runs{pace}";
/// Template for commands of known duration.
const SECONDS: &str = "{wide_bar} {pos} of {len} s";
const ENDLESS: &str = "{pos} s";

/// Returns a bar on standard error, or a hidden one if it is not a terminal.
pub(crate) fn bar(runs: usize, quiet: bool) -> ProgressBar {
    let (bar, seen) = blank(Some(runs as u64), quiet);
    let Ok(style) = ProgressStyle::with_template(TEMPLATE) else { return bar };
    bar.set_style(style.progress_chars("=> ").with_key(
        "pace",
        |state: &ProgressState, text: &mut dyn Write| {
            // Writing to a string cannot fail.
            let _ = text.write_str(&pace(state.pos(), state.per_sec(), state.eta()));
        },
    ));
    if seen {
        bar.enable_steady_tick(Duration::from_millis(250));
    }
    bar
}

/// Returns a bar of elapsed seconds, out of a total if it is known.
pub(crate) fn seconds(all: Option<u64>, quiet: bool) -> ProgressBar {
    let (bar, _) = blank(all, quiet);
    let template = if all.is_some() { SECONDS } else { ENDLESS };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

/// Returns a bar, and `true` if it is visible.
fn blank(length: Option<u64>, quiet: bool) -> (ProgressBar, bool) {
    let seen = !quiet && output::is_err_terminal();
    let target = if seen { output::err_target(10) } else { ProgressDrawTarget::hidden() };
    (ProgressBar::with_draw_target(length, target), seen)
}

/// Returns the rate and the remaining time, once they can be computed.
fn pace(done: u64, per_second: f64, left: Duration) -> String {
    if done == 0 || !per_second.is_finite() || per_second <= 0.0 {
        return String::new();
    }
    let rate = match per_second {
        fast if fast >= 10.0 => format!("{fast:.0}/s"),
        medium if medium >= 1.0 => format!("{medium:.1}/s"),
        slow => format!("{:.1} s each", 1.0 / slow),
    };
    format!(", {rate}, ETA {}", clock(left))
}

fn clock(left: Duration) -> String {
    let seconds = left.as_secs();
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_unknown_before_the_first_run_ends() {
        assert_eq!(pace(0, 0.0, Duration::ZERO), "");
        assert_eq!(pace(3, 0.5, Duration::from_secs(62)), ", 2.0 s each, ETA 1:02");
        assert_eq!(pace(3, 25.0, Duration::from_secs(3723)), ", 25/s, ETA 1:02:03");
    }
}
