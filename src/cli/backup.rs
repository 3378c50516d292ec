//! `backup` and `restore`: a copy of the database while the server runs, and back.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::settings::DatabaseArgs;
use super::start_logs;
use crate::clock::Clock;
use crate::store::backup;

/// Flags of `backup`.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Where the copy goes; nothing may be there yet
    file: PathBuf,
    #[command(flatten)]
    settings: DatabaseArgs,
}

/// Flags of `restore`.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// A copy that `backup` made
    file: PathBuf,
    /// Put it in the place of a database that is there, which is kept under another name
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    settings: DatabaseArgs,
}

/// Copies the database; a collector may run meanwhile.
pub(super) async fn backup(arguments: &BackupArgs) -> anyhow::Result<ExitCode> {
    let config = arguments.settings.load()?.config;
    start_logs(&config.log_filter, config.log_format);
    let copied = backup::backup(&config.database, &arguments.file).await?;
    writeln!(
        std::io::stdout(),
        "{}: {} bytes, {} records",
        arguments.file.display(),
        copied.bytes,
        copied.records
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Puts a copy in the place of the database.
pub(super) async fn restore(arguments: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let config = arguments.settings.load()?.config;
    start_logs(&config.log_filter, config.log_format);
    let now_us = Clock::System.now_us();
    let (file, database) = (&arguments.file, &config.database);
    let copied = backup::restore(file, database, arguments.force, now_us).await?;
    let mut out = std::io::stdout();
    writeln!(out, "{database}: {} bytes, {} records", copied.bytes, copied.records)?;
    if let Some(kept) = copied.kept {
        writeln!(out, "what was there is kept: {}", kept.display())?;
    }
    Ok(ExitCode::SUCCESS)
}
