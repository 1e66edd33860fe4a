//! Connections to targets: resolution, policy and attempts.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::failure::Failure;
use crate::policy::Policy;
use crate::target::{Target, TargetHost};

/// Time after which the next address of a target is tried beside the earlier ones (RFC 8305 section 5).
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Maximum number of addresses of a target that are tried.
const MAX_ADDRESSES: usize = 8;

/// Connects to a target that the policy permits. The policy decides on the addresses that the connection leads to.
pub(crate) async fn dial(
    target: &Target,
    policy: Option<&Policy>,
    within: Duration,
) -> Result<TcpStream, Failure> {
    let connected = timeout(within, async {
        let addresses = permitted_addresses(target, policy).await?;
        connect_first(addresses).await
    });
    connected.await.unwrap_or(Err(Failure::TimedOut))
}

/// Returns the addresses of a target that the policy permits; without a policy, all.
pub(crate) async fn permitted_addresses(
    target: &Target,
    policy: Option<&Policy>,
) -> Result<Vec<SocketAddr>, Failure> {
    if let Some(policy) = policy {
        policy.check_host(&target.host, target.port)?;
    }
    let found: Vec<SocketAddr> = match &target.host {
        TargetHost::Address(address) => vec![SocketAddr::new(*address, target.port)],
        TargetHost::Name(name) => {
            let found = lookup_host((name.as_str(), target.port)).await.map_err(|_| Failure::NotResolved)?;
            found.take(MAX_ADDRESSES).collect()
        }
    };
    if found.is_empty() {
        return Err(Failure::NotResolved);
    }
    let permits = |address: &SocketAddr| {
        policy.is_none_or(|policy| policy.permits(&target.host, address.ip(), target.port))
    };
    let permitted: Vec<SocketAddr> = found.into_iter().filter(permits).collect();
    if permitted.is_empty() { Err(Failure::Forbidden) } else { Ok(permitted) }
}

/// Returns the first connection that succeeds, or else the last failure. The next address is tried after a failure, or beside the
/// earlier ones after a while.
async fn connect_first(addresses: Vec<SocketAddr>) -> Result<TcpStream, Failure> {
    let (mut attempts, mut rest) = (JoinSet::new(), addresses.into_iter());
    let mut last = Failure::Unreachable;
    loop {
        if let Some(next) = rest.next() {
            attempts.spawn(TcpStream::connect(next));
        }
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => last = Failure::of_io(&error),
                Err(_) => {}
            },
            () = sleep(NEXT_ADDRESS_AFTER), if rest.len() > 0 => {}
            else => return Err(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().expect(text)
    }

    #[tokio::test]
    async fn name_of_a_forbidden_address_is_refused_after_resolution() {
        let found = permitted_addresses(&target("localhost:80"), Some(&Policy::default())).await;
        assert_eq!(found, Err(Failure::Forbidden));
        let rules = Policy::new(vec!["127.0.0.0/8:80".parse().expect("a rule")]);
        let found = permitted_addresses(&target("localhost:80"), Some(&rules)).await.expect("an address");
        assert!(found.iter().all(|address| address.ip().to_string() == "127.0.0.1"));
    }

    #[tokio::test]
    async fn second_address_is_tried_after_the_first_has_failed() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let unused =
            std::net::TcpListener::bind("127.0.0.1:0").expect("a listener").local_addr().expect("a port");
        let there = listener.local_addr().expect("a port");
        let connected = connect_first(vec![unused, there]).await.expect("a connection");
        assert_eq!(connected.peer_addr().expect("a peer"), there);
        assert_eq!(connect_first(vec![unused]).await.err(), Some(Failure::Refused));
    }
}
