//! SOCKS5 UDP ASSOCIATE.

use std::net::SocketAddr;

use anabranch_forward::message::Notice;
use anabranch_forward::{Failure, Limits, Priority, Service};
use anabranch_net::SendOptions;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use crate::rig::{Client, LIMIT, Server, any, associate, connect, local_options, noise, pair, until, within};

/// Starts a program that returns each datagram, and returns its address.
async fn echo() -> SocketAddr {
    let socket = UdpSocket::bind(any()).await.expect("a socket");
    let address = socket.local_addr().expect("an address");
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_535];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&buffer[..length], from).await;
        }
    });
    address
}

/// A program's connection to the proxy, with the socket for its datagrams.
struct Program {
    connection: TcpStream,
    socket: UdpSocket,
    proxy: SocketAddr,
}

impl Program {
    async fn start(client: &Client) -> Self {
        let mut connection = connect(client.listen(Service::Proxy)).await;
        let request = b"\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00";
        connection.write_all(request).await.expect("a request");
        let mut replies = [0; 12];
        within(connection.read_exact(&mut replies)).await.expect("replies");
        assert_eq!(replies[..10], *b"\x05\x00\x05\x00\x00\x01\x7f\x00\x00\x01");
        let proxy = ([127, 0, 0, 1], u16::from_be_bytes([replies[10], replies[11]])).into();
        Program { connection, socket: UdpSocket::bind(any()).await.expect("a socket"), proxy }
    }

    async fn send(&self, host: &[u8], port: u16, payload: &[u8]) {
        let datagram = [&b"\x00\x00\x00"[..], host, &port.to_be_bytes(), payload].concat();
        self.socket.send_to(&datagram, self.proxy).await.expect("sent");
    }

    async fn recv(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_535];
        let length = within(self.socket.recv(&mut buffer)).await.expect("a datagram");
        buffer.truncate(length);
        buffer
    }
}

