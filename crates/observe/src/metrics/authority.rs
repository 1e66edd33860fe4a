//! Check of the host that a request addresses.
//!
//! A web page can have its own name resolved to an address of the user's machine and read data served there (DNS rebinding). Its
//! requests name that host. An address cannot be rebound, `localhost` is never looked up in the DNS, and no page is served under
//! the machine's own name.

use hyper::header::HOST;
use hyper::http::uri::Authority;
use hyper::{Request, Version};

/// Returns `true` if a request addresses an IP address, `localhost`, or `machine`, the name of this machine.
pub(super) fn admits<B>(request: &Request<B>, machine: Option<&str>) -> bool {
    let mut named = request.headers().get_all(HOST).iter();
    let header = match (named.next(), named.next()) {
        (Some(host), None) => match host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) {
            Some(authority) => Some(authority),
            None => return false,
        },
        // RFC 9112 section 3.2: HTTP/1.0 has no Host field, and browsers do not use HTTP/1.0.
        (None, _) if request.version() == Version::HTTP_10 => None,
        _ => return false,
    };
    // In absolute form the target names a host as well.
    let target = request.uri().authority();
    header.iter().chain(target).all(|authority| is_own(authority.host(), machine))
}

fn is_own(host: &str, machine: Option<&str>) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    let name = bare.strip_suffix('.').unwrap_or(bare);
    let is_machine = machine.is_some_and(|machine| !machine.is_empty() && name.eq_ignore_ascii_case(machine));
    bare.parse::<std::net::IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") || is_machine
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: Version, target: &str, hosts: &[&str]) -> Request<()> {
        let builder = Request::builder().version(version).uri(target);
        hosts.iter().fold(builder, |builder, host| builder.header(HOST, *host)).body(()).expect("a request")
    }

    #[test]
    fn addresses_and_names_of_this_machine_are_admitted() {
        for host in [
            "127.0.0.1:9464",
            "127.0.0.1",
            "[::1]:9464",
            "localhost:8000",
            "LocalHost.",
            "box",
            "BOX:1",
            "192.0.2.7",
        ] {
            assert!(admits(&request(Version::HTTP_11, "/metrics", &[host]), Some("box")), "{host}");
        }
        assert!(admits(&request(Version::HTTP_10, "/metrics", &[]), None), "HTTP/1.0 has no Host field");
    }

    #[test]
    fn other_names_are_refused() {
        for host in [
            "evil.example",
            "evil.example:9464",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1.",
            "box.evil.example",
            "",
            "a@127.0.0.1 ",
            "127.0.0.1:9464, evil.example",
        ] {
            assert!(!admits(&request(Version::HTTP_11, "/metrics", &[host]), Some("box")), "{host:?}");
        }
    }

    #[test]
    fn missing_doubled_or_contradictory_hosts_are_refused() {
        assert!(!admits(&request(Version::HTTP_11, "/metrics", &[]), None));
        assert!(!admits(&request(Version::HTTP_11, "/metrics", &["127.0.0.1", "127.0.0.1"]), None));
        assert!(!admits(&request(Version::HTTP_11, "http://evil.example/metrics", &["127.0.0.1"]), None));
        assert!(!admits(&request(Version::HTTP_10, "/metrics", &["evil.example"]), None));
    }
}
