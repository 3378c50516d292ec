//! `demo`: a collector with a fresh database and simulated settlement services.

use std::process::ExitCode;

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct DemoArgs {}

/// Runs the demo until it is told to stop.
pub(super) async fn run(_: DemoArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("the demo is not there yet")
}
