//! The commands. Without a command it serves, so that one word is enough to start.
//!
//! Exit status: 0 done, 1 it did not work or the check found differences, 2 the command line or
//! the configuration is wrong.

mod backup;
mod check_config;
mod demo;
mod serve;
mod settings;
mod simulate;
mod verify;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use self::settings::{DatabaseArgs, SettingArgs};
use crate::config::{LogFormat, Problems};

/// Independent audit of settlement deduplication: is every settlement booked exactly once?
#[derive(Debug, Parser)]
#[command(name = "dedupwatch", version, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: SettingArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Collects outcomes, audits them, serves pages, API and metrics (the default)
    Serve(SettingArgs),
    /// Shows what it can do: a collector with a fresh database and simulated services
    Demo(demo::DemoArgs),
    /// Pushes simulated settlements to a collector
    Simulate(simulate::SimulateArgs),
    /// Folds the log again and names every difference to what is stored; the server may run
    Verify(DatabaseArgs),
    /// Folds the log again and stores what it says; the server must be stopped
    Rebuild(DatabaseArgs),
    /// Copies the database to a new file; the server may run
    Backup(backup::BackupArgs),
    /// Puts a copy in the place of the database; the server must be stopped
    Restore(backup::RestoreArgs),
    /// Prints the configuration in force and where each value comes from
    CheckConfig(SettingArgs),
}

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(why) => return failed(&anyhow::Error::new(why).context("can't start threads")),
    };
    match runtime.block_on(run(arguments)) {
        Ok(code) => code,
        Err(why) => failed(&why),
    }
}

async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command.unwrap_or(Command::Serve(arguments.serve)) {
        Command::Serve(settings) => serve::run(&settings).await,
        Command::Demo(demo) => demo::run(demo).await,
        Command::Simulate(simulate) => simulate::run(simulate).await,
        Command::Verify(settings) => verify::verify(&settings).await,
        Command::Rebuild(settings) => verify::rebuild(&settings).await,
        Command::Backup(arguments) => backup::backup(&arguments).await,
        Command::Restore(arguments) => backup::restore(&arguments).await,
        Command::CheckConfig(settings) => check_config::run(&settings),
    }
}

fn failed(why: &anyhow::Error) -> ExitCode {
    eprintln!("dedupwatch: {}", told(why).trim_end());
    ExitCode::from(if why.is::<Problems>() { 2 } else { 1 })
}

/// The error and its causes, without those that its own text tells already.
fn told(why: &anyhow::Error) -> String {
    why.chain().map(ToString::to_string).fold(String::new(), |told, cause| match told {
        told if told.is_empty() => cause,
        told if told.contains(&cause) => told,
        told => format!("{told}: {cause}"),
    })
}

/// Logs go to standard error; standard output is for what a command prints.
fn start_logs(filter: &str, format: LogFormat) {
    let logs = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}
