//! Where what arrives is put: into a folder, or into a pipe.

mod assembly;
mod disk;
mod folder;
mod held;
mod journal;
mod made;
mod part;
mod pipe;
mod syncer;

pub(crate) use assembly::{Assembly, Block};
pub(crate) use folder::{Begin, explain, file_root, from_system_time};
pub use folder::{Folder, OnClash};
pub(crate) use held::contain;
pub(crate) use part::Part;
pub(crate) use pipe::Flow;
pub use pipe::Pipe;
