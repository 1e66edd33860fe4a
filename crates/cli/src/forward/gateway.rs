//! `anabranch gateway`.

use std::sync::Arc;
use std::time::Duration;

use anabranch_forward::{Gateway, GatewayOptions, Limits, Policy, RemoteListen, Reporter, Rule, configure};
use anabranch_net::{AbortReason, Association, CloseReason, Endpoint, PeerIdentity};
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::show::{ShowOptions, listed};
#[cfg(target_os = "linux")]
use super::tunnel::{Tunnel, TunnelOptions};
use super::{SETTLED_WITHIN, require_protection, runtime};
use crate::endpoint::{AcceptedPeer, Admitted, ListenOptions, access_notice, networks};
use crate::exit::{CommandError, Status};
use crate::quantity;
use crate::signal::interrupted;

/// Maximum number of associations at a time.
const MAX_ASSOCIATIONS: usize = 64;

const EXAMPLES: &str = "\
Examples:
  Let Anna, whose `anabranch keys show` prints the key, reach the Internet:
    anabranch keys add --allow forward \\
        ed25519:Q2hlY2sgdGhpcyBrZXkgd2l0aCBpdHMgb3duZXIgISE Anna, laptop
    anabranch gateway
  Permit HTTPS to public hosts, and SSH to one private network:
    anabranch gateway --allow '*:443' --allow 10.1.0.0/16:22
  Permit a program of this machine, and ports that it opens for users:
    anabranch gateway --allow 127.0.0.1:8080 --allow-remote-listen

Without --allow, all public addresses are permitted. Private, loopback,
link-local and metadata addresses need an --allow that names the address or
its network. The address is checked after the name was resolved.
It runs until Ctrl-C.
Exit status: 130 after Ctrl-C, 1 if it cannot listen, 2 if the command line is
wrong.";

/// Connect to hosts for users of `forward` and `tun`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatewayArguments {
    /// Permit these targets only; can be repeated. HOSTS is a name, *.DOMAIN, an address, a network such as 10.0.0.0/8, or * for all
    /// public addresses; PORTS is a port, a range such as 8000-8999, or * [default: *:*]
    #[arg(long, value_name = "HOSTS:PORTS")]
    allow: Vec<Rule>,

    /// Serve this user only, by label or fingerprint of the key; can be repeated [default: all of authorized_keys]
    #[arg(long, value_name = "LABEL|FINGERPRINT")]
    user: Vec<String>,

    /// Maximum number of concurrent connections of each user
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections as u32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,

    /// Maximum number of new connections per second of each user; 12 seconds' worth may come at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().per_second, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,

    /// Time for a target to answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = read_timeout)]
    target_timeout: Duration,

    /// Let users listen on ports of this machine (`forward -R`): on loopback, or on any address
    #[arg(long, value_enum, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "loopback")]
    allow_remote_listen: Option<ListenWhere>,

    #[cfg(target_os = "linux")]
    #[command(flatten)]
    tunnel: TunnelOptions,

    #[command(flatten)]
    listen: ListenOptions,

    #[command(flatten)]
    show: ShowOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ListenWhere {
    /// Only programs of this machine can connect
    Loopback,
    /// Every host that reaches this machine can connect
    Any,
}

fn read_timeout(text: &str) -> Result<Duration, String> {
    quantity::read_time_within(text, Duration::from_millis(100), Duration::from_secs(25))
}

impl GatewayArguments {
    fn options(&self) -> GatewayOptions {
        GatewayOptions {
            policy: Policy::new(self.allow.clone()),
            limits: Limits::new(self.connections as usize, self.rate),
            connect_timeout: self.target_timeout,
            remote_listen: match self.allow_remote_listen {
                None => RemoteListen::Forbidden,
                Some(ListenWhere::Loopback) => RemoteListen::Loopback,
                Some(ListenWhere::Any) => RemoteListen::Any,
            },
        }
    }

    /// Returns `true` if the peer is one of the named users.
    fn has_user(&self, peer: &AcceptedPeer) -> bool {
        let names = [peer.label.as_deref(), peer.fingerprint.as_deref()];
        self.user.is_empty() || self.user.iter().any(|user| names.contains(&Some(user)))
    }
}

/// Runs the command.
pub(crate) fn gateway(arguments: &GatewayArguments) -> Result<Status, CommandError> {
    require_protection(&arguments.listen.association.protection)?;
    let admitted = arguments.listen.admitted("anabranch gateway")?;
    let instance = u64::from_be_bytes(random()?);
    let runtime = runtime()?;
    let gateway = Gateway::new(arguments.options(), instance);
    let (ended, links) = arguments.listen.block_on(&runtime, run(arguments, &gateway, &admitted));
    runtime.shutdown_timeout(SETTLED_WITHIN);
    if ended.is_ok() {
        arguments.show.links(&links);
        arguments.show.end(&gateway.tally().totals());
    }
    ended
}

fn random() -> Result<[u8; 8], CommandError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| CommandError::failure(format!("no random bytes: {error}")))?;
    Ok(bytes)
}

