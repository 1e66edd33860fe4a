//! Tests that cross crates. What several of them share is here.
