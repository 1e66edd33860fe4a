//! Listening as the command line says.

use std::net::{IpAddr, SocketAddr};

use anabranch_net::interface::{LocalAddress, Watcher};
use anabranch_net::{AcceptFrom, AssociationConfig, BindError, Binding, DEFAULT_UDP_PORT, Host, HostBuilder};
use anabranch_observe::Role;
use clap::Args;

use super::AssociationOptions;
use super::access::{AccessOptions, networks_of, question};
use super::local::{Locals, is_usable};
use super::name::read_address;
use super::way::Words;
use crate::exit::Stopped;

/// Where peers are waited for.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenOptions {
    /// A local address to listen on; can be repeated [default: those that `anabranch paths` calls usable, port 9899]
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = read_address)]
    pub(crate) listen: Vec<SocketAddr>,

    #[command(flatten)]
    pub(crate) access: AccessOptions,

    #[command(flatten)]
    pub(crate) association: AssociationOptions,
}

impl ListenOptions {
    /// Who may connect, for the calls that bind. Unless the options say it this is an error that explains the choice; `command` is
    /// what was typed up to the options of listening.
    pub(crate) fn accept_from(&self, command: &str) -> Result<AcceptFrom, Stopped> {
        match self.access.accept_from()? {
            Some(from) => Ok(from),
            None => Err(Stopped::usage(self.question(command))),
        }
    }

    fn question(&self, command: &str) -> String {
        let locals = Locals::read();
        let bound = addresses(&self.listen, DEFAULT_UDP_PORT, &locals, Words::OPTIONS).unwrap_or_default();
        let listen: String = self.listen.iter().map(|address| format!(" --listen {address}")).collect();
        question(&format!("{command}{listen}"), &networks_of(&bound, &locals.all))
    }

    /// A host that accepts so many associations at a time from there, at the default UDP port if no address is named; its
    /// `local_addresses` tell where.
    pub(crate) fn bind_bounded(
        &self,
        from: &AcceptFrom,
        most_associations: usize,
        configure: impl FnOnce(&mut AssociationConfig),
    ) -> Result<Host, Stopped> {
        self.bind_host(from, DEFAULT_UDP_PORT, configure, |builder| {
            builder.max_associations(most_associations)
        })
    }

    /// A host that accepts as many associations as hosts do, at another UDP port if no address is named.
    pub(crate) fn bind_at(
        &self,
        from: &AcceptFrom,
        port: u16,
        configure: impl FnOnce(&mut AssociationConfig),
    ) -> Result<Host, Stopped> {
        self.bind_host(from, port, configure, |builder| builder)
    }

    fn bind_host(
        &self,
        from: &AcceptFrom,
        port: u16,
        configure: impl FnOnce(&mut AssociationConfig),
        bound: impl FnOnce(HostBuilder) -> HostBuilder,
    ) -> Result<Host, Stopped> {
        let mut config = self.association.config()?;
        configure(&mut config);
        let posts = Posts::new(self.listen.clone(), port, Words::OPTIONS);
        let builder = posts.host().map_err(Stopped::failure)?;
        let builder = self.association.attach(builder, Role::Server, &config)?;
        let builder =
            bound(builder.sctp_port(self.association.sctp_port()).accept(config)).accept_from(from.clone());
        let host = builder.bind().map_err(|error| match error {
            BindError::Socket { .. } => Stopped::from(anyhow::Error::new(error).context("cannot listen")),
            _ => Stopped::usage(format!("--listen: {error}")),
        })?;
        self.association.observe.show(&host)?;
        posts.follow(&host);
        Ok(host)
    }
}

/// The addresses that a host listens on.
#[derive(Clone, Debug)]
pub struct Posts {
    listen: Vec<SocketAddr>,
    port: u16,
    words: Words,
}

impl Posts {
    /// These addresses, of which one that stands for all of its IP version means those that are usable; if none is given, all usable
    /// ones with this UDP port.
    pub fn new(listen: Vec<SocketAddr>, port: u16, words: Words) -> Self {
        Posts { listen, port, words }
    }

    /// A host to be with a socket at each of them.
    ///
    /// # Errors
    /// That no address is usable, and what to do about it.
    pub fn host(&self) -> Result<HostBuilder, String> {
        let locals = addresses(&self.listen, self.port, &Locals::read(), self.words)?;
        Ok(locals.into_iter().fold(Host::builder(), |builder, local| builder.local(local)))
    }

