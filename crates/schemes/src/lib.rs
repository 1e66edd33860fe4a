//! Published multipath schemes as small policies on the public traits of [`anabranch_core`].
//!
//! A scheme is named data: a preset of policies and parameters. [`registry::parse`] turns `cmt(rtx=rtx-asap,trigger=4)` into a
//! [`registry::NamedScheme`] for the configuration of an association.

/// Declares the modules of a list, one per line, and collects their definitions. rustfmt does not follow these declarations, so
/// `make lint` names the files for it.
macro_rules! modules {
    ($(#[$doc:meta])* $list:ident: $kind:ty = $definition:ident; $($module:ident,)+) => {
        $(pub mod $module;)+

        $(#[$doc])*
        pub const $list: &[$kind] = &[$($module::$definition),+];
    };
}

/// Implements methods of a policy that wraps another one by forwarding to the inner policy.
macro_rules! forward {
    ($inner:ident:) => {};
    ($inner:ident: fn $name:ident(&mut $self:ident $(, $argument:ident: $type:ty)*) -> $result:ty; $($rest:tt)*) => {
        fn $name(&mut $self $(, $argument: $type)*) -> $result {
            $self.$inner.$name($($argument),*)
        }
        forward! { $inner: $($rest)* }
    };
    ($inner:ident: fn $name:ident(&$self:ident $(, $argument:ident: $type:ty)*) -> $result:ty; $($rest:tt)*) => {
        fn $name(&$self $(, $argument: $type)*) -> $result {
            $self.$inner.$name($($argument),*)
        }
        forward! { $inner: $($rest)* }
    };
}

/// Implements `copied` of a slot or rule whose type is `Clone`.
macro_rules! copied {
    ($slot:ident) => {
        fn copied(&self) -> Option<Box<dyn $slot>> {
            Some(Box::new(Clone::clone(self)))
        }
    };
}

/// Implements `Slot` for a policy that reads no event and has no deadline.
macro_rules! ignores_events {
    ($policy:ty) => {
        impl anabranch_core::policy::Slot for $policy {
            fn events(&self, _: &anabranch_core::profile::Profile) -> anabranch_core::policy::EventSet {
                anabranch_core::policy::EventSet::NONE
            }
        }
    };
}

pub mod ack;
pub mod buffer;
pub mod component;
pub mod congestion;
pub mod costs;
mod definition;
pub mod duplicates;
pub mod estimator;
pub mod failover;
pub mod loss;
pub mod preset;
pub mod registry;
pub mod retransmit;
pub mod scheduler;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod testing;
