//! A driver of `anabranch-core` on one UDP socket, without tokio: the loop around an endpoint that does no I/O.
//!
//! ```text
//! cargo run -p anabranch-net --example driver
//! ```
//!
//! Two threads with a driver each exchange a message and its echo over loopback. The driver passes arrived packets and the time to
//! the endpoint, sends the packets that it returns, handles its events, and sleeps until its next deadline.

#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "the program prints its results and reads a clock"
)]

use std::error::Error;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anabranch_core::profile::Profile;
use anabranch_core::time::Time;
use anabranch_core::{
    AcceptFrom, AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, EndpointConfig,
    Guard, PacketBuffer, PathAddress, SendOptions,
};
use anabranch_schemes::registry;

/// SCTP port of both endpoints.
const PORT: u16 = 5000;

/// Largest UDP payload.
const LARGEST: usize = 65_507;

type Failure = Box<dyn Error + Send + Sync>;

struct Driver {
    endpoint: Endpoint,
    socket: UdpSocket,
    local: IpAddr,
    began: Instant,
    outgoing: PacketBuffer,
    incoming: Vec<u8>,
}

impl Driver {
    fn new(local: IpAddr, accept: Option<AssociationConfig>) -> Result<Self, Failure> {
        let socket = UdpSocket::bind(SocketAddr::new(local, 0))?;
        let mut entropy = [0; 32];
        getrandom::fill(&mut entropy)?;
        let udp = socket.local_addr()?.port();
        let config = EndpointConfig {
            port: PORT,
            addresses: vec![local],
            encapsulation: Encapsulation::Udp { local_port: udp, remote_port: udp },
            accept,
            accept_from: AcceptFrom::Everyone,
            max_associations: 16,
            guard: Some(Guard::default()),
        };
        Ok(Driver {
            endpoint: Endpoint::new(Time::ZERO, config, entropy),
            socket,
            local,
            began: Instant::now(),
            outgoing: PacketBuffer::new(),
            incoming: vec![0; LARGEST],
        })
    }

    /// Returns the time since the driver began, which is the endpoint's time.
    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sends what is due.
    fn send(&mut self) -> io::Result<()> {
        let now = self.now();
        self.endpoint.handle_timeout(now);
        while let Some(transmit) = self.endpoint.poll_transmit(now, &mut self.outgoing) {
            let path = transmit.address;
            let udp = path.udp_port.expect("the endpoint encapsulates in UDP");
            self.socket.send_to(&self.outgoing, SocketAddr::new(path.remote, udp))?;
        }
        Ok(())
    }

    /// Waits for one packet or the next deadline.
    fn receive(&mut self) -> io::Result<()> {
        let wait = self.endpoint.poll_timeout().map(|at| Duration::from(at.since(self.now())));
        // A time-out of zero would be none.
        self.socket.set_read_timeout(wait.map(|wait| wait.max(Duration::from_millis(1))))?;
        match self.socket.recv_from(&mut self.incoming) {
            Ok((length, from)) => {
                let now = self.now();
                let path = PathAddress::over_udp(self.local, from);
                self.endpoint.handle_datagram(now, path, &self.incoming[..length]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Runs until an association has ended, and passes other events on.
    fn run(
        &mut self,
        mut on_event: impl FnMut(&mut Endpoint, Time, AssociationId, AssociationEvent),
    ) -> Result<(), Failure> {
        let mut ended = None;
        loop {
            while let Some((id, event)) = self.endpoint.poll_event() {
                match event {
                    AssociationEvent::Closed => ended = Some(Ok(())),
                    AssociationEvent::Aborted(reason) => ended = Some(Err(reason.to_string().into())),
                    event => {
                        let now = self.now();
                        on_event(&mut self.endpoint, now, id, event);
                    }
                }
            }
            // The last packet is sent before the end.
            self.send()?;
            if let Some(ended) = ended {
                return ended;
            }
            self.receive()?;
        }
    }
}

fn config() -> AssociationConfig {
    let scheme = registry::parse("cmt").expect("a scheme of the registry").into_scheme();
    AssociationConfig::new(scheme, Profile::net())
}

/// Returns each message on its stream.
fn echo(endpoint: &mut Endpoint, now: Time, id: AssociationId, event: AssociationEvent) {
    let Some(association) = endpoint.association_mut(id) else { return };
    let mut payload = Vec::new();
    while event == AssociationEvent::Readable
        && let Some(message) = association.recv(&mut payload)
    {
        let options = SendOptions::on_stream(message.stream);
        // A message that is refused, because the peer has shut down, needs no echo.
        let _ = association.send_at(now, std::mem::take(&mut payload).into(), options);
    }
}

/// Sends a message, prints the answer, and ends the association.
fn ask(endpoint: &mut Endpoint, now: Time, id: AssociationId, event: AssociationEvent) {
    let Some(association) = endpoint.association_mut(id) else { return };
    match event {
        AssociationEvent::Connected => {
            let sent = association.send_at(now, "over one path".into(), SendOptions::default());
            sent.expect("the association is open");
        }
        AssociationEvent::Readable => {
            let mut payload = Vec::new();
            while association.recv(&mut payload).is_some() {}
            println!("echo: {}", String::from_utf8_lossy(&payload));
            association.shutdown(now);
        }
        _ => {}
    }
}

fn main() -> Result<(), Failure> {
    let mut server = Driver::new([127, 0, 0, 1].into(), Some(config()))?;
    let address = server.socket.local_addr()?;
    let serving = std::thread::spawn(move || server.run(echo));
    let mut client = Driver::new([127, 0, 0, 2].into(), None)?;
    let path = PathAddress::over_udp(client.local, address);
    client.endpoint.connect(client.now(), PORT, &[path], config())?;
    client.run(ask)?;
    serving.join().expect("no panic")
}
