//! Properties of links on Linux beyond their addresses: their kind, and the links below them.

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoKind, LinkAttribute, LinkInfo, LinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{AsyncSocket, AsyncSocketExt, Socket, SocketAddr, TokioSocket};

use super::LinkKind;

/// Maximum depth of stacked links.
const DEEPEST_STACK: usize = 8;

/// Message groups: links, addresses and routes of IPv4 and IPv6 (`RTMGRP_LINK` and so on of linux/rtnetlink.h).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x100 | 0x400;

/// Buffer size of a message in bytes. Its content is ignored.
const NEWS_BYTES: usize = 8192;

/// Notifications of the kernel about changes.
pub(super) struct LinkNotifications {
    socket: TokioSocket,
}

impl LinkNotifications {
    pub(super) fn listen() -> io::Result<Self> {
        let mut socket = TokioSocket::new(NETLINK_ROUTE)?;
        socket.socket_mut().bind(&SocketAddr::new(0, GROUPS))?;
        Ok(LinkNotifications { socket })
    }

    /// Waits until something has changed. Cancel-safe.
    pub(super) async fn wait(&mut self) {
        // Lost messages cause an error, which also is a reason to check.
        let _ = self.socket.recv(&mut Vec::with_capacity(NEWS_BYTES)).await;
    }
}

/// Interface as described by the kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Link {
    index: u32,
    /// Kind of a virtual link; hardware has none.
    made_by: Option<InfoKind>,
    /// Index of the link below it, or of its peer.
    lower: Option<u32>,
    /// Set if that link is in another network namespace.
    lower_is_elsewhere: bool,
    /// Index of the bridge or bond of which it is a port.
    controller: Option<u32>,
}

/// Returns all links of this network namespace.
pub(super) fn links() -> io::Result<Vec<Link>> {
    let answers = request(RouteNetlinkMessage::GetLink(LinkMessage::default()), NLM_F_DUMP)?;
    let links = answers.iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(link) => Some(read(link)),
        _ => None,
    });
    Ok(links.collect())
}

/// Sends a request to the kernel and returns its answers. A request for one object has `NLM_F_ACK`, one for all `NLM_F_DUMP`.
pub(super) fn request(message: RouteNetlinkMessage, flags: u16) -> io::Result<Vec<RouteNetlinkMessage>> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    let mut request = NetlinkMessage::from(message);
    request.header.flags = NLM_F_REQUEST | flags;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
    let mut answers = Vec::new();
    loop {
        let (answer, _) = socket.recv_from_full()?;
        if !take_in(&answer, &mut answers)? {
            return Ok(answers);
        }
    }
}

/// Parses one datagram of the answer. Returns `false` once the answer is complete.
fn take_in(mut answer: &[u8], answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    while !answer.is_empty() {
        let message: NetlinkMessage<RouteNetlinkMessage> =
            NetlinkMessage::deserialize(answer).map_err(io::Error::other)?;
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(error) if error.code.is_none() => return Ok(false),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::InnerMessage(message) => answers.push(message),
            _ => {}
        }
        // Messages are aligned to four bytes.
        let length = (message.header.length as usize).next_multiple_of(4);
        answer = answer.get(length.max(4)..).unwrap_or_default();
    }
    Ok(true)
}

fn read(message: &LinkMessage) -> Link {
    let mut link = Link { index: message.header.index, ..Link::default() };
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::Link(lower) => link.lower = Some(*lower),
            LinkAttribute::LinkNetNsId(_) => link.lower_is_elsewhere = true,
            LinkAttribute::Controller(controller) => link.controller = Some(*controller),
            LinkAttribute::LinkInfo(infos) => {
                let kind = infos.iter().find_map(|info| match info {
                    LinkInfo::Kind(kind) => Some(kind.clone()),
                    _ => None,
                });
                link.made_by = kind.or(link.made_by);
            }
            _ => {}
        }
    }
    link
}

