//! `anabranch bench -s`.

use std::time::Duration;

use anabranch_net::{Association, Endpoint, Source};
use anyhow::{anyhow, bail};
use tokio::task::JoinSet;

use super::exchange::{Exchange, Outcome};
use super::plan::{Plan, Side};
use super::protocol::{Control, next, send_control};
use super::report::Reporter;
use crate::endpoint::{AcceptedPeer, Admitted};
use crate::exit::{CommandError, Status};
use crate::served_peers::ServedPeers;

/// Maximum number of tests at a time.
const MOST_CLIENTS: usize = 64;

/// Maximum time of a client to request a test, and to close after it.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Serves clients, several at once, until Ctrl-C or the end of the first test if `--one-off` is given. The endpoint accepts only
/// admitted clients.
pub(super) async fn serve(
    endpoint: Endpoint,
    admitted: &Admitted,
    one_off: bool,
    reporter: &Reporter,
) -> Result<Status, CommandError> {
    let stop = crate::signal::interrupted()?;
    tokio::pin!(stop);
    reporter.listening(endpoint.local_addresses(), admitted);
    let (mut tests, mut clients) = (JoinSet::new(), ServedPeers::new(MOST_CLIENTS));
    loop {
        tokio::select! {
            () = &mut stop => return Ok(Status::Interrupted),
            association = endpoint.accept() => {
                let association = association.map_err(|error| CommandError::failure(format!("cannot listen: {error}")))?;
                match admitted.caller(&association) {
                    Ok(caller) => match enter(&mut clients, &association).await {
                        Some(number) => {
                            tests.spawn(async move { (number, client(association, caller).await) });
                        }
                        None => {
                            association.abort();
                            let why = anyhow!("{MOST_CLIENTS} tests run already; try again later");
                            reporter.broken("a client", &why);
                        }
                    },
                    Err(refused) => {
                        association.abort();
                        reporter.broken("a client", &anyhow!("{refused}"));
                    }
                }
            }
            Some(ended) = tests.join_next() => {
                let (number, (name, tested)) =
                    ended.map_err(|error| CommandError::failure(error.to_string()))?;
                clients.leave(number);
                let tested_well = tested.is_ok();
                // Clients are served even if their results cannot be printed.
                match tested {
                    Ok((plan, outcome)) => reporter.served(&name, &plan, &outcome),
                    Err(error) => reporter.broken(&name, &error),
                };
                if one_off && tested_well {
                    return Ok(Status::Success);
                }
            }
        }
    }
}

/// Registers a client, which may evict another one. Returns the client's number, or `None` if the server is full.
async fn enter(clients: &mut ServedPeers<Association>, association: &Association) -> Option<u64> {
    let source = Source::from(association.paths().await.first()?.remote.ip());
    let (number, evicted) = clients.enter_if_due(association.clone(), source).ok()?;
    if let Some(evicted) = evicted {
        evicted.abort();
    }
    Some(number)
}

/// Serves a client and returns its name with the result.
async fn client(association: Association, caller: AcceptedPeer) -> (String, anyhow::Result<(Plan, Outcome)>) {
    let paths = association.paths().await;
    let address = paths.first().map_or_else(|| "a client".to_owned(), |path| path.remote.to_string());
    let name = caller.at(&address);
    let tested = test(&association).await;
    if tested.is_err() {
        // The abort informs the peer. Data that it still sends is not read.
        association.abort();
    }
    let _ = tokio::time::timeout(TIMEOUT, association.closed()).await;
    (name, tested)
}

async fn test(association: &Association) -> anyhow::Result<(Plan, Outcome)> {
    let request = tokio::time::timeout(TIMEOUT, next(association)).await;
    let plan = match request.map_err(|_| anyhow!("it sent no request within {} s", TIMEOUT.as_secs()))?? {
        Control::Request(plan) => plan,
        _ => bail!("its first message is not a request"),
    };
    if let Err(why) = agree(association, &plan) {
        let refused = send_control(association, &Control::Refuse { why: why.clone() }).await;
        // The client closes once it has read the refusal.
        let _ = tokio::time::timeout(TIMEOUT, association.recv()).await;
        return refused.and(Err(anyhow!("its request was refused: {why}")));
    }
    send_control(association, &Control::Begin).await?;
    let mut exchange = Exchange::begin(association, plan, Side::Server, None);
    exchange.run(&mut |_| {}).await?;
    let outcome = exchange.finish().await?;
    let closed = tokio::time::timeout(TIMEOUT, association.recv()).await;
    match closed {
        Ok(Ok(None)) => Ok((plan, outcome)),
        Ok(Ok(Some(_))) => bail!("it sent more messages than agreed"),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => bail!("it did not close within {} s", TIMEOUT.as_secs()),
    }
}

/// Checks that a client may have the test that it requests.
fn agree(association: &Association, plan: &Plan) -> Result<(), String> {
    plan.check()?;
    match association.streams() {
        streams if streams > plan.streams => Ok(()),
        streams => {
            Err(format!("{} streams for data are more than the {} there are", plan.streams, streams - 1))
        }
    }
}
