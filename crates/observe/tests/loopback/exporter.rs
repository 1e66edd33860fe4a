//! Scrapes over TCP, checked by a parser of the format that accepts nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use anabranch_net::SendOptions;
use anabranch_observe::metrics::Exporter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rig::{MESSAGE_BYTES, MESSAGES, Pair, within};

async fn request(exporter: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(exporter).await.expect("connected");
    stream.write_all(text.as_bytes()).await.expect("written");
    let mut answer = String::new();
    within(stream.read_to_string(&mut answer)).await.expect("an answer in UTF-8");
    answer
}

async fn scrape(exporter: &Exporter) -> Page {
    let text = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let answer = request(exporter.local_address(), text).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.lines().any(|line| line == kind), "{head}");
    Page::read(body)
}

/// Values by name and labels.
#[derive(Debug, Default)]
struct Page {
    values: BTreeMap<(String, String), f64>,
}

impl Page {
    /// Parses the page and checks the rules of OpenMetrics 1.0.0 that concern the features used here.
    fn read(body: &str) -> Self {
        assert_eq!(body.lines().filter(|line| *line == "# EOF").count(), 1);
        assert!(body.ends_with("# EOF\n"), "nothing follows the end");
        let mut page = Page::default();
        let (mut family, mut kind, mut unit) = (String::new(), String::new(), None::<String>);
        let mut families = BTreeSet::new();
        for line in body.lines().take_while(|line| *line != "# EOF") {
            if let Some(rest) = line.strip_prefix("# ") {
                let (word, rest) = rest.split_once(' ').expect("a name");
                let (name, what) = rest.split_once(' ').expect("a value");
                if name != family {
                    assert!(families.insert(name.to_owned()), "{name} comes twice");
                    (family, unit) = (name.to_owned(), None);
                }
                match word {
                    "TYPE" => kind = what.to_owned(),
                    "UNIT" => unit = Some(what.to_owned()),
                    "HELP" => assert!(!what.is_empty()),
                    other => panic!("unknown: {other}"),
                }
                continue;
            }
            assert!(unit.as_ref().is_none_or(|unit| family.ends_with(&format!("_{unit}"))), "{family}");
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = series.split_once('{').expect("labels");
            let labels = labels.strip_suffix('}').expect("an end of labels");
            match kind.as_str() {
                "counter" => assert_eq!(name, format!("{family}_total")),
                "gauge" => assert_eq!(name, family),
                other => panic!("{family} is a {other}"),
            }
            assert!(name.starts_with("anabranch_"));
            let letters = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            assert!(letters(name), "{name}");
            for label in labels.split(',') {
                let (key, value) = label.split_once('=').expect("a label");
                assert!(letters(key) && value.starts_with('"') && value.ends_with('"'), "{label}");
            }
            let value: f64 = value.parse().expect("a number");
            assert!(value.is_finite() && value >= 0.0, "{line}");
            let before = page.values.insert((name.to_owned(), labels.to_owned()), value);
            assert_eq!(before, None, "{series} comes twice");
        }
        page
    }

    fn sum(&self, name: &str, label: &str) -> f64 {
        let of = self.values.iter().filter(|((n, labels), _)| n == name && labels.contains(label));
        of.map(|(_, value)| *value).sum()
    }

    fn series(&self, name: &str) -> usize {
        self.values.keys().filter(|(n, _)| n == name).count()
    }
}