/// Returns the kind of a link, or `None` if it is not in the list.
pub(super) fn kind_of(links: &[Link], index: u32) -> Option<LinkKind> {
    let link = links.iter().find(|link| link.index == index)?;
    let name = link.made_by.as_ref().map_or_else(|| "hardware".to_owned(), InfoKind::to_string);
    Some(if leads_outside(links, link, DEEPEST_STACK) {
        LinkKind::Outside(name)
    } else {
        LinkKind::Virtual(name)
    })
}

fn leads_outside(links: &[Link], link: &Link, depth: usize) -> bool {
    if depth == 0 {
        return false;
    }
    let mut ports = links.iter().filter(|port| port.controller == Some(link.index));
    match &link.made_by {
        None | Some(InfoKind::Wwan | InfoKind::RmNet | InfoKind::Ipoib | InfoKind::Dsa) => true,
        Some(InfoKind::Bond | InfoKind::Team | InfoKind::Bridge) => {
            ports.any(|port| leads_outside(links, port, depth - 1))
        }
        // Inside a container, these links are the visible way to other hosts.
        Some(InfoKind::Veth | InfoKind::Netkit) => link.lower_is_elsewhere && link.controller.is_none(),
        Some(InfoKind::Vlan | InfoKind::MacVlan | InfoKind::IpVlan | InfoKind::MacSec) => {
            let lower = links.iter().find(|lower| Some(lower.index) == link.lower);
            link.lower_is_elsewhere || lower.is_some_and(|lower| leads_outside(links, lower, depth - 1))
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, made_by: Option<InfoKind>) -> Link {
        Link { index, made_by, ..Link::default() }
    }

    fn outside(links: &[Link], index: u32) -> bool {
        matches!(kind_of(links, index), Some(LinkKind::Outside(_)))
    }

    #[test]
    fn tunnels_and_dummies_do_not_lead_outside_but_hardware_does() {
        let made = [InfoKind::Tun, InfoKind::Wireguard, InfoKind::IpIp, InfoKind::Dummy, InfoKind::Xfrm];
        for kind in made {
            assert!(!outside(&[link(7, Some(kind))], 7));
        }
        assert!(outside(&[link(7, None)], 7));
        assert_eq!(kind_of(&[link(7, None)], 8), None);
    }

    #[test]
    fn a_bridge_leads_where_its_ports_lead() {
        let of = |port| [link(1, Some(InfoKind::Bridge)), Link { controller: Some(1), ..link(2, port) }];
        assert!(outside(&of(None), 1));
        assert!(!outside(&of(Some(InfoKind::Veth)), 1));
        assert!(!outside(&[link(1, Some(InfoKind::Bridge))], 1));
    }

    #[test]
    fn a_vlan_leads_where_the_link_below_leads() {
        let on = |lower| [link(1, lower), Link { lower: Some(1), ..link(2, Some(InfoKind::Vlan)) }];
        assert!(outside(&on(None), 2));
        assert!(!outside(&on(Some(InfoKind::Dummy)), 2));
        // A link on top of itself does not exist, but must not cause an endless loop.
        assert!(!outside(&[Link { lower: Some(2), ..link(2, Some(InfoKind::Vlan)) }], 2));
    }

    #[test]
    fn an_end_of_a_pair_leads_outside_only_from_within_a_container() {
        let end = Link { lower: Some(5), ..link(2, Some(InfoKind::Veth)) };
        assert!(!outside(std::slice::from_ref(&end), 2));
        let inside = Link { lower_is_elsewhere: true, ..end };
        assert!(outside(std::slice::from_ref(&inside), 2));
        let port = Link { controller: Some(9), ..inside };
        assert!(!outside(&[port], 2));
    }

    #[test]
    fn the_kernel_lists_its_links() {
        let links = links().expect("a list");
        assert!(!links.is_empty() && links.iter().all(|link| link.index > 0));
    }
}
