//! `serve`: the collector, until SIGTERM or SIGINT.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::settings::SettingArgs;
use super::start_logs;
use crate::app::Application;
use crate::clock::Clock;

/// Serves until it is told to stop.
pub(super) async fn run(settings: &SettingArgs) -> anyhow::Result<ExitCode> {
    let config = settings.load()?.config;
    start_logs(&config.log_filter, config.log_format);
    let stop = stop_signal()?;
    let database = config.database.clone();
    let application = Application::build(config, Clock::System).await?;
    println!(
        "dedupwatch {} listens on http://{}, database {database}",
        env!("CARGO_PKG_VERSION"),
        application.address(),
    );
    application.run_until_stopped(stop).await?;
    Ok(ExitCode::SUCCESS)
}

/// Done at the first SIGTERM or SIGINT. It listens from the call on, so a signal that comes while
/// the collector starts is not lost.
pub(super) fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