#[tokio::test]
async fn transfer_is_exported_until_it_ends() {
    let exporter = Exporter::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let pair = Pair::new(61, None);
    exporter.show(&pair.client);
    exporter.show(&pair.server);
    let (ours, theirs) = pair.connect().await;
    for _ in 0..MESSAGES / 10 {
        within(ours.send(vec![9; MESSAGE_BYTES], SendOptions::default())).await.expect("accepted");
        within(theirs.recv()).await.expect("no error").expect("a message");
    }
    let page = scrape(&exporter).await;
    let user_bytes = (MESSAGES / 10 * MESSAGE_BYTES) as f64;
    assert!(page.sum("anabranch_path_sent_bytes_total", "") > user_bytes);
    assert_eq!(page.sum("anabranch_association_delivered_bytes_total", ""), user_bytes);
    assert_eq!(page.sum("anabranch_host_associations", ""), 2.0);
    assert_eq!(page.sum("anabranch_association_established", ""), 2.0);
    // Each path has one state and the addresses of both endpoints.
    assert_eq!(page.sum("anabranch_path_state", ""), 4.0);
    assert_eq!(page.sum("anabranch_path_state", "state=\"active\""), 4.0);
    assert_eq!(page.series("anabranch_path_cwnd_bytes"), 4);
    for local in pair.client.local_addresses() {
        assert!(page.sum("anabranch_path_cwnd_bytes", &format!("local=\"{}\"", local.ip())) > 0.0);
    }
    assert!(page.sum("anabranch_path_srtt_seconds", "") > 0.0);
    assert_eq!(page.sum("anabranch_host_discards_total", "reason=\"malformed\""), 0.0);

    within(ours.shutdown()).await.expect("a good end");
    let page = scrape(&exporter).await;
    assert_eq!(page.series("anabranch_path_cwnd_bytes"), 0);
    assert!(page.sum("anabranch_host_datagrams_sent_total", "") > 20.0);

    drop((pair, ours, theirs));
    // The exporter does not keep endpoints running.
    within(async {
        while scrape(&exporter).await.series("anabranch_host_datagrams_sent_total") > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test]
async fn silent_or_garbled_clients_affect_no_other_client() {
    let exporter = Exporter::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let pair = Pair::new(65, None);
    exporter.show(&pair.client);
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(exporter.local_address()).await.expect("connected"));
    }
    pair.transfer().await;
    drop(silent);
    // The places of the disconnected clients become free eventually.
    within(async {
        loop {
            let mut stream = TcpStream::connect(exporter.local_address()).await.expect("connected");
            let _ = stream.write_all(b"\x00\xffnonsense\r\n\r\n").await;
            let mut answer = Vec::new();
            let read = stream.read_to_end(&mut answer).await;
            if read.is_ok() && answer.starts_with(b"HTTP/1.1 400") {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    assert!(scrape(&exporter).await.series("anabranch_host_associations") == 1);
}

#[tokio::test]
async fn other_paths_and_methods_are_answered_with_valid_ones() {
    let exporter = Exporter::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let ask = async |line: &str| {
        request(
            exporter.local_address(),
            &format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"),
        )
        .await
    };
    let found = ask("GET /").await;
    assert!(found.starts_with("HTTP/1.1 404") && found.ends_with("metrics are at /metrics\n"), "{found}");
    let posted = ask("POST /metrics").await;
    assert!(posted.starts_with("HTTP/1.1 405") && posted.contains("allow: GET, HEAD"), "{posted}");
}

#[tokio::test]
async fn request_for_a_foreign_host_name_reads_no_figures() {
    let exporter = Exporter::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let endpoint = exporter.local_address();
    let rebound = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    let answer = request(endpoint, rebound).await;
    assert!(answer.starts_with("HTTP/1.1 421") && !answer.contains("anabranch_"), "{answer}");
    let addressed = format!("GET /metrics HTTP/1.1\r\nHost: {endpoint}\r\nConnection: close\r\n\r\n");
    assert!(request(endpoint, &addressed).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn idle_client_is_replaced_by_one_with_a_request() {
    let exporter = Exporter::bind("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(exporter.local_address()).await.expect("connected"));
    }
    assert!(scrape(&exporter).await.values.is_empty());
    // The first clients were evicted.
    let mut byte = [0];
    assert_eq!(within(idle[0].read(&mut byte)).await.expect("an end"), 0);
}
