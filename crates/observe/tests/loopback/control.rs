//! Control sockets, and clients that are malformed, too slow or too many.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_net::{Config, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_observe::control::{
    Answer, Client, Connections, Control, Folder, MAX_CLIENTS, MAX_REQUEST_BYTES, Request, State,
};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// Time after which a test counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);

/// Control socket in a folder of its own.
struct Rig {
    _temporary: TempDir,
    folder: Folder,
    control: Control,
}

impl Rig {
    fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let folder = Folder::at(&temporary.path().join("anabranch"));
        let control = Control::open(&folder, "forward", "cmt").expect("it opens");
        Rig { _temporary: temporary, folder, control }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.folder.list()[0]).await.expect("it listens")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join(format!("forward-{}.sock", std::process::id()))
    }
}

fn endpoint(node: u8) -> Endpoint {
    let local = ([127, 0, 0, node], 0).into();
    let builder = Endpoint::builder(Protection::Insecure).local(local);
    builder.accept(Config::default()).bind().expect("an endpoint")
}

#[tokio::test(flavor = "multi_thread")]
async fn report_has_associations_paths_and_connections() {
    let rig = Rig::new();
    let (ours, theirs) = (endpoint(51), endpoint(52));
    rig.control.show(&ours);
    rig.control.show_connections(std::sync::Arc::new(|| Connections { open: 3, ..Connections::default() }));
    let path = PathAddress::over_udp([127, 0, 0, 51].into(), theirs.local_addresses()[0]);
    let association = ours.connect(Peer::new([path]), Config::default()).await.expect("connected");
    association.send("shown", SendOptions::default()).await.expect("accepted");
    let accepted = theirs.accept().await.expect("accepted");
    accepted.recv().await.expect("no error").expect("a message");
    let mut client = rig.client().await;
    let Answer::Report(report) = client.ask(&Request::Report).await.expect("an answer") else {
        panic!("no report")
    };
    assert_eq!(
        (report.command.as_str(), report.pid, report.scheme.as_str()),
        ("forward", std::process::id(), "cmt")
    );
    let path = &report.associations[0].paths[0];
    assert_eq!((path.local, path.state), ([127, 0, 0, 51].into(), State::Active));
    assert!(path.sent_bytes > 0 && path.received_bytes > 0, "{path:?}");
    assert_eq!(report.connections.map(|connections| connections.open), Some(3));
    let Answer::Metrics { text } = client.ask(&Request::Metrics).await.expect("an answer") else {
        panic!("no metrics")
    };
    assert!(text.contains("anabranch_path_sent_bytes_total{"), "{text}");
    drop((association, accepted, ours, theirs));
    tokio::time::timeout(LIMIT, async {
        loop {
            let answer = client.ask(&Request::Report).await.expect("an answer");
            if matches!(answer, Answer::Report(report) if report.associations.is_empty()) {
                return;
            }
        }
    })
    .await
    .expect("an endpoint that ended is not reported");
}

#[tokio::test]
async fn order_without_an_endpoint_is_answered_with_an_error() {
    let rig = Rig::new();
    let order = Request::TakeOut { local: [127, 0, 0, 51].into(), interface_index: 0 };
    let answer = rig.client().await.ask(&order).await.expect("an answer");
    assert!(matches!(&answer, Answer::Error { why } if why.contains("no association now")), "{answer:?}");
}

#[tokio::test]
async fn socket_is_removed_with_its_command() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let Rig { control, folder, .. } = rig;
    drop(control);
    assert_eq!(folder.list(), []);
    let error = client.ask(&Request::Report).await.expect_err("it has ended").to_string();
    assert!(error.contains("has ended"), "{error}");
}

/// Sends bytes as a client, and returns all that is answered until the server ends the connection.
fn answer_to(socket: PathBuf, bytes: Vec<u8>) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a time");
    // The server may end the connection before it has read everything.
    let _ = stream.write_all(&bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_get_an_error_each_and_long_ones_end_the_client() {
    let rig = Rig::new();
    let socket = rig.socket();
    let answers = spawn_blocking(move || {
        [
            answer_to(socket.clone(), b"\n{}\nnull\n\xff\xfe\n".to_vec()),
            answer_to(socket.clone(), vec![b'x'; MAX_REQUEST_BYTES]),
            answer_to(socket.clone(), b"{\"request\":\"report\"}".to_vec()),
            answer_to(socket, Vec::new()),
        ]
    });
    let [malformed, long, unfinished, empty] = answers.await.expect("no panic");
    assert_eq!(malformed.matches("is not understood").count(), 4, "{malformed}");
    assert!(long.contains("at most 1024 bytes"), "{long}");
    assert!(unfinished.contains("ends with a line feed"), "{unfinished}");
    assert_eq!(empty, "");
    rig.client().await.ask(&Request::Report).await.expect("others are served");
}

#[tokio::test]
async fn clients_above_the_limit_are_refused_until_one_leaves() {
    let rig = Rig::new();
    let listed = rig.folder.list().remove(0);
    let mut clients = Vec::new();
    for _ in 0..MAX_CLIENTS {
        let mut client = Client::connect(&listed).await.expect("it listens");
        client.ask(&Request::Report).await.expect("an answer");
        clients.push(client);
    }
    let mut refused = Client::connect(&listed).await.expect("it listens");
    let answer = refused.ask(&Request::Report).await;
    assert!(!matches!(answer, Ok(Answer::Report(_))), "{answer:?}");
    clients.pop();
    tokio::time::timeout(LIMIT, async {
        loop {
            let mut client = Client::connect(&listed).await.expect("it listens");
            if matches!(client.ask(&Request::Report).await, Ok(Answer::Report(_))) {
                return;
            }
        }
    })
    .await
    .expect("the place is free");
}

#[tokio::test]
async fn requests_of_a_client_are_spaced() {
    let rig = Rig::new();
    let mut client = rig.client().await;
    let begun = std::time::Instant::now();
    for _ in 0..5 {
        client.ask(&Request::Report).await.expect("an answer");
    }
    assert!(begun.elapsed() >= Duration::from_millis(4 * 50), "{:?}", begun.elapsed());
}
