//! `anabranch bench -c`.

use std::time::Duration;

use anabranch_net::Association;
use anyhow::{anyhow, bail};
use tokio::sync::mpsc;

use super::exchange::{Exchange, SenderInterval};
use super::plan::{Plan, Side};
use super::protocol::{Control, next, send_control};
use super::report::Reporter;
use crate::exit::{CommandError, Status};
use crate::output::Reader;

/// Maximum time of a server to answer a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time to wait for the end of the association, after the figures have arrived.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Requests a test, takes part in it, and reports its results.
pub(super) async fn test(
    association: &Association,
    target: &str,
    plan: Plan,
    reporter: &mut Reporter,
) -> Result<Status, CommandError> {
    let stop = crate::signal::interrupted()?;
    tokio::pin!(stop);
    let because = |error: anyhow::Error| CommandError::failure(format!("{target}: {error:#}"));
    tokio::select! {
        () = &mut stop => return interrupted(association).await,
        agreed = ask(association, plan) => agreed.map_err(because)?,
    }
    let paths = association.paths().await;
    if reporter.started(target, &plan, &paths) == Reader::Gone {
        return Ok(Status::Success);
    }
    let (intervals, mut own) = mpsc::unbounded_channel();
    let mut exchange = Exchange::begin(association, plan, Side::Client, Some(intervals));
    let (from_peer, mut theirs) = mpsc::unbounded_channel();
    let mut heard = |heard: SenderInterval| drop(from_peer.send(heard));
    let ran = loop {
        tokio::select! {
            biased;
            () = &mut stop => {
                reporter.ended(&exchange.partial_outcome().await, Some(exchange.elapsed_s()));
                return interrupted(association).await;
            }
            Some(heard) = own.recv() => if reporter.interval(&heard) == Reader::Gone { return Ok(Status::Success) },
            Some(heard) = theirs.recv() => if reporter.interval(&heard) == Reader::Gone { return Ok(Status::Success) },
            ran = exchange.run(&mut heard) => break ran,
        }
    };
    let so_far = exchange.partial_outcome().await;
    let finished = match ran {
        Ok(()) => exchange.finish().await,
        Err(error) => Err(error),
    };
    while let Some(heard) = own.try_recv().ok().or_else(|| theirs.try_recv().ok()) {
        reporter.interval(&heard);
    }
    match finished {
        Ok(outcome) => {
            reporter.ended(&outcome, None);
            let _ = tokio::time::timeout(END_WITHIN, association.shutdown()).await;
            Ok(Status::Success)
        }
        Err(error) => {
            reporter.ended(&so_far, None);
            association.abort();
            let _ = tokio::time::timeout(END_WITHIN, association.closed()).await;
            Err(because(error))
        }
    }
}

async fn ask(association: &Association, plan: Plan) -> anyhow::Result<()> {
    send_control(association, &Control::Request(plan)).await?;
    let answer = tokio::time::timeout(TIMEOUT, next(association)).await;
    match answer.map_err(|_| anyhow!("the server did not answer within {} s", TIMEOUT.as_secs()))?? {
        Control::Begin => Ok(()),
        Control::Refuse { why } => bail!("the server refused the test: {}", printable(&why)),
        _ => bail!(
            "the server answered with something else; start `anabranch bench -s` there, of this version"
        ),
    }
}

/// Removes control characters from text of the peer, which must not move the terminal's cursor.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(400).collect()
}

/// Aborts the association, so that the peer knows before the process ends.
async fn interrupted(association: &Association) -> Result<Status, CommandError> {
    association.abort();
    let _ = tokio::time::timeout(END_WITHIN, association.closed()).await;
    Ok(Status::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_the_peer_are_not_printed() {
        assert_eq!(printable("no\u{1b}[2J\nway"), "no[2Jway");
    }
}
