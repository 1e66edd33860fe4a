//! Tests with a hostile peer. The one that counts memory, descriptors and panics of its process is `random.rs`.

mod deletion;
mod fields;
mod trust_table;
mod versions;
