//! `simulate`: pushes simulated settlements to a collector.

use std::process::ExitCode;

/// Flags of `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct SimulateArgs {}

/// Runs the simulation.
pub(super) async fn run(_: SimulateArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("the simulator is not there yet")
}
