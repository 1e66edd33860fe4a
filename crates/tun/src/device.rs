//! TUN device of Linux.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use ipnet::IpNet;
use tun_rs::{AsyncDevice, DeviceBuilder};

use crate::link::Output;
use crate::message::MAX_PACKET_BYTES;
use crate::system::{Error, has_ipv6, ip};

/// TUN device. It is removed with its addresses and routes when it is dropped, and when the process ends.
#[derive(Clone)]
pub struct Device {
    device: Arc<AsyncDevice>,
    name: String,
}

impl Device {
    /// Creates a device with this name, which is down.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn create(name: &str) -> io::Result<Self> {
        let device = DeviceBuilder::new().name(name).enable(false).build_async()?;
        Ok(Device { device: Arc::new(device), name: name.to_owned() })
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets addresses with the lengths of their networks' prefixes, and the MTU, and starts the device. The system adds no addresses of
    /// its own.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn start(&self, addresses: impl IntoIterator<Item = IpNet>, mtu: usize) -> Result<(), Error> {
        if has_ipv6() {
            ip(&format!("link set dev {} addrgenmode none", self.name))?;
        }
        for address in addresses {
            // The only host of the link has no need to detect duplicates (RFC 4862 section 5.4).
            let nodad = if address.addr().is_ipv6() { " nodad" } else { "" };
            ip(&format!("addr replace {address} dev {}{nodad}", self.name))?;
        }
        ip(&format!("link set dev {} mtu {mtu} up", self.name))
    }

    /// Removes an address.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn remove_address(&self, address: IpNet) -> Result<(), Error> {
        ip(&format!("addr del {address} dev {}", self.name))
    }

    /// Sets the MTU.
    ///
    /// # Errors
    /// Returns the error of `ip`.
    pub fn set_mtu(&self, mtu: usize) -> Result<(), Error> {
        ip(&format!("link set dev {} mtu {mtu}", self.name))
    }

    /// Returns the function that writes packets.
    pub fn output(&self) -> Output {
        let device = Arc::clone(&self.device);
        Arc::new(move |packet| device.try_send(packet).is_ok())
    }

    /// Passes each packet of the system to `accept`. Returns the error of the device.
    pub async fn read(&self, mut accept: impl FnMut(Bytes)) -> io::Error {
        let mut buffer = vec![0; MAX_PACKET_BYTES];
        loop {
            match self.device.recv(&mut buffer).await {
                Ok(length) => accept(Bytes::copy_from_slice(&buffer[..length])),
                Err(error) => return error,
            }
        }
    }
}
