//! `check-config`: what holds and where it comes from, so that a start holds no surprise.

use std::process::ExitCode;

use super::settings::SettingArgs;
use crate::config::{KEYS, Loaded};

/// Prints what holds; secrets are hidden.
pub(super) fn run(settings: &SettingArgs) -> anyhow::Result<ExitCode> {
    print!("{}", printed(&settings.load()?));
    Ok(ExitCode::SUCCESS)
}

fn printed(loaded: &Loaded) -> String {
    let lines = KEYS.iter().map(|key| {
        let value = match key.shown(&loaded.config) {
            value if value.is_empty() => "-".into(),
            value => value,
        };
        let origin = loaded.origin(key).as_str();
        format!("{:<22} {value:<34} {origin:<12} {}\n", key.name, key.about)
    });
    lines.collect()
}
