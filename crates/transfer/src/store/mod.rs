//! Destinations of received content: a folder or a pipe.

mod assembly;
mod batch;
mod commit;
mod created;
mod deletion;
mod directory;
mod disk;
mod durability;
mod folder;
mod held;
mod journal;
mod listed;
mod mode;
mod part;
mod pipe;
mod quota;
mod record;
mod room;
mod syncer;
#[cfg(all(test, target_os = "linux"))]
mod testing;
mod times;
mod tree;

pub(crate) use assembly::{Assembly, Block};
pub(crate) use commit::{Committed, Committer, Complete, Content};
pub(crate) use deletion::Deletion;
pub(crate) use directory::identity_of;
#[cfg(test)]
pub(crate) use disk::Step;
pub use durability::Durability;
pub(crate) use folder::{Begin, Comparison, Preview, explain};
pub use folder::{Folder, Unfinished};
pub(crate) use held::contain;
pub(crate) use listed::ListedNames;
pub(crate) use part::Part;
pub(crate) use pipe::Flow;
pub use pipe::Pipe;
pub(crate) use quota::Usage;
pub(crate) use record::FileState;
pub(crate) use times::from_system_time;
