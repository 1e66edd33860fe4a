//! Clients and servers that find addresses and paths themselves.

use std::net::SocketAddr;

use anabranch_net::{Config, ConnectError, Endpoint};
use anabranch_tests::credentials::Mode;

use crate::loopback::rig::{any_port, in_both_modes, protection, quick, within};

fn controlled() -> Config {
    quick().stream_control()
}

fn server(mode: Mode, addresses: &[SocketAddr]) -> Endpoint {
    let addresses = addresses.iter().copied();
    Endpoint::server(protection(mode.of_server()), controlled(), addresses).expect("a server")
}

#[tokio::test]
async fn a_client_connects_by_name_and_opens_a_stream() {
    in_both_modes(async |mode: Mode| {
        let server = server(mode, &[any_port(1)]);
        let client = Endpoint::client(protection(mode.of_client())).expect("a client");
        let target = format!("localhost:{}", server.local_addresses()[0].port());
        let (ours, theirs) =
            tokio::join!(within(client.connect_to(&target, controlled())), within(server.accept()));
        let (ours, theirs) = (ours.expect("connected"), theirs.expect("accepted"));
        let (mut sender, _reply) = within(ours.open_stream()).await.expect("a stream");
        within(sender.send("hello")).await.expect("accepted");
        let (_back, mut from) = within(theirs.accept_stream()).await.expect("no error").expect("a stream");
        let hello = within(from.recv()).await.expect("no error").expect("a message");
        assert_eq!(&hello.payload[..], b"hello");
    })
    .await;
}

#[tokio::test]
async fn targets_without_a_usable_address_are_refused_with_a_remedy() {
    let client = Endpoint::client(protection(None)).expect("a client");
    let usual = Config::new("cmt").expect("a scheme");
    for (target, remedy) in [
        ("127.0.0.1:0", "choose one from 1 to 65535"),
        ("two words", "write a name or an address"),
        ("fe80::1", "link-local"),
        ("0.0.0.0", "name the one to send to"),
    ] {
        let error = within(client.connect_to(target, usual.clone())).await.expect_err("it is refused");
        assert!(matches!(error, ConnectError::Target(_)), "{target}: {error:?}");
        assert!(error.to_string().contains(remedy), "{target}: {error}");
    }
}