    /// Addresses that come are listened on too, where all were asked for.
    pub fn follow(&self, host: &Host) {
        let all = self.listen.iter().filter(|address| address.ip().is_unspecified());
        let all: Vec<SocketAddr> = all.copied().collect();
        if !self.listen.is_empty() && all.is_empty() {
            return;
        }
        let port = all.first().map_or(self.port, SocketAddr::port);
        let wants = move |local: &LocalAddress| {
            let asked = all.is_empty() || all.iter().any(|all| all.is_ipv4() == local.address.is_ipv4());
            asked && is_usable(local, false)
        };
        host.follow(Watcher::new(wants), Binding { port, to_interface: false });
    }
}

/// What to bind. An address that stands for all of its IP version is replaced by those that are usable, and loopback if none is.
fn addresses(
    listen: &[SocketAddr],
    port: u16,
    locals: &Locals,
    words: Words,
) -> Result<Vec<SocketAddr>, String> {
    if listen.is_empty() {
        let all = usable(locals, |_| true, port);
        return if all.is_empty() { Err(none(words)) } else { Ok(all) };
    }
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for wanted in listen {
        if wanted.ip().is_unspecified() {
            let v4 = wanted.is_ipv4();
            let found = usable(locals, |address| address.is_ipv4() == v4, wanted.port());
            if found.is_empty() {
                return Err(format!("{} {wanted}: {}", words.listen, none(words)));
            }
            addresses.extend(found);
        } else {
            addresses.push(*wanted);
        }
    }
    Ok(addresses)
}

fn none(words: Words) -> String {
    format!("no local address is usable; see `anabranch paths`, and name one with {} ADDR", words.listen)
}

fn usable(locals: &Locals, fits: impl Fn(&IpAddr) -> bool, port: u16) -> Vec<SocketAddr> {
    let of = |to_this_machine| {
        let usable = locals.usable(to_this_machine).into_iter().filter(&fits);
        usable.map(|address| SocketAddr::new(address, port)).collect::<Vec<_>>()
    };
    let outside = of(false);
    if outside.is_empty() { of(true) } else { outside }
}

#[cfg(test)]
mod tests {
    use anabranch_net::interface::{LinkKind, Obstacle};

    use super::*;

    fn locals(cards: &[&str]) -> Locals {
        let local = |address: &str, kind, obstacle| LocalAddress {
            address: address.parse().expect("an address"),
            prefix_bits: 24,
            interface: "any".to_owned(),
            kind,
            mtu_bytes: None,
            up: true,
            obstacle,
        };
        let card = |address: &&str| local(address, LinkKind::Outside("hardware".to_owned()), None);
        let mut all = vec![local("127.0.0.1", LinkKind::Loopback, Some(Obstacle::Loopback))];
        all.extend(cards.iter().map(card));
        Locals { all }
    }

    fn bound(listen: &[&str], cards: &[&str]) -> Result<Vec<String>, String> {
        let listen: Vec<_> = listen.iter().map(|text| read_address(text).expect("an address")).collect();
        addresses(&listen, DEFAULT_UDP_PORT, &locals(cards), Words::OPTIONS)
            .map(|all| all.iter().map(SocketAddr::to_string).collect())
    }

    #[test]
    fn all_usable_addresses_are_listened_on_at_the_usual_port() {
        assert_eq!(bound(&[], &["192.0.2.1", "fd00::1"]).unwrap(), ["192.0.2.1:9899", "[fd00::1]:9899"]);
        assert_eq!(bound(&[], &[]).unwrap(), ["127.0.0.1:9899"]);
    }

    #[test]
    fn an_address_for_all_stands_for_the_usable_ones_of_its_ip_version() {
        assert_eq!(bound(&["0.0.0.0:7"], &["192.0.2.1", "fd00::1"]).unwrap(), ["192.0.2.1:7"]);
        assert_eq!(bound(&["127.0.0.5", "127.0.0.6:7"], &[]).unwrap(), ["127.0.0.5:9899", "127.0.0.6:7"]);
        assert!(bound(&["[::]:7"], &[]).unwrap_err().starts_with("--listen [::]:7: no local address"));
    }
}
