//! Control socket of a running command: its state, and orders to take paths out of use and back.
//!
//! The socket is in a folder that only its user can enter, and answers processes of the same user and of root. Requests and answers
//! are lines of JSON: [`Request`] and [`Answer`]. A client sends one request at a time.
//!
//! ```
//! use anabranch_net::{Endpoint, Protection};
//! use anabranch_observe::control::{Answer, Client, Control, Folder, Request};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let temporary = tempfile::tempdir()?;
//! let folder = Folder::at(&temporary.path().join("anabranch"));
//! let control = Control::open(&folder, "forward", "braid")?;
//! let endpoint = Endpoint::builder(Protection::Insecure).local("127.0.0.1:0".parse()?).bind()?;
//! control.show(&endpoint);
//!
//! let mut client = Client::connect(&folder.list()[0]).await?;
//! let Answer::Report(report) = client.ask(&Request::Report).await? else { panic!("another answer") };
//! assert_eq!((report.command.as_str(), report.associations.len()), ("forward", 0));
//! # Ok(())
//! # })
//! # }
//! ```

mod client;
mod folder;
mod message;
mod report;
mod server;

pub use client::{AskError, Client};
pub use folder::{Folder, FolderError, Listed};
pub use message::{
    Answer, AssociationState, Connection, Connections, Link, MAX_ANSWER_BYTES, MAX_ASSOCIATIONS,
    MAX_CONNECTIONS, MAX_REQUEST_BYTES, PathReport, Report, Request, State, WaitsFor,
};
pub use server::{ConnectionSource, Control, MAX_CLIENTS};
