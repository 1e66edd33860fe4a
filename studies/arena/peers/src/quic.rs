//! Multipath QUIC of tquic, with one path for each pair of addresses and one stream.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::{Buf, Bytes};
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use tquic::{Config, Connection, Endpoint, PacketInfo, PacketSendHandler, TlsConfig, TransportHandler};

use crate::clock::Clock;
use crate::{Arguments, Channel, Role, Served, channel, print};

/// Maximum length of a UDP payload, in bytes.
const LARGEST_PAYLOAD: usize = 65_535;
/// Length of packets that fill a link's MTU of 1,500 bytes.
const PAYLOAD_BYTES: u16 = 1472;
/// Maximum receive window of Linux's TCP by default, in bytes.
const WINDOW_BYTES: u64 = 6 << 20;
/// Maximum wait of the endpoint when it has no timer.
const IDLE: Duration = Duration::from_secs(1);
/// Application protocol of both sides.
const PROTOCOL: &[u8] = b"arena";

/// Opens a connection. The client adds the other paths after the handshake.
pub(crate) async fn open(arguments: &Arguments, clock: &Clock) -> anyhow::Result<Channel> {
    let is_server = arguments.role == Role::Receive;
    let mut sockets = Vec::new();
    for address in &arguments.local {
        sockets.push(UdpSocket::bind(address).await.with_context(|| format!("cannot bind {address}"))?);
    }
    let sockets = Rc::new(sockets);
    let locals = sockets.iter().map(UdpSocket::local_addr).collect::<Result<Vec<_>, _>>()?;
    let pairs: Vec<_> = locals.into_iter().zip(arguments.remote.iter().copied()).collect();
    let (own, Served { outgoing, incoming }) = channel();
    let (ready, opened) = oneshot::channel();
    let state = Rc::new(RefCell::new(State {
        other_paths: pairs.iter().skip(1).copied().collect(),
        connection: None,
        stream: None,
        ready: Some(ready),
        unsent: Bytes::new(),
        unread: Vec::new(),
    }));
    let handler = Handler { is_server, state: Rc::clone(&state) };
    let sender = Rc::new(Sender { sockets: Rc::clone(&sockets) });
    let mut endpoint = Endpoint::new(Box::new(config(arguments)?), is_server, Box::new(handler), sender);
    print("ready")?;
    if !is_server {
        clock.until(Duration::ZERO).await;
        let (local, remote) = *pairs.first().context("the client needs a local and a remote address")?;
        endpoint.connect(local, remote, None, None, None, None)?;
        endpoint.process_connections()?;
    }
    tokio::task::spawn_local(serve(endpoint, sockets, state, outgoing, incoming));
    opened.await.context("the handshake or a path failed")?;
    Ok(own)
}

