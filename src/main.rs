//! The command line: `cli` has the commands.

/// The judge and the writer make and free millions of small values on several threads: the
/// system's allocator costs them a quarter of their time, and twice the memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    dedupwatch::cli::main()
}
