//! Options for opening an association.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_forward::Tally;
use anabranch_net::route_selection::{
    RemoteChoice, RouteSelection, Target, connect_failure_message, endpoint_for, read_destination,
};
use anabranch_net::{
    Association, Config, ConnectError, ConnectRetries, DEFAULT_CONNECT_TIMEOUT, Device, Endpoint,
    EndpointBuilder, PathAddress, Peer,
};
use anabranch_observe::{LinkCost, Role};
use anabranch_transfer::escape;
use clap::Args;
use tokio::runtime::Runtime;

use super::progress::Attempt;
use super::protection::{Connecting, Expected};
use super::rendezvous::{Meeting, RendezvousServer, read_server};
use super::{AssociationOptions, OPTIONS};
use crate::costs::{Costs, PathDescription, read_path};
use crate::exit::CommandError;
use crate::{output, quantity};

const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// Options for connecting. The target is a separate argument.
#[derive(Clone, Debug, Args)]
pub(crate) struct ConnectOptions {
    /// Local address or interface of a path, with its cost; can be repeated [default: those that `anabranch paths` calls usable].
    /// Cost: `,metered` (for data that free paths cannot carry), `,only=backup` (while no other path works), `,limit=2GB/month`
    #[arg(long = "path", value_name = "ADDR|IFACE[,COST]", value_parser = read_path)]
    pub(crate) paths: Vec<PathDescription>,

    /// Destination of the paths instead of HOST's own addresses, such as a relay; once for all paths, or once for each --path
    #[arg(long, value_name = "ADDR:PORT", value_parser = read_destination)]
    pub(crate) to: Vec<SocketAddr>,

    /// Time to wait for an answer of the peer [default: 15s]
    #[arg(long, value_name = "TIME", value_parser = read_timeout)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Find the host by its key at this rendezvous server, and reach it through the NATs of both sides. HOST is its key, or its name in
    /// known_hosts [port: 9898]
    #[arg(long, value_name = "SERVER[:PORT]", value_parser = read_server, conflicts_with_all = ["to", "insecure", "ca"])]
    pub(crate) rendezvous: Option<RendezvousServer>,

    #[command(flatten)]
    pub(crate) association: AssociationOptions,

    /// Costs of the paths. All endpoints of a command share them.
    #[arg(skip)]
    pub(crate) costs: Costs,
}

fn read_timeout(text: &str) -> Result<Duration, String> {
    quantity::read_time_within(text, SHORTEST_TIMEOUT, LONGEST_TIMEOUT)
}

#[derive(Debug)]
pub(crate) struct FailedAttempt {
    pub(crate) error: CommandError,
    /// Cause of the failure, if another attempt can have another result.
    cause: Option<ConnectError>,
}

impl From<CommandError> for FailedAttempt {
    fn from(error: CommandError) -> Self {
        FailedAttempt { error, cause: None }
    }
}

impl FailedAttempt {
    /// Returns a failure to meet a peer, which counts as an attempt without an answer.
    fn unmet(error: CommandError) -> Self {
        FailedAttempt { error, cause: Some(ConnectError::NoAnswer) }
    }

    /// Returns `true` if another attempt may follow after a pause.
    pub(crate) fn admits_another(&self, retries: &mut ConnectRetries) -> bool {
        self.cause.as_ref().is_some_and(|cause| retries.admits_another(cause))
    }

    /// Returns `true` if no packet of the peer arrived.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.cause, Some(ConnectError::NoAnswer))
    }
}

impl ConnectOptions {
    /// Runs a command that connects, and counts the last bytes of its links, also after a failure. Returns the result, and the states
    /// of all links with a cost or limit.
    pub(crate) fn block_on<T>(
        &self,
        runtime: &Runtime,
        command: impl Future<Output = T>,
    ) -> (T, Vec<LinkCost>) {
        self.costs.block_on(runtime, command)
    }

    /// Lets `anabranch top` show the endpoints of this command, its links with a cost or limit, and forwarded connections from now
    /// on. Call it in a runtime.
    pub(crate) fn open_control(&self, command: &str, tally: Option<&Tally>) {
        self.association.open_control_with(command, tally, Some(self.costs.source()));
    }

