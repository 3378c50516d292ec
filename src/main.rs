//! The command line: `cli` has the commands.

fn main() -> std::process::ExitCode {
    dedupwatch::cli::main()
}
