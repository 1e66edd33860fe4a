//! Other SCTP stacks over real UDP sockets, each test in network namespaces of its own. `make interop` runs them.

mod addresses;
mod ends;
mod examples;
mod failover;
mod pion;
mod rig;
mod speed;
mod transfer;
mod usrsctp;