    /// Returns the first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        self.given_to_connect().or_else(|| self.association.given())
    }

    /// Returns the first option that was given and has no meaning on a side that listens.
    pub(crate) fn given_to_connect(&self) -> Option<&'static str> {
        let given = [
            ("--path", !self.paths.is_empty()),
            ("--to", !self.to.is_empty()),
            ("--connect-timeout", self.connect_timeout.is_some()),
            ("--rendezvous", self.rendezvous.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns the retries of a command without `--retry`: those that begin within the time of one attempt.
    pub(crate) fn retries(&self) -> ConnectRetries {
        ConnectRetries::within(self.within()).accepting_refusals()
    }

    /// Opens an association with `HOST[:PORT]` and checks that the peer is the expected one. A handshake that ends without a
    /// verdict of the peer is repeated as `retries` allows. Unless `quiet`, standard error reports missing protection once the
    /// options are valid, the progress of a long attempt, and each new reason for another one.
    pub(crate) async fn open_with(
        &self,
        target: &str,
        quiet: bool,
        (expected, mut retries): (Expected, ConnectRetries),
        configure: impl Fn(Config) -> Config,
    ) -> Result<(Endpoint, Association), CommandError> {
        let mut noted = None;
        loop {
            let failed = match self.open_once(target, quiet, expected, &configure).await {
                Ok(opened) => return Ok(opened),
                Err(failed) => failed,
            };
            if !failed.admits_another(&mut retries) {
                return Err(failed.error);
            }
            let reason = failed.error.to_string().lines().next().unwrap_or_default().to_owned();
            if !quiet && noted.as_ref() != Some(&reason) {
                output::notice(escape(&format!(
                    "{reason}: trying again for up to {} s",
                    retries.left().as_secs()
                )));
                noted = Some(reason);
            }
            retries.pause().await;
        }
    }

    async fn open_once(
        &self,
        target: &str,
        quiet: bool,
        expected: Expected,
        configure: impl Fn(Config) -> Config,
    ) -> Result<(Endpoint, Association), FailedAttempt> {
        if let Some(server) = &self.rendezvous {
            return self.open_at(server, target, expected, configure).await;
        }
        let selection = self.route_selection(target).await?;
        let config = selection.configure(configure(self.association.config()?));
        let paths = self.paths_of(&selection)?;
        let secured = self.association.protection.to_connect(target, expected)?;
        let builder = selection.endpoint(&paths, secured.protection.clone());
        let endpoint = self.bind_builder(builder, &config).await?;
        selection.follow(&endpoint, &paths);
        self.association.protection.notice(quiet);
        let connecting = async {
            let connected = self.try_to_connect(&endpoint, &paths, config).await;
            connected.map_err(|error| match secured.judge(&error) {
                Some(judged) => judged.into(),
                None => self.failed(target, &paths, error),
            })
        };
        if quiet {
            let association = connecting.await?;
            secured.confirm(&association, quiet)?;
            return Ok((endpoint, association));
        }
        let attempt = Attempt { target, paths: paths.len(), within: self.within() };
        let monitor = endpoint.monitor();
        let association = tokio::select! {
            connected = connecting => connected?,
            never = attempt.watch(&monitor) => match never {},
        };
        secured.confirm(&association, quiet)?;
        Ok((endpoint, association))
    }

    /// Opens an association with the holder of a key over the paths that a rendezvous server arranges. `target` is the key, or the
    /// name under which `known_hosts` lists it.
    async fn open_at(
        &self,
        server: &RendezvousServer,
        target: &str,
        expected: Expected,
        configure: impl Fn(Config) -> Config,
    ) -> Result<(Endpoint, Association), FailedAttempt> {
        let protection = &self.association.protection;
        let expected = target.parse().map_or(expected, Expected::Key);
        let meeting = Meeting::prepare(server, target, expected, protection).await?;
        let secured = protection.to_connect(target, expected)?;
        let selection = RouteSelection::new(self.path_names(), meeting.remotes());
        let config = configure(self.association.config()?);
        let to_server = self.paths_of(&selection)?;
        let builder = endpoint_for(&to_server, secured.protection.clone());
        let endpoint = self.bind_builder(builder, &config).await?;
        let paths = meeting.meet(&endpoint, protection).await.map_err(FailedAttempt::unmet)?;
        selection.follow(&endpoint, &paths);
        let connected = self.try_to_connect(&endpoint, &paths, config).await;
        let association = connected.map_err(|error| match secured.judge(&error) {
            Some(judged) => judged.into(),
            None => self.failed(target, &paths, error),
        })?;
        secured.confirm(&association, true)?;
        Ok((endpoint, association))
    }

    /// Returns the paths to `HOST[:PORT]`. The first one is the primary path.
    pub(crate) async fn path_addresses(&self, target: &str) -> Result<Vec<PathAddress>, CommandError> {
        if self.rendezvous.is_some() {
            return Err(CommandError::usage(
                "--rendezvous: a check measures paths to a host that can be reached without it; omit one of them",
            ));
        }
        self.paths_of(&self.route_selection(target).await?)
    }

    /// Returns `true` if a path begins at a link with a cost or limit.
    pub(crate) fn costs_bytes(&self, path: PathAddress) -> bool {
        self.paths.iter().any(|described| described.has_terms() && described.includes(path))
    }

    async fn route_selection(&self, target: &str) -> Result<RouteSelection, CommandError> {
        let wanted = Target::read(target).map_err(CommandError::usage)?;
        let remotes = if self.to.is_empty() {
            let addresses = wanted.resolve().await.map_err(CommandError::failure)?;
            RemoteChoice::Resolved { host: target.to_owned(), addresses }
        } else {
            RemoteChoice::Named(self.to.clone())
        };
        Ok(RouteSelection::new(self.path_names(), remotes))
    }

    fn path_names(&self) -> Vec<String> {
        self.paths.iter().map(|path| path.name().to_owned()).collect()
    }

    fn paths_of(&self, selection: &RouteSelection) -> Result<Vec<PathAddress>, CommandError> {
        selection.paths().map_err(|error| match self.paths.is_empty() && self.to.is_empty() {
            true => CommandError::failure(error.named(OPTIONS)),
            false => CommandError::usage(error.named(OPTIONS)),
        })
    }

    /// Binds an endpoint at which these paths can begin, with this protection for its associations, and adds the requested observers.
    pub(crate) async fn bind(
        &self,
        paths: &[PathAddress],
        config: &Config,
        secured: &Connecting,
    ) -> Result<Endpoint, CommandError> {
        self.bind_builder(endpoint_for(paths, secured.protection.clone()), config).await
    }

    async fn bind_builder(
        &self,
        builder: EndpointBuilder,
        config: &Config,
    ) -> Result<Endpoint, CommandError> {
        let builder = self.association.attach(builder, Role::Client, config)?;
        let builder = builder.link_uses(self.costs.uses(&self.paths).await?);
        let endpoint = builder.bind().map_err(anyhow::Error::new)?;
        self.costs.watch(&endpoint);
        self.association.observe.show(&endpoint, Some(self.costs.source()))?;
        Ok(endpoint)
    }

    /// Runs `attempt` with an endpoint for these paths alone, again after a handshake that ended without a verdict of the peer.
    pub(crate) async fn try_over<T>(
        &self,
        paths: &[PathAddress],
        (config, secured): (&Config, &Connecting),
        attempt: impl AsyncFn(Endpoint) -> Result<T, FailedAttempt>,
    ) -> Result<T, FailedAttempt> {
        let mut retries = self.retries();
        loop {
            match attempt(self.bind(paths, config, secured).await?).await {
                Err(failed) if failed.admits_another(&mut retries) => retries.pause().await,
                tried => return tried,
            }
        }
    }

    /// Returns the protection of associations with `HOST[:PORT]`.
    pub(crate) fn secured(&self, target: &str) -> Result<Connecting, CommandError> {
        self.association.protection.to_connect(target, Expected::Known)
    }

    /// Opens an association over these paths. The identity of the peer has to be [confirmed](Connecting::confirm) afterwards.
    pub(crate) async fn connect(
        &self,
        endpoint: &Endpoint,
        target: &str,
        paths: &[PathAddress],
        config: Config,
    ) -> Result<Association, FailedAttempt> {
        let connected = self.try_to_connect(endpoint, paths, config).await;
        connected.map_err(|error| self.failed(target, paths, error))
    }

    async fn try_to_connect(
        &self,
        endpoint: &Endpoint,
        paths: &[PathAddress],
        config: Config,
    ) -> Result<Association, ConnectError> {
        let peer = Peer::new(paths.iter().copied()).sctp_port(self.association.sctp_port());
        endpoint.connect(peer, config.connect_timeout(self.within())).await
    }

    fn failed(&self, target: &str, paths: &[PathAddress], cause: ConnectError) -> FailedAttempt {
        let message = connect_failure_message(target, paths, &cause, self.within());
        let remedy = self.association.protection.remedy(&cause);
        FailedAttempt {
            error: CommandError::connecting(&cause, format!("{message}{remedy}")),
            cause: Some(cause),
        }
    }

    fn within(&self) -> Duration {
        self.connect_timeout.unwrap_or(DEFAULT_CONNECT_TIMEOUT)
    }
}

/// Returns the binding of the socket besides its address.
pub(crate) fn through(endpoint: &Endpoint) -> String {
    match endpoint.devices() {
        [(_, Device::Bound(interface)), ..] => interface.clone(),
        [(_, Device::Refused { interface, why }), ..] => {
            format!("routing table, as {interface} was refused: {why}")
        }
        [] => "routing table".to_owned(),
    }
}
