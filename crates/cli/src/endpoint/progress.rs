//! Progress of an attempt to connect.

use std::convert::Infallible;
use std::time::Duration;

use anabranch_net::Monitor;
use anabranch_transfer::escape;
use console::Term;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::columns::{elide_middle, width};
use crate::output::{self, count};

/// Time without output. Most peers answer sooner.
const FIRST: Duration = Duration::from_secs(1);
/// Time between two updates on a terminal.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of redraws of the line per second.
const REDRAWS_PER_S: u8 = 20;
/// Time between two lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Attempt<'a> {
    pub(super) target: &'a str,
    pub(super) paths: usize,
    pub(super) within: Duration,
}

impl Attempt<'_> {
    /// Prints the progress on standard error while it is polled.
    pub(super) async fn watch(&self, monitor: &Monitor) -> Infallible {
        let began = Instant::now();
        tokio::time::sleep(FIRST).await;
        // Dropping the last handle of the bar removes its line.
        let bar = output::is_err_terminal().then(line);
        loop {
            let report = monitor.report().await.unwrap_or_default();
            let tried = report.associations.iter().map(|association| association.snapshot.paths_tried).max();
            let (tried, waited, target) = (tried.unwrap_or(0), began.elapsed(), escape(self.target));
            let text = self.text(&target, tried, waited);
            match &bar {
                Some(bar) => bar.set_message(self.text_within(terminal_columns(), &target, tried, waited)),
                None => output::notice(text),
            }
            tokio::time::sleep(if bar.is_some() { LOOK_EVERY } else { LINE_EVERY }).await;
        }
    }

    /// Returns the text for a terminal of this width: the middle of the target is cut out if it does not fit.
    fn text_within(&self, columns: usize, target: &str, tried: usize, waited: Duration) -> String {
        let others = width(&self.text("", tried, waited));
        self.text(&elide_middle(target, columns.saturating_sub(others)), tried, waited)
    }

    fn text(&self, target: &str, tried: usize, waited: Duration) -> String {
        let Attempt { paths, within, .. } = self;
        // The peer has answered, and its answer to the second message is pending.
        let tried = match tried {
            0 => "it has answered".to_owned(),
            tried => format!("{tried} of {} tried", count(*paths as u64, "path", "paths")),
        };
        format!("connecting to {target}: {tried}, {} s of {} s", waited.as_secs(), within.as_secs_f64())
    }
}

fn terminal_columns() -> usize {
    Term::stderr().size().1.into()
}

fn line() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, output::err_target(REDRAWS_PER_S));
    match ProgressStyle::with_template("{msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_number_of_tried_paths_and_time_limit() {
        let within = Duration::from_secs(30);
        let attempt = Attempt { target: "example.org", paths: 3, within };
        assert_eq!(
            attempt.text("example.org", 2, Duration::from_millis(1500)),
            "connecting to example.org: 2 of 3 paths tried, 1 s of 30 s"
        );
        assert_eq!(
            attempt.text("example.org", 0, Duration::from_secs(4)),
            "connecting to example.org: it has answered, 4 s of 30 s"
        );
        let attempt = Attempt { paths: 1, ..attempt };
        assert!(attempt.text("example.org", 1, within).contains("1 of 1 path tried"));
    }

    #[test]
    fn long_target_is_cut_to_the_width_of_the_terminal() {
        let attempt = Attempt { target: "", paths: 3, within: Duration::from_secs(15) };
        let target = format!("{}.example.org", "a".repeat(200));
        let text = attempt.text_within(60, &target, 2, Duration::from_secs(12));
        assert_eq!(width(&text), 60, "{text}");
        assert!(text.ends_with(".org: 2 of 3 paths tried, 12 s of 15 s"), "{text}");
    }
}
