//! Changes of streams (RFC 6525) between two endpoints.

mod additions;
mod hostile;
mod resets;
mod rig;
mod schemes;
