//! Says how an attempt to connect stands.

use std::convert::Infallible;
use std::time::Duration;

use anabranch_net::Monitor;
use anabranch_transfer::escape;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

use crate::output;

/// Most peers answer sooner, and then there is nothing to say.
const FIRST: Duration = Duration::from_secs(1);
/// Time between two looks on a terminal.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Most redraws of the line per second.
const REDRAWS_PER_S: u8 = 20;
/// Time between two lines where nobody watches.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// An attempt to connect.
pub(super) struct Attempt<'a> {
    pub(super) target: &'a str,
    pub(super) paths: usize,
    pub(super) within: Duration,
}

impl Attempt<'_> {
    /// Tells on standard error how it stands, for as long as it is polled.
    pub(super) async fn watch(&self, monitor: &Monitor) -> Infallible {
        let began = Instant::now();
        tokio::time::sleep(FIRST).await;
        // What is gone with its last handle takes its line along.
        let bar = output::is_err_terminal().then(line);
        loop {
            let report = monitor.report().await.unwrap_or_default();
            let tried = report.associations.iter().map(|association| association.snapshot.paths_tried).max();
            let text = escape(&self.text(tried.unwrap_or(0), began.elapsed()));
            match &bar {
                Some(bar) => bar.set_message(text),
                None => output::notice(text),
            }
            tokio::time::sleep(if bar.is_some() { LOOK_EVERY } else { LINE_EVERY }).await;
        }
    }

    fn text(&self, tried: usize, waited: Duration) -> String {
        let Attempt { target, paths, within } = self;
        // The peer has answered, and its answer to the second message is waited for.
        let tried = match tried {
            0 => "it has answered".to_owned(),
            tried => format!("{tried} of {paths} {} tried", if *paths == 1 { "path" } else { "paths" }),
        };
        format!("connecting to {target}: {tried}, {} s of {} s", waited.as_secs(), within.as_secs_f64())
    }
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
    fn the_line_says_how_many_paths_were_tried_and_how_long_it_may_take() {
        let within = Duration::from_secs(30);
        let attempt = Attempt { target: "example.org", paths: 3, within };
        assert_eq!(
            attempt.text(2, Duration::from_millis(1500)),
            "connecting to example.org: 2 of 3 paths tried, 1 s of 30 s"
        );
        assert_eq!(
            attempt.text(0, Duration::from_secs(4)),
            "connecting to example.org: it has answered, 4 s of 30 s"
        );
        let attempt = Attempt { paths: 1, ..attempt };
        assert!(attempt.text(1, within).contains("1 of 1 path tried"));
    }
}
