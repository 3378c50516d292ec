//! `demo`: a collector with a fresh database, and simulated settlement services that push to it
//! over HTTP. What there is to see is there at once: the last ten minutes are played first, as
//! fast as the collector takes them, then game time is real time.

use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use tokio::sync::watch;

use crate::app::Application;
use crate::audit::Settings;
use crate::clock::Clock;
use crate::config::{Config, LogFormat};
use crate::limits::MINUTE_US;
use crate::simulate::run::{Pace, play};
use crate::simulate::{Fault, FaultKind, StreamSettings};

/// Played before the demo's start, so that charts have something to show.
const HISTORY_US: i64 = 10 * MINUTE_US;
/// After this, the services rest.
const LENGTH_US: i64 = 24 * 60 * MINUTE_US;
/// Between two bad times; in between, all is well.
const BAD_TIMES_EVERY_US: i64 = 20 * MINUTE_US;
/// Players of each service: about 70 outcomes a second in all.
const PLAYERS: usize = 100;

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
pub(super) struct DemoArgs {
    /// Address and port of the server, on this machine
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9736", value_parser = loopback)]
    listen: SocketAddr,
    /// Another seed, other players
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "write it as 127.0.0.1:9736".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("the demo is for this machine: choose an address of 127.0.0.0/8 or [::1]".into())
    }
}

/// Runs the demo until it is told to stop.
pub(super) async fn run(arguments: DemoArgs) -> anyhow::Result<ExitCode> {
    super::start_logs("warn", LogFormat::Text);
    let signal = super::serve::stop_signal()?;
    let folder = Folder::make()?;
    let application = Application::build(config(&arguments, &folder), Clock::System).await?;
    let target = format!("http://{}", application.address());
    let (stop, stopped) = watch::channel(false);
    let collector = tokio::spawn(application.run_until_stopped(told(stopped)));
    let (leave, left) = watch::channel(false);
    let (settings, pace) = services(arguments.seed);
    let services = tokio::spawn({
        let target = target.clone();
        async move { play(&target, settings, pace, told(left)).await.map(drop) }
    });
    tell(&target);
    tokio::select! {
        () = signal => {}
        () = collector_ended(&stop) => {}
    }
    println!("the services say goodbye ...");
    leave.send_replace(true);
    services.await??;
    stop.send_replace(true);
    collector.await??;
    Ok(ExitCode::SUCCESS)
}

fn config(arguments: &DemoArgs, folder: &Folder) -> Config {
    Config {
        listen: arguments.listen,
        database: format!("sqlite://{}", folder.0.join("demo.db").display()).into(),
        // Its guards start empty, so nothing has to be waited for.
        audit: Settings { warmup_us: 0, ..Settings::default() },
        log_filter: "warn".into(),
        ..Config::default()
    }
}

/// The services, their players and their bad times.
fn services(seed: u64) -> (StreamSettings, Pace) {
    let start_us = Clock::System.now_us() - HISTORY_US;
    let settings = StreamSettings {
        seed,
        start_us,
        length_us: LENGTH_US,
        players: PLAYERS,
        tag: None,
        faults: faults(),
    };
    (settings, Pace::real_time(start_us))
}

/// Each bad time begins just before the demo's start, and then again and again: windows of three
/// at settle-slots, two private guards at settle-poker, lost outcomes at settle-baccarat.
fn faults() -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut from_us = HISTORY_US;
    while from_us < LENGTH_US {
        let fault = |kind, after_us, length_us, service| {
            let start_us = from_us + after_us;
            Fault { kind, start_us, length_us, service }
        };
        faults.push(fault(FaultKind::WindowOf3, -MINUTE_US, 3 * MINUTE_US, 1));
        faults.push(fault(FaultKind::TwoGuards, -MINUTE_US / 6, MINUTE_US, 0));
        faults.push(fault(FaultKind::LostTelemetry, MINUTE_US, MINUTE_US / 12, 2));
        from_us += BAD_TIMES_EVERY_US;
    }
    faults
}

fn tell(target: &str) {
    println!(
        "dedupwatch demo: three simulated services push to a collector with a fresh database.\n\
         \n  {target}\n\n\
         /          is money safe now? Not for the next two minutes.\n\
         /findings  settle-poker books twice what reaches a second private guard; settle-slots\n\
         \x20          lets go of live settlements, since its windows hold three\n\
         /sources   who reports, and who was blind: settle-baccarat, in a minute\n\
         /alerts    what fires\n\
         /metrics   the same for Prometheus\n\n\
         The next bad time comes in twenty minutes. Ctrl-C ends it all, the database too."
    );
}

/// Done as soon as the channel says so, or its other end is gone.
async fn told(mut channel: watch::Receiver<bool>) {
    let _ = channel.wait_for(|&stop| stop).await;
}

/// Done when the collector has ended by itself, and so dropped its end of the channel.
async fn collector_ended(stop: &watch::Sender<bool>) {
    stop.closed().await;
}

/// A folder that goes with the demo. Others can neither guess its name nor look into it.
struct Folder(PathBuf);

impl Folder {
    fn make() -> anyhow::Result<Self> {
        let name = format!("dedupwatch-demo-{}", uuid::Uuid::now_v7().simple());
        let path = std::env::temp_dir().join(name);
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("can't make the demo's folder {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "the demo's folder stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn its_folder_is_its_own_and_goes_with_it() {
        let (one, other) = (Folder::make().unwrap(), Folder::make().unwrap());
        assert_ne!(one.0, other.0);
        assert_eq!(std::fs::metadata(&one.0).unwrap().permissions().mode() & 0o777, 0o700);
        let path = one.0.clone();
        drop(one);
        assert!(!path.exists());
    }
}
