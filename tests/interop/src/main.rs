//! This project's side of the tests with other SCTP stacks: one association over real UDP sockets, controlled by the command line.
//!
//! Events are written to standard error, one JSON object per line. Standard output carries only content.

mod arguments;
mod report;
mod work;

use std::error::Error;
use std::process::ExitCode;

use anabranch_net::{Association, AssociationEvent, CloseReason, Config, Endpoint, Peer, Protection};
use clap::Parser;
use serde_json::json;
use tokio::sync::watch;

use crate::arguments::{Arguments, Ending, LIMIT};
use crate::report::write_line;
use crate::work::Tally;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match tokio::time::timeout(LIMIT, run(&arguments)).await {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            write_line(&json!({"event": "error", "reason": error.to_string()}));
            ExitCode::FAILURE
        }
        Err(_) => {
            write_line(&json!({"event": "error", "reason": "it takes too long"}));
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let config = arguments.config()?;
    let endpoint = bind(arguments, &config)?;
    let association = associate(&endpoint, arguments, config).await?;
    let paths = association.paths().await.len();
    write_line(&json!({"event": "up", "paths": paths, "streams": association.streams()}));
    tokio::spawn(tell_events(association.clone()));

    let (sender, mut tally) = watch::channel(Tally::default());
    let receiver = tokio::spawn(work::receive(association.clone(), arguments.work.clone(), sender));
    if let Err(error) = work::send(&association, &arguments.work).await {
        write_line(&json!({"event": "send-failed", "reason": error.to_string()}));
    }
    let (bytes, messages) = work::due(&arguments.work, arguments.expect_bytes);
    tally.wait_for(|tally| tally.over || tally.bytes >= bytes && tally.reliable >= messages).await?;
    let outcome = end(&association, arguments.end).await;
    receiver.await?;
    let received = tally.borrow().as_json();
    report::end(&endpoint, outcome, received, &association.snapshot().await).await;
    Ok(())
}

fn bind(arguments: &Arguments, config: &Config) -> Result<Endpoint, Failure> {
    let mut builder = Endpoint::builder(Protection::Insecure).sctp_port(arguments.sctp);
    for local in arguments.locals() {
        builder = builder.local(local);
    }
    if arguments.routes.is_empty() {
        builder = builder.accept(config.clone());
    }
    Ok(builder.bind()?)
}

async fn associate(
    endpoint: &Endpoint,
    arguments: &Arguments,
    config: Config,
) -> Result<Association, Failure> {
    if arguments.routes.is_empty() {
        write_line(&json!({"event": "listening"}));
        return Ok(endpoint.accept().await?);
    }
    let routes = arguments.routes.iter().map(|(_, route)| *route);
    Ok(endpoint.connect(Peer::new(routes).sctp_port(arguments.remote_sctp), config).await?)
}

async fn end(association: &Association, ending: Ending) -> Result<(), CloseReason> {
    match ending {
        Ending::Wait => association.closed().await,
        Ending::Shutdown => association.shutdown().await,
        Ending::Abort => {
            association.abort();
            association.closed().await
        }
    }
}

async fn tell_events(association: Association) {
    let mut events = association.events();
    // A clone here would prevent the association from ending with its last handle.
    drop(association);
    while let Some(event) = events.next().await {
        if let Ok(AssociationEvent::PathState { path, state }) = event {
            write_line(&json!({"event": "path", "path": path.index(), "state": format!("{state:?}")}));
        }
    }
}
