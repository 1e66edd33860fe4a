//! Options for listening.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use anabranch_forward::Tally;
use anabranch_identity::Room;
use anabranch_net::route_selection::{ListenAddresses, LocalAddresses, read_address};
use anabranch_net::{
    AcceptFrom, Association, BindError, Config, DEFAULT_UDP_PORT, Endpoint, EndpointBuilder,
};
use anabranch_observe::{LinkCost, Role};
use clap::Args;
use tokio::runtime::Runtime;

use super::access::{AccessOptions, networks_of, question};
use super::caller::AcceptedPeer;
use super::protection::{Listening, NoAuthorizedPeers};
use super::rendezvous::{Presence, RendezvousServer, read_server};
use super::{AssociationOptions, OPTIONS};
use crate::costs::{Costs, PathDescription, read_cost};
use crate::exit::CommandError;

/// Options for listening.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenOptions {
    /// Local address to listen on; can be repeated [default: those that `anabranch paths` calls usable, port 9899]
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = read_address)]
    pub(crate) listen: Vec<SocketAddr>,

    #[command(flatten)]
    pub(crate) access: AccessOptions,

    #[command(flatten)]
    pub(crate) meeting: MeetingOptions,

    #[command(flatten)]
    pub(crate) links: LinkOptions,

    #[command(flatten)]
    pub(crate) association: AssociationOptions,
}

/// Options for peers that reach this side at a rendezvous server.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MeetingOptions {
    /// Let peers with an authorised key find this side at this rendezvous server, and reach it through NATs; no UDP port has to be open
    /// [port: 9898]
    #[arg(long, value_name = "SERVER[:PORT]", value_parser = read_server, conflicts_with_all = ["insecure", "ca"])]
    pub(crate) rendezvous: Option<RendezvousServer>,
}

/// Costs of this machine's links on a side that listens.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LinkOptions {
    /// Local address or interface whose paths have a cost; can be repeated. Cost: `,metered` (for data that free paths cannot carry),
    /// `,only=backup` (while no other path works), `,limit=2GB/month`
    #[arg(long = "cost", value_name = "ADDR|IFACE,COST", value_parser = read_cost)]
    described: Vec<PathDescription>,

    /// Costs of the links. All endpoints of a command share them.
    #[arg(skip)]
    costs: Costs,
}

/// Peers that may connect, by network and key.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) from: AcceptFrom,
    pub(crate) listening: Listening,
}

impl Admitted {
    /// Returns identity and rights of an accepted peer.
    ///
    /// # Errors
    /// Returns an error if the peer has lost its rights.
    pub(crate) fn caller(&self, association: &Association) -> Result<AcceptedPeer, CommandError> {
        self.listening
            .authorized()
            .map_or_else(|| Ok(AcceptedPeer::default()), |keys| AcceptedPeer::of(keys, association))
    }
}

impl ListenOptions {
    /// Returns options without a rendezvous server, and without costs of links.
    pub(crate) fn new(
        listen: Vec<SocketAddr>,
        access: AccessOptions,
        association: AssociationOptions,
    ) -> Self {
        let (meeting, links) = (MeetingOptions::default(), LinkOptions::default());
        ListenOptions { listen, access, meeting, links, association }
    }

    /// Runs a command that listens, and counts the last bytes of its links, also after a failure. Returns the result, and the states
    /// of all links with a cost or limit.
    pub(crate) fn block_on<T>(
        &self,
        runtime: &Runtime,
        command: impl Future<Output = T>,
    ) -> (T, Vec<LinkCost>) {
        self.links.costs.block_on(runtime, command)
    }

    /// Lets `anabranch top` show the endpoint of this command, its links with a cost or limit, and forwarded connections from now on.
    /// Call it in a runtime.
    pub(crate) fn open_control(&self, command: &str, tally: Option<&Tally>) {
        self.association.open_control_with(command, tally, Some(self.links.costs.source()));
    }

    /// Returns the peers that may connect, for the calls that bind. If no peer may connect, returns an error with the remedy.
    /// `command` is the typed command, up to the options of listening.
    pub(crate) fn admitted(&self, command: &str) -> Result<Admitted, CommandError> {
        let from = self.access.accept_from()?;
        match self.association.protection.to_listen()? {
            Ok(listening) => Ok(Admitted { from, listening }),
            Err(NoAuthorizedPeers { file }) => Err(CommandError::usage(self.question(command, &file))),
        }
    }

