//! `check-config`: what holds and where it comes from, so that a start holds no surprise.

use std::io::Write as _;
use std::process::ExitCode;

use super::settings::SettingArgs;
use crate::config::{KEYS, Loaded};

/// Prints what holds; secrets are hidden.
pub(super) fn run(settings: &SettingArgs) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(printed(&settings.load()?).as_bytes())?;
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
    let passed_over = loaded.passed_over.iter();
    let passed_over =
        passed_over.map(|name| format!("{name} is passed over: no key is named so\n"));
    lines.chain(passed_over).collect()
}
