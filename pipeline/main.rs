//! The `gitops-runtime` binary.
fn main() {}
