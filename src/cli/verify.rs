//! `verify` and `rebuild`: what is stored must be what the log says.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use super::settings::DatabaseArgs;
use super::start_logs;
use crate::redo::{self, Verified};

/// Bytes of one side of a difference that are shown.
const SHOWN_MAX: usize = 2_000;

/// Folds the log again and names every difference; a collector may run meanwhile.
pub(super) async fn verify(settings: &DatabaseArgs) -> anyhow::Result<ExitCode> {
    let config = settings.load()?.config;
    start_logs(&config.log_filter, config.log_format);
    let verified = redo::verify(&config.database, &config.collector).await?;
    std::io::stdout().write_all(told(&verified).as_bytes())?;
    let is_right = verified.tables.is_empty();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Folds the log again and puts that in the place of what is stored.
pub(super) async fn rebuild(settings: &DatabaseArgs) -> anyhow::Result<ExitCode> {
    let config = settings.load()?.config;
    start_logs(&config.log_filter, config.log_format);
    let records = redo::rebuild(&config.database, &config.collector).await?;
    writeln!(std::io::stdout(), "{records} records folded: what is stored is what the log says")?;
    Ok(ExitCode::SUCCESS)
}

fn told(verified: &Verified) -> String {
    let mut text = format!("{} records folded: ", verified.records);
    let count: i64 = verified.tables.iter().map(|table| table.count).sum();
    if count == 0 {
        return text + "no difference\n";
    }
    let _ = writeln!(text, "{count} rows differ");
    for table in &verified.tables {
        let _ = writeln!(text, "{}: {} rows differ", table.table, table.count);
        for difference in &table.told {
            let _ = writeln!(
                text,
                "  {}\n    stored: {}\n    by the log: {}",
                difference.key,
                side(difference.stored.as_deref()),
                side(difference.redone.as_deref()),
            );
        }
        let more = table.count - i64::try_from(table.told.len()).unwrap_or(i64::MAX);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more");
        }
    }
    text + "`dedupwatch rebuild`, with the collector stopped, stores what the log says\n"
}

fn side(text: Option<&str>) -> String {
    match text {
        None => "no such row".into(),
        Some("") => "there".into(),
        Some(text) if text.len() <= SHOWN_MAX => text.into(),
        Some(text) => {
            let shown: String = text.chars().take(SHOWN_MAX).collect();
            format!("{shown}... ({} bytes)", text.len())
        }
    }
}
