//! SOCKS5 and HTTP CONNECT.

use anabranch_forward::{Failure, Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::rig::{connect, echo, exchange, local_options, pair, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_requests_reach_targets_by_address_and_name() {
    let (_server, _gateway, client) = pair(local_options()).await;
    let (proxy, port) = (client.listen(Service::Proxy), echo().await.port().to_be_bytes());
    for host in [&b"\x01\x7f\x00\x00\x01"[..], b"\x03\x09localhost"] {
        let mut connection = connect(proxy).await;
        // The program sends data before it has the replies.
        let request = [&b"\x05\x01\x00\x05\x01\x00"[..], host, &port, b"early"].concat();
        connection.write_all(&request).await.expect("a request");
        let mut replies = [0; 12];
        within(connection.read_exact(&mut replies)).await.expect("replies");
        assert_eq!(replies, *b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00");
        assert_eq!(exchange(&mut connection, b" late").await.expect("an answer"), b"early late");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_failures_have_the_code_of_their_reason() {
    let (_server, _gateway, client) = pair(local_options()).await;
    let proxy = client.listen(Service::Proxy);
    for (host, code) in [(&b"\x01\x0a\x01\x02\x03"[..], 2), (b"\x03\x11localhost.invalid", 4), (b"\x02", 8)] {
        let mut connection = connect(proxy).await;
        let request = [&b"\x05\x01\x00\x05\x01\x00"[..], host, b"\x00\x50"].concat();
        let answer = exchange(&mut connection, &request).await.expect("replies");
        assert_eq!((answer.len(), answer[3]), (12, code), "{host:?}");
    }
    assert_eq!(exchange(&mut connect(proxy).await, b"\x05\x01\x02").await.expect("a reply"), b"\x05\xff");
    let failures: Vec<_> = client.totals().failures().collect();
    assert_eq!(failures, [(Failure::NotResolved, 1), (Failure::Forbidden, 1), (Failure::Malformed, 2)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_requests_to_connect_are_answered() {
    let (_server, _gateway, client) = pair(local_options()).await;
    let (proxy, target) = (client.listen(Service::Proxy), echo().await);
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nbody");
    let answer = exchange(&mut connect(proxy).await, request.as_bytes()).await.expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 200 Connection established\r\n\r\nbody");
    for (request, status) in [
        ("CONNECT 10.0.0.1:80 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT localhost.invalid:80 HTTP/1.1\r\n\r\n", "502"),
        ("GET http://localhost/ HTTP/1.1\r\n\r\n", "405"),
        ("CONNECT a HTTP/1.1\r\n\r\n", "400"),
    ] {
        let answer = exchange(&mut connect(proxy).await, request.as_bytes()).await.expect("an answer");
        assert_eq!(&answer[9..12], status.as_bytes(), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_request_is_refused_at_its_bound() {
    let (_server, _gateway, client) = pair(local_options()).await;
    let mut connection = connect(client.listen(Service::Proxy)).await;
    let answer = exchange(&mut connection, &[b'a'; 8192]).await.expect("an answer");
    assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&answer));
}
