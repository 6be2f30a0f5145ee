//! The command line of loop-state-mcp.
fn main() {}
