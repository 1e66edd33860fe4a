//! Cases that once failed, made small.
