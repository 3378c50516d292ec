//! The command line: `cli` has the commands.

fn main() {}