const LOOPBACK: &[u8] = b"\x01\x7f\x00\x00\x01";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_reach_targets_by_address_and_name_and_return() {
    let (_server, gateway, client) = pair(local_options()).await;
    let (program, port) = (Program::start(&client).await, echo().await.port());
    let header = [&b"\x00\x00\x00"[..], LOOPBACK, &port.to_be_bytes()].concat();
    for (host, payload) in
        [(LOOPBACK, noise(30_000, 1)), (b"\x03\x09localhost", vec![]), (LOOPBACK, noise(1, 2))]
    {
        program.send(host, port, &payload).await;
        assert_eq!(program.recv().await, [&header[..], &payload].concat());
    }
    assert_eq!(gateway.tally().totals().to_peer_bytes, 30_001);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_to_forbidden_targets_are_counted_and_others_continue() {
    let (_server, gateway, client) = pair(local_options()).await;
    let program = Program::start(&client).await;
    program.send(b"\x01\x0a\x01\x02\x03", 53, b"forbidden").await;
    until("the failure is counted", || {
        gateway.tally().totals().failures().collect::<Vec<_>>() == [(Failure::Forbidden, 1)]
    })
    .await;
    program.send(LOOPBACK, echo().await.port(), b"permitted").await;
    assert!(program.recv().await.ends_with(b"permitted"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_other_sockets_and_malformed_ones_are_dropped() {
    let (_server, gateway, client) = pair(local_options()).await;
    let (program, port) = (Program::start(&client).await, echo().await.port());
    program.send(LOOPBACK, port, b"first").await;
    assert!(program.recv().await.ends_with(b"first"));
    let other = UdpSocket::bind(any()).await.expect("a socket");
    let datagram = [&b"\x00\x00\x00"[..], LOOPBACK, &port.to_be_bytes(), b"stranger"].concat();
    other.send_to(&datagram, program.proxy).await.expect("sent");
    for malformed in [&b""[..], b"\x00", b"\x00\x00\x01\x01\x7f\x00\x00\x01\x00\x35"] {
        program.socket.send_to(malformed, program.proxy).await.expect("sent");
    }
    program.send(LOOPBACK, port, b"last").await;
    assert!(program.recv().await.ends_with(b"last"));
    assert_eq!(gateway.tally().totals().from_peer_bytes, 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_datagram_is_sent_before_the_task_of_the_association_runs() {
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let (client, kept) = Client::connect(server.address, &[], Priority::default()).await;
    let (program, target) = (Program::start(&client).await, UdpSocket::bind(any()).await.expect("a socket"));
    program.send(LOOPBACK, target.local_addr().expect("an address").port(), b"first").await;
    let mut buffer = [0; 64];
    let (length, _) = within(target.recv_from(&mut buffer)).await.expect("a datagram");
    assert_eq!(&buffer[..length], b"first");
    drop(kept);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_receives_only_from_peers_to_which_it_has_sent() {
    let (_server, _gateway, client) = pair(local_options()).await;
    let program = Program::start(&client).await;
    let [peer, stranger] = [UdpSocket::bind(any()).await, UdpSocket::bind(any()).await];
    let (peer, stranger) = (peer.expect("a socket"), stranger.expect("a socket"));
    program.send(LOOPBACK, peer.local_addr().expect("an address").port(), b"question").await;
    let mut buffer = [0; 64];
    let (length, flow) = within(peer.recv_from(&mut buffer)).await.expect("a datagram");
    assert_eq!(&buffer[..length], b"question");
    stranger.send_to(b"stranger", flow).await.expect("sent");
    peer.send_to(b"answer", flow).await.expect("sent");
    assert!(program.recv().await.ends_with(b"answer"), "nothing arrives before it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_of_the_connection_ends_the_association_without_a_failure() {
    let (_server, _gateway, client) = pair(local_options()).await;
    let Program { connection, socket, proxy } = Program::start(&client).await;
    connection.set_zero_linger().expect("an option");
    drop(connection);
    socket.connect(proxy).await.expect("an address");
    // Loopback reports a closed socket as soon as there is none.
    let closed = async {
        while socket.send(b"").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    within(closed).await;
    assert_eq!(client.forwarder.tally().totals().failures().count(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flow_continues_over_a_gateway_that_was_restarted() {
    let (server, _gateway) = Server::gateway(any(), local_options(), 1);
    let client = Client::start(server.address, &[]).await;
    let (program, port, at) = (Program::start(&client).await, echo().await.port(), server.address);
    program.send(LOOPBACK, port, b"before").await;
    assert!(program.recv().await.ends_with(b"before"));
    tokio::task::spawn_blocking(|| server.kill()).await.expect("an end");
    let (_server, gateway) = Server::gateway(at, local_options(), 2);
    let answered = async {
        while gateway.tally().totals().to_peer_bytes == 0 {
            program.send(LOOPBACK, port, b"after").await;
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    within(answered).await;
    assert!(program.recv().await.ends_with(b"after"));
    drop(program.connection);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_above_the_limits_are_refused() {
    let mut options = local_options();
    options.limits = Limits { connections: 10, ..Limits::default() };
    let (server, gateway) = Server::gateway(any(), options, 1);
    let (_endpoint, association) = associate(server.address, LIMIT).await.expect("an association");
    let peer = anabranch_forward::Target::from(echo().await);
    for flow in 0..50 {
        let datagram = Notice::Datagram { flow, peer: peer.clone(), payload: vec![1] };
        association.send(datagram.encode(), SendOptions::default().unordered()).await.expect("a message");
    }
    until("further flows are refused", || {
        gateway.tally().totals().failures().collect::<Vec<_>>() == [(Failure::Limit, 40)]
    })
    .await;
    until("the others are forwarded", || gateway.tally().totals().to_peer_bytes == 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_have_a_stream_that_no_connection_uses() {
    let (streams, mut used) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::start(any(), move |association| {
        let streams = streams.clone();
        async move {
            let reply = Notice::ProbeReply { instance: 1 };
            let _ = association.recv().await;
            let _ = association.send(reply.encode(), SendOptions::default().unordered()).await;
            loop {
                tokio::select! {
                    message = association.recv() => {
                        let Ok(Some(message)) = message else { return };
                        let _ = streams.send((message.stream, false));
                    }
                    opened = association.accept_stream() => {
                        let Ok(Some((sender, mut receiver))) = opened else { return };
                        let _ = streams.send((sender.id(), true));
                        // The stream stays open.
                        tokio::spawn(async move { while let Ok(Some(_)) = receiver.recv().await {} drop(sender) });
                    }
                }
            }
        }
    });
    let client = Client::start(server.address, &[]).await;
    let program = Program::start(&client).await;
    let address = client.forward("example.org:80");
    let (mut connections, mut datagrams) = (Vec::new(), Vec::new());
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(connect(address).await);
        program.send(LOOPBACK, 53, b"?").await;
        for _ in 0..2 {
            match within(used.recv()).await.expect("a stream") {
                (stream, true) => connections.push(stream),
                (stream, false) => datagrams.push(stream),
            }
        }
    }
    assert_eq!((connections.len(), datagrams.len()), (3, 3));
    assert!(datagrams.iter().all(|stream| *stream == datagrams[0]), "{datagrams:?}");
    assert!(!connections.contains(&datagrams[0]), "{connections:?} {datagrams:?}");
}
