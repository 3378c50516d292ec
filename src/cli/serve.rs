//! `serve`: the collector, until SIGTERM or SIGINT.

use std::io::Write as _;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::settings::SettingArgs;
use super::start_logs;
use crate::app::Application;
use crate::clock::Clock;
use crate::config::Loaded;

/// Serves until it is told to stop.
pub(super) async fn run(settings: &SettingArgs) -> anyhow::Result<ExitCode> {
    let Loaded { config, passed_over, .. } = settings.load()?;
    start_logs(&config.log_filter, config.log_format);
    if !passed_over.is_empty() {
        tracing::warn!(?passed_over, "variables that are no key's");
    }
    let stop = stop_signal()?;
    let database = config.database.to_string();
    let application = Application::build(config, Clock::System).await?;
    // Whoever closed standard output does not want to know.
    let _ = writeln!(
        std::io::stdout(),
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