async fn run(
    arguments: &GatewayArguments,
    gateway: &Gateway,
    admitted: &Admitted,
) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    arguments.listen.open_control("gateway", Some(gateway.tally()));
    let endpoint = arguments.listen.bind_bounded(admitted, MAX_ASSOCIATIONS, configure).await?;
    let services = Services {
        gateway: gateway.clone(),
        #[cfg(target_os = "linux")]
        tunnel: arguments.tunnel.start(Policy::new(arguments.allow.clone()), gateway, &arguments.show)?,
    };
    let services = Arc::new(services);
    listening(&endpoint, admitted, &arguments.show);
    arguments.listen.register(&endpoint, admitted, arguments.show.is_silent())?;
    let mut users = JoinSet::new();
    let accepting = async {
        loop {
            tokio::select! {
                accepted = endpoint.accept() => {
                    let association = accepted.context("can no longer accept users").map_err(CommandError::from)?;
                    match user_of(arguments, admitted, &association) {
                        Ok(user) => drop(users.spawn(serve(Arc::clone(&services), association, user, arguments.show.clone()))),
                        Err(refused) => {
                            association.abort();
                            let text = format!("a user was refused: {refused}");
                            arguments.show.line(&text, &json!({ "event": "refused", "why": refused.to_string() }));
                        }
                    }
                }
                Some(_) = users.join_next() => {}
            }
        }
    };
    let status = tokio::select! {
        ended = accepting => ended,
        () = stop => Ok(Status::Interrupted),
    };
    // Dropped associations are aborted.
    users.shutdown().await;
    drop(endpoint);
    status
}

fn listening(endpoint: &Endpoint, admitted: &Admitted, show: &ShowOptions) {
    let addresses = endpoint.local_addresses();
    let object = json!({
        "event": "listening", "addresses": addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "sctp_port": endpoint.sctp_port(), "from": networks(&admitted.from),
    });
    show.line(&format!("gateway on {}", listed(addresses)), &object);
    access_notice(&admitted.from, show.is_silent());
}

/// Services for users. The first message of an association selects one.
struct Services {
    gateway: Gateway,
    #[cfg(target_os = "linux")]
    tunnel: Option<Tunnel>,
}

impl Services {
    async fn serve(&self, association: Association, user: &User, report: Reporter) {
        #[cfg(target_os = "linux")]
        if let Some(tunnel) = &self.tunnel {
            let Ok(Some(first)) = association.recv().await else { return };
            if Tunnel::is_requested(&first) {
                return tunnel.serve(association, &first, (&user.id, &user.name), report).await;
            }
            return self.gateway.serve(association, Some(first), &user.id, report).await;
        }
        self.gateway.serve(association, None, &user.id, report).await;
    }
}

/// User of an association.
struct User {
    /// Name for limits.
    id: String,
    /// Name for messages.
    name: String,
    peer: AcceptedPeer,
}

fn user_of(
    arguments: &GatewayArguments,
    admitted: &Admitted,
    association: &Association,
) -> Result<User, CommandError> {
    let peer = admitted.caller(association)?;
    let shown = peer.label.clone().or_else(|| peer.fingerprint.clone()).unwrap_or_default();
    if peer.has_files_only {
        return Err(CommandError::untrusted(format!(
            "{shown}: the options of this key in authorized_keys do not contain `forward`"
        )));
    }
    if !arguments.has_user(&peer) {
        return Err(CommandError::untrusted(format!("{shown}: no --user names this key")));
    }
    let id = match (&peer.fingerprint, association.peer_identity()) {
        (Some(fingerprint), _) => fingerprint.clone(),
        (None, Some(PeerIdentity::Certificates(certificates))) => format!("{:?}", certificates.first()),
        (None, _) => return Err(CommandError::untrusted("the peer has shown no identity")),
    };
    Ok(User { id, name: shown, peer })
}

async fn serve(services: Arc<Services>, association: Association, user: User, show: ShowOptions) {
    let address = association.paths().await.first().map_or_else(String::new, |path| path.remote.to_string());
    let name = user.peer.at(&address);
    show.line(&format!("{name} connected"), &json!({ "event": "connected", "user": name }));
    let report: Reporter = Arc::new({
        let (show, name) = (show.clone(), name.clone());
        move |event| show.event(Some(&name), &event)
    });
    services.serve(association.clone(), &user, report).await;
    let ended = timeout(SETTLED_WITHIN, association.closed()).await;
    let why = match ended {
        Ok(Ok(())) => "disconnected".to_owned(),
        Ok(Err(CloseReason::Aborted(AbortReason::ByPeer))) => {
            "disconnected: it ended without closing its connections".to_owned()
        }
        Ok(Err(why)) => format!("disconnected: {why}"),
        Err(_) => "disconnected: it violated the protocol".to_owned(),
    };
    show.line(&format!("{name} {why}"), &json!({ "event": "disconnected", "user": name, "why": why }));
}
