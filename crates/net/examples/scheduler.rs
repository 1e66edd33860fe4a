//! A scheduler of your own, on sockets: `cmt` with another choice of the path for each chunk.
//!
//! ```text
//! cargo run -p anabranch-net --example scheduler
//! ```
//!
//! Both endpoints are in this program, with two paths over loopback. The scheduler runs in the simulator as well, where its effect is
//! reproducible: see `examples/own-scheme` of the repository.

#![allow(clippy::disallowed_macros, reason = "the program prints its results")]

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anabranch_core::policy::{
    Context, Decision, Pick, Policies, Reason, Scheduler, Scheme, SendAsk, Slot, View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_net::{Config, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_schemes::registry;

/// Messages, and their length in bytes.
const MESSAGES: usize = 500;
const LENGTH: usize = 32 << 10;

/// Scheduler that sends on the path with the most room in its congestion window.
#[derive(Debug, Default)]
struct MostRoom;

impl Slot for MostRoom {}

impl Scheduler for MostRoom {
    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let open = view.paths.iter().filter(|path| view.refusal(path.id).is_none());
        match open.max_by_key(|path| path.cwnd - path.in_flight) {
            Some(path) => Decision::new(Pick::Path(path.id), Reason::rule("the most room")),
            None => Decision::new(Pick::Wait(WaitFor::Window), Reason::rule("no path has room")),
        }
    }
}

struct MostRoomCmt;

impl Scheme for MostRoomCmt {
    fn policies(&self) -> Policies {
        let cmt = registry::parse("cmt").expect("a scheme of the registry");
        Policies { scheduler: Box::new(MostRoom), ..cmt.policies() }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let from = [IpAddr::from([127, 0, 0, 3]), IpAddr::from([127, 0, 0, 4])];
    let to = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2])];
    let bind = |addresses: [IpAddr; 2]| {
        let builder = Endpoint::builder(Protection::Insecure);
        addresses.into_iter().fold(builder, |builder, address| builder.local(SocketAddr::new(address, 0)))
    };
    let server = bind(to).accept(Config::default()).bind()?;
    let client = bind(from).bind()?;
    let paths = from.into_iter().zip(server.local_addresses().to_vec());
    let peer = Peer::new(paths.map(|(local, remote)| PathAddress::over_udp(local, remote)));

    let sending = async {
        let association = client.connect(peer, Config::with_scheme(Arc::new(MostRoomCmt))).await?;
        for _ in 0..MESSAGES {
            association.send(vec![0; LENGTH], SendOptions::default()).await?;
        }
        association.shutdown().await?;
        for path in association.paths().await {
            println!("{} -> {}: {} bytes", path.local, path.remote.ip(), path.delivered_bytes);
        }
        Ok::<_, Box<dyn Error>>(())
    };
    let receiving = async {
        let association = server.accept().await?;
        let mut bytes = 0;
        while let Some(message) = association.recv().await? {
            bytes += message.payload.len();
        }
        println!("received: {bytes} bytes");
        Ok::<_, Box<dyn Error>>(())
    };
    let (sent, received) = tokio::join!(sending, receiving);
    sent.and(received)
}
