//! Common options of commands on real sockets: where they listen, to which peer they connect, and over which paths.

mod access;
mod caller;
mod connect;
mod listen;
mod observe;
mod progress;
mod protection;
mod rendezvous;

use std::num::NonZeroU64;
use std::sync::Once;
use std::time::Duration;

use anabranch_forward::Tally;
use anabranch_net::route_selection::InputNames;
use anabranch_net::{Config, EndpointBuilder};
use anabranch_observe::{LinkCostSource, Role};
use clap::Args;

use self::observe::ObserveOptions;
use crate::exit::CommandError;
use crate::{output, quantity};

pub(crate) use access::{AccessOptions, access_notice, networks, typed};
pub(crate) use caller::AcceptedPeer;
pub(crate) use connect::{ConnectOptions, FailedAttempt, through};
pub(crate) use listen::{Admitted, ListenOptions, MeetingOptions};
pub(crate) use protection::{Connecting, Expected, Listening, ProtectionOptions, peer_key};
pub(crate) use rendezvous::RendezvousServer;

/// Names of these options on the command line.
const OPTIONS: InputNames =
    InputNames { local: "--path", remote: "--to", listen: "--listen", lists: "see `anabranch paths`" };

/// Options of both ends for an association.
#[derive(Clone, Debug, Args)]
pub(crate) struct AssociationOptions {
    /// Scheme that chooses the paths, such as cmt or cmt-pf(rtx=rtx-asap); see `anabranch schemes` [default: braid]
    #[arg(long, value_name = "SCHEME")]
    pub(crate) scheme: Option<String>,

    /// Stop using a path for new data after this time without an acknowledgement, in ms or with a unit [default: after its
    /// time-outs]
    #[arg(long, value_name = "MS", value_parser = quantity::read_milliseconds)]
    pub(crate) failover_ms: Option<NonZeroU64>,

    /// SCTP port of the listener, inside UDP [default: 9899]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) sctp_port: Option<u16>,

    #[command(flatten)]
    pub(crate) protection: ProtectionOptions,

    #[command(flatten)]
    pub(crate) observe: ObserveOptions,
}

impl AssociationOptions {
    /// Returns the scheme's expression.
    pub(crate) fn scheme(&self) -> &str {
        self.scheme.as_deref().unwrap_or(anabranch_net::DEFAULT_SCHEME)
    }

    /// Returns the SCTP port of the side that listens.
    pub(crate) fn sctp_port(&self) -> u16 {
        self.sctp_port.unwrap_or(anabranch_net::DEFAULT_SCTP_PORT)
    }

    /// Returns the first option that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--scheme", self.scheme.is_some()),
            ("--failover-ms", self.failover_ms.is_some()),
            ("--sctp-port", self.sctp_port.is_some()),
        ];
        let given = given.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
        given.or_else(|| self.protection.given()).or_else(|| self.observe.given())
    }

    /// Lets `anabranch top` show the endpoints of this command from now on. Call it in a runtime.
    pub(crate) fn open_control(&self, command: &str) {
        self.open_control_with(command, None, None);
    }

    /// Like [`open_control`](Self::open_control), with forwarded connections and with links that have a cost or limit.
    pub(crate) fn open_control_with(
        &self,
        command: &str,
        tally: Option<&Tally>,
        links: Option<LinkCostSource>,
    ) {
        #[cfg(unix)]
        self.observe.open_control(command, self.scheme(), (tally, links));
        #[cfg(not(unix))]
        let _ = (command, tally, links);
    }

    /// Adds the requested observer.
    fn attach(
        &self,
        builder: EndpointBuilder,
        role: Role,
        config: &Config,
    ) -> Result<EndpointBuilder, CommandError> {
        static SAID: Once = Once::new();
        if self.observe.traces() && !self.protection.insecure {
            SAID.call_once(|| {
                output::notice(
                    "--trace: packets.csv has no packets of protected associations; use --insecure on both sides, or read \
                     a capture (--pcap) that `anabranch decrypt` has decrypted",
                );
            });
        }
        self.observe.attach(builder, role, self.scheme(), config, self.protection.insecure)
    }

    /// Returns the configuration that the options describe.
    pub(crate) fn config(&self) -> Result<Config, CommandError> {
        let config =
            Config::new(self.scheme()).map_err(|error| CommandError::usage(format!("--scheme: {error}")))?;
        Ok(match self.failover_ms {
            Some(limit) => config.path_silence_limit(Duration::from_millis(limit.get())),
            None => config,
        })
    }
}