    fn question(&self, command: &str, authorized_keys: &Path) -> String {
        let locals = LocalAddresses::read();
        let addresses = ListenAddresses::new(self.listen.clone(), DEFAULT_UDP_PORT);
        let bound = addresses.addresses(&locals).unwrap_or_default();
        let listen: String = self.listen.iter().map(|address| format!(" --listen {address}")).collect();
        question(&format!("{command}{listen}"), authorized_keys, &networks_of(&bound, &locals.all))
    }

    /// Binds an endpoint that accepts at most this many associations at a time. Without addresses it uses the default UDP port.
    /// `local_addresses` returns the bound addresses.
    pub(crate) async fn bind_bounded(
        &self,
        admitted: &Admitted,
        most_associations: usize,
        configure: impl FnOnce(Config) -> Config,
    ) -> Result<Endpoint, CommandError> {
        self.bind_host(admitted, DEFAULT_UDP_PORT, configure, |builder| {
            builder.max_associations(most_associations)
        })
        .await
    }

    /// Registers a bound endpoint at the rendezvous server, if one was named.
    pub(crate) fn register(
        &self,
        endpoint: &Endpoint,
        admitted: &Admitted,
        is_quiet: bool,
    ) -> Result<(), CommandError> {
        let Some(server) = self.meeting.rendezvous.clone() else { return Ok(()) };
        let (key, authorized) =
            (self.association.protection.meeting_key()?, admitted.listening.authorized().cloned());
        Presence { server, key, authorized, is_quiet, ignored: None }.begin(endpoint)
    }

    /// Registers a bound endpoint in a room of the rendezvous server, if one was named. Everyone who knows the room may connect.
    /// Returns the server.
    pub(crate) fn register_in(
        &self,
        endpoint: &Endpoint,
        room: Room,
    ) -> Result<Option<&RendezvousServer>, CommandError> {
        let Some(server) = &self.meeting.rendezvous else { return Ok(None) };
        let key = room.key_pair();
        let presence =
            Presence { server: server.clone(), key, authorized: None, is_quiet: true, ignored: None };
        presence.begin(endpoint)?;
        Ok(Some(server))
    }

    /// Binds an endpoint that accepts the default number of associations. Without addresses it uses this UDP port.
    pub(crate) async fn bind_at(
        &self,
        admitted: &Admitted,
        port: u16,
        configure: impl FnOnce(Config) -> Config,
    ) -> Result<Endpoint, CommandError> {
        self.bind_host(admitted, port, configure, |builder| builder).await
    }

    async fn bind_host(
        &self,
        admitted: &Admitted,
        port: u16,
        configure: impl FnOnce(Config) -> Config,
        bound: impl FnOnce(EndpointBuilder) -> EndpointBuilder,
    ) -> Result<Endpoint, CommandError> {
        let config = configure(self.association.config()?);
        let addresses = ListenAddresses::new(self.listen.clone(), port);
        let builder = addresses
            .endpoint(admitted.listening.protection())
            .map_err(|error| CommandError::failure(error.named(OPTIONS)))?;
        let builder = self.association.attach(builder, Role::Server, &config)?;
        let builder = builder.sctp_port(self.association.sctp_port()).accept(config);
        let LinkOptions { described, costs } = &self.links;
        let builder = bound(builder).accept_from(admitted.from.clone());
        let builder = builder.link_uses(costs.uses(described).await?);
        let endpoint = builder.bind().map_err(|error| match error {
            BindError::Socket { address, source } if source.kind() == ErrorKind::AddrInUse => {
                CommandError::failure(format!(
                    "cannot listen: {address} is in use; end the program that has it, or take another port with \
                     --listen {}:PORT",
                    bare(address.ip())
                ))
            }
            BindError::Socket { .. } => {
                CommandError::from(anyhow::Error::new(error).context("cannot listen"))
            }
            _ => CommandError::usage(format!("--listen: {error}")),
        })?;
        admitted.listening.follow_changes();
        costs.watch(&endpoint);
        self.association.observe.show(&endpoint, Some(costs.source()))?;
        addresses.follow(&endpoint);
        Ok(endpoint)
    }
}

/// Returns an address as it is written before a port.
fn bare(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
