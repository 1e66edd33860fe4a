//! Opening an association.

use std::sync::Arc;
use std::time::Duration;

use anabranch_identity::IdentityError;
use anabranch_net::route_selection::{
    InputNames, RemoteChoice, RouteError, RouteSelection, Target, connect_failure_message,
};
use anabranch_net::{Config, ConnectError, ConnectRetries, Endpoint, PathAddress, Peer, Protection, Refusal};
use pyo3::prelude::*;
use tokio_util::task::AbortOnDropHandle;

use super::association::Association;
use super::failure::Failure;
use super::handle::SocketOwner;
use super::operation::Operation;
use super::protection::{KeyChoice, host_name};
use super::runtime::{Background, background};
use super::settings::{Settings, seconds, within};

/// Keywords of `anabranch.connect` and `anabranch.listen`.
pub(super) const KEYWORDS: InputNames =
    InputNames { local: "local", remote: "remote", listen: "addresses", lists: "see `anabranch paths`" };

/// Opens an association from these local addresses with a peer that has these remote ones.
#[pyfunction]
pub fn connect(
    remote: Vec<String>,
    local: Vec<String>,
    settings: Settings,
    sctp_port: i64,
    connect_timeout_s: f64,
) -> PyResult<Operation> {
    let timeout = seconds("connect_timeout_s", connect_timeout_s)?;
    let config = settings.config()?.connect_timeout(timeout);
    let sctp_port = within("sctp_port", sctp_port, 1..=i64::from(u16::MAX))? as u16;
    let background = background()?;
    let attempt = Attempt { remote, local, sctp_port, config, timeout, keys: settings.keys()? };
    // The query of the local interfaces takes a while, for which the event loop must not wait.
    let opened = background.runtime.spawn(attempt.open(Arc::clone(&background)));
    let opened = AbortOnDropHandle::new(opened);
    Ok(Operation::new(async move {
        opened.await.unwrap_or_else(|fault| Err(Failure::Other(format!("the attempt broke off: {fault}"))))
    }))
}

struct Attempt {
    remote: Vec<String>,
    local: Vec<String>,
    sctp_port: u16,
    config: Config,
    timeout: Duration,
    keys: KeyChoice,
}

impl Attempt {
    async fn open(self, background: Arc<Background>) -> Result<Association, Failure> {
        let name = self.remote.join(", ");
        let wrong = |error: IdentityError| Failure::Connect(format!("{name}: {error}"));
        let keys = self.keys.open().map_err(wrong)?;
        let selection = RouteSelection::new(self.local.clone(), ends(&self.remote).await?);
        let protection = match &keys {
            Some(keys) => keys.to_connect().map_err(wrong)?,
            None => Protection::Insecure,
        };
        let (endpoint, association) = self.connect(&name, &selection, protection).await?;
        // Several names are addresses of one peer, whose key is stored under the first one.
        if let (Some(keys), Some(first)) = (&keys, self.remote.first()) {
            keys.confirm(&association, &host_name(first)?)?;
        }
        let keeper = SocketOwner::Own(endpoint, background.runtime.handle().clone());
        Ok(Association::new(&background, association, keeper, &name))
    }

    /// Connects from a new endpoint. An attempt that ended without a verdict of the peer is repeated.
    async fn connect(
        &self,
        name: &str,
        selection: &RouteSelection,
        protection: Protection,
    ) -> Result<(Endpoint, anabranch_net::Association), Failure> {
        let named = |error: RouteError| Failure::Argument(format!("{name}: {}", error.named(KEYWORDS)));
        let paths = selection.paths().map_err(named)?;
        let config = selection.configure(self.config.clone());
        let mut retries = ConnectRetries::within(self.timeout).accepting_refusals();
        loop {
            let builder = selection.endpoint(&paths, protection.clone());
            let endpoint = builder.bind().map_err(|error| Failure::Connect(format!("{name}: {error}")))?;
            selection.follow(&endpoint, &paths);
            let peer = Peer::new(paths.iter().copied()).sctp_port(self.sctp_port);
            match endpoint.connect(peer, config.clone()).await {
                Ok(association) => return Ok((endpoint, association)),
                Err(error) if retries.admits_another(&error) => retries.pause().await,
                Err(error) => return Err(refused(name, &paths, &error, self.timeout)),
            }
        }
    }
}

/// Resolves the names of the peer: a single name to all of its addresses, each of several names to its first address.
async fn ends(remote: &[String]) -> Result<RemoteChoice, Failure> {
    let mut asked = Vec::new();
    for text in remote {
        let target = Target::read(text).map_err(|error| Failure::Argument(format!("remote {error}")))?;
        let addresses =
            target.resolve().await.map_err(|error| Failure::Connect(format!("remote {error}")))?;
        if remote.len() == 1 {
            return Ok(RemoteChoice::Resolved { host: text.clone(), addresses });
        }
        asked.extend(addresses.first());
    }
    Ok(RemoteChoice::Named(asked))
}

fn refused(name: &str, paths: &[PathAddress], error: &ConnectError, timeout: Duration) -> Failure {
    let message = connect_failure_message(name, paths, error, timeout);
    match error {
        ConnectError::NoAnswer => Failure::Timeout(message),
        ConnectError::RefusedByPeer => Failure::Refused(message),
        ConnectError::Unreachable(refused)
            if refused.iter().all(|refused| refused.refusal == Refusal::PortClosed) =>
        {
            Failure::Refused(message)
        }
        ConnectError::Path(_) | ConnectError::Refused(_) => Failure::Argument(message),
        _ => Failure::Connect(message),
    }
}