fn config(arguments: &Arguments) -> anyhow::Result<Config> {
    let mut config = Config::new()?;
    config.enable_multipath(true);
    config.set_multipath_algorithm(arguments.scheduler);
    config.set_congestion_control_algorithm(arguments.control);
    config.set_send_udp_payload_size(PAYLOAD_BYTES.into());
    config.set_recv_udp_payload_size(PAYLOAD_BYTES);
    config.set_initial_max_data(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_local(WINDOW_BYTES);
    config.set_initial_max_stream_data_bidi_remote(WINDOW_BYTES);
    config.set_max_connection_window(WINDOW_BYTES);
    config.set_max_stream_window(WINDOW_BYTES);
    let protocols = vec![PROTOCOL.to_vec()];
    config.set_tls_config(match arguments.role {
        Role::Send => TlsConfig::new_client_config(protocols, false)?,
        Role::Receive => server_tls(protocols)?,
    });
    Ok(config)
}

/// Returns TLS settings with a new certificate, which the client does not verify.
fn server_tls(protocols: Vec<Vec<u8>>) -> anyhow::Result<TlsConfig> {
    let folder = std::env::temp_dir().join(format!("arena-peer-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (certificate, key) = (folder.join("certificate.pem"), folder.join("key.pem"));
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-subj", "/CN=arena", "-days", "2", "-out"])
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output()
        .context("openssl cannot be started: install it")?;
    ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
    let settings = TlsConfig::new_server_config(
        &certificate.to_string_lossy(),
        &key.to_string_lossy(),
        protocols,
        false,
    );
    std::fs::remove_dir_all(&folder)?;
    Ok(settings?)
}

/// State of the connection, which the handler and the task of the endpoint share.
struct State {
    /// Addresses of the paths that the client adds after the handshake.
    other_paths: Vec<(SocketAddr, SocketAddr)>,
    /// Index of the connection in the endpoint.
    connection: Option<u64>,
    stream: Option<u64>,
    /// Notified when the connection can send.
    ready: Option<oneshot::Sender<()>>,
    /// Data that the stream has not accepted yet.
    unsent: Bytes,
    /// Data that the application has not accepted yet.
    unread: Vec<u8>,
}

impl State {
    /// Writes data until the stream is blocked, and asks for an event then.
    fn flush(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream else { return };
        while !self.unsent.is_empty() {
            match connection.stream_write(stream, self.unsent.clone(), false) {
                Ok(written) if written > 0 => self.unsent.advance(written),
                _ => {
                    drop(connection.stream_want_write(stream, true));
                    return;
                }
            }
        }
    }
}

struct Handler {
    is_server: bool,
    state: Rc<RefCell<State>>,
}

impl TransportHandler for Handler {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        self.state.borrow_mut().connection = connection.index();
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        let mut state = self.state.borrow_mut();
        if !self.is_server {
            for (local, remote) in std::mem::take(&mut state.other_paths) {
                if connection.add_path(local, remote).is_err() {
                    // `open` fails, because figures of one path are not those of multipath QUIC.
                    state.ready = None;
                }
            }
            state.stream = connection.stream_bidi_new(0, false).ok();
        }
        state.ready.take().map(|ready| ready.send(()));
    }

    fn on_conn_closed(&mut self, _connection: &mut Connection) {
        let mut state = self.state.borrow_mut();
        (state.connection, state.stream, state.ready) = (None, None, None);
    }

    fn on_stream_created(&mut self, _connection: &mut Connection, stream: u64) {
        self.state.borrow_mut().stream = Some(stream);
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut buffer = vec![0; LARGEST_PAYLOAD];
        while let Ok((length, _)) = connection.stream_read(stream, &mut buffer) {
            self.state.borrow_mut().unread.extend_from_slice(&buffer[..length]);
            if length == 0 {
                return;
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        drop(connection.stream_want_write(stream, false));
        self.state.borrow_mut().flush(connection);
    }

    fn on_stream_closed(&mut self, _connection: &mut Connection, _stream: u64) {}

    fn on_new_token(&mut self, _connection: &mut Connection, _token: Vec<u8>) {}
}

struct Sender {
    sockets: Rc<Vec<UdpSocket>>,
}

impl PacketSendHandler for Sender {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        for (packet, info) in packets {
            // A packet that the socket rejects is lost, as on a full interface.
            if let Some(socket) =
                self.sockets.iter().find(|socket| socket.local_addr().ok() == Some(info.src))
            {
                drop(socket.try_send_to(packet, info.dst));
            }
        }
        Ok(packets.len())
    }
}

/// Runs the endpoint until the application has closed its channel.
async fn serve(
    mut endpoint: Endpoint,
    sockets: Rc<Vec<UdpSocket>>,
    state: Rc<RefCell<State>>,
    mut outgoing: mpsc::Receiver<Bytes>,
    incoming: mpsc::Sender<Bytes>,
) {
    let mut buffer = vec![0; LARGEST_PAYLOAD];
    loop {
        let can_write = {
            let state = state.borrow();
            state.stream.is_some() && state.unsent.is_empty()
        };
        let wait = endpoint.timeout().unwrap_or(IDLE);
        tokio::select! {
            biased;
            _ = readable(&sockets) => {}
            data = outgoing.recv(), if can_write => match data {
                Some(data) => state.borrow_mut().unsent = data,
                None => return,
            },
            () = sleep(wait) => endpoint.on_timeout(Instant::now()),
        }
        receive(&mut endpoint, &sockets, &mut buffer);
        let connection = state.borrow().connection;
        if let Some(connection) = connection.and_then(|index| endpoint.conn_get_mut(index)) {
            state.borrow_mut().flush(connection);
        }
        if endpoint.process_connections().is_err() {
            return;
        }
        let unread = std::mem::take(&mut state.borrow_mut().unread);
        if !unread.is_empty() && incoming.send(unread.into()).await.is_err() {
            return;
        }
    }
}

/// Waits until a socket has a packet.
async fn readable(sockets: &[UdpSocket]) {
    std::future::poll_fn(|context| {
        if sockets.iter().any(|socket| socket.poll_recv_ready(context).is_ready()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

/// Passes all waiting packets to the endpoint.
fn receive(endpoint: &mut Endpoint, sockets: &[UdpSocket], buffer: &mut [u8]) {
    for socket in sockets {
        let Ok(dst) = socket.local_addr() else { continue };
        while let Ok((length, src)) = socket.try_recv_from(buffer) {
            let info = PacketInfo { src, dst, time: Instant::now() };
            // A packet that the endpoint rejects is no concern of the work.
            drop(endpoint.recv(&mut buffer[..length], &info));
        }
    }
}
