//! Tests of the network. The one that counts allocations of its process is `allocation.rs`.

mod ahead;
mod impairments;
mod queues;
mod radio;
mod traces;
mod wireshark;
