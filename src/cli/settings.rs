//! The flags of the configuration, and the only place that reads the environment and the file.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Layers, Loaded, Problem, Problems, load};

/// Flags of the commands that use a database. Stronger than `DEDUPWATCH_*`, which is stronger
/// than the file.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DatabaseArgs {
    /// A TOML file; an unknown key in it is an error
    #[arg(long, value_name = "FILE", env = FILE_VARIABLE)]
    config: Option<PathBuf>,
    /// sqlite://PATH or postgres://USER@HOST/DATABASE [env: DEDUPWATCH_DATABASE]
    /// [default: sqlite://data/dedupwatch.db]
    #[arg(long, value_name = "URL")]
    database: Option<String>,
}

/// Flags that `serve` and `check-config` share.
#[derive(Debug, Args)]
pub(super) struct SettingArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Address and port of the server [env: DEDUPWATCH_LISTEN] [default: 127.0.0.1:9736]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Allow an address that other machines can reach [env: DEDUPWATCH_INSECURE_LISTEN]
    ///
    /// There are no users and no TLS yet. Whoever reaches the address reads all players and
    /// amounts, pushes outcomes of their own, closes findings, and so can hide a leak; and all of
    /// it crosses the network in the clear. Use it only on a network where everybody may do that,
    /// or behind a proxy that asks who comes and speaks TLS.
    #[arg(long)]
    insecure_listen: bool,
}

/// Names the file; the one variable that is no key.
const FILE_VARIABLE: &str = "DEDUPWATCH_CONFIG";

const AFTER_HELP: &str = "Each key of the file is also a variable: `warmup` under [audit] is \
    DEDUPWATCH_AUDIT_WARMUP. `dedupwatch check-config` prints all of them with what holds.";

impl SettingArgs {
    /// What holds, by all layers.
    pub(super) fn load(&self) -> Result<Loaded, Problems> {
        let listen = self.listen.clone().map(|text| ("listen", text));
        let insecure = self.insecure_listen.then(|| ("insecure_listen", "true".into()));
        self.database.load_with(listen.into_iter().chain(insecure).collect())
    }
}

impl DatabaseArgs {
    /// What holds, by all layers.
    pub(super) fn load(&self) -> Result<Loaded, Problems> {
        self.load_with(Vec::new())
    }

    fn load_with(&self, mut flags: Vec<(&'static str, String)>) -> Result<Loaded, Problems> {
        flags.extend(self.database.clone().map(|text| ("database", text)));
        let file = self.config.as_ref().map(std::fs::read_to_string).transpose();
        let file = file.map_err(|why| {
            let path = self.config.as_deref().unwrap_or_else(|| std::path::Path::new(""));
            Problems(vec![Problem {
                key: "--config".into(),
                problem: format!("can't read {}: {why}", path.display()),
                remedy: "name a file that is there, or leave it out".into(),
            }])
        })?;
        load(&Layers { file, environment: environment(), flags })
    }
}

/// The variables that could be meant. A value that is not UTF-8 comes with its bad bytes replaced,
/// and is refused where it matters.
fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into(), value.to_string_lossy().into()))
        .filter(|(name, _): &(String, String)| {
            name.starts_with("DEDUPWATCH_") && name != FILE_VARIABLE
        })
        .collect()
}
