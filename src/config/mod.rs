//! What holds: the configuration after defaults, file, environment and flags, each stronger than
//! the one before.
//!
//! `keys` has every key once, with how it is read, checked and shown; `load` puts the layers
//! together and collects all that is wrong with them, so that nobody mends a file error by error.

mod database;
mod keys;
mod load;

use std::net::SocketAddr;

pub use database::{DatabaseUrl, without_password};
pub use keys::{KEYS, Key};
pub use load::{Layers, Loaded, Origin, Problem, Problems, load};

use crate::audit::Settings;
use crate::limits;

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// Whether an address that others can reach was asked for in full knowledge.
    pub insecure_listen: bool,
    /// `sqlite://PATH`.
    pub database: DatabaseUrl,
    /// The name under which this collector's part of the log and counters are kept.
    pub collector: String,
    /// How people reach the pages; used in links of notifications. Empty: the address that the
    /// server listens on, filled in as soon as that is known.
    pub external_url: String,
    /// What is logged: a `tracing` filter.
    pub log_filter: String,
    /// How it is logged.
    pub log_format: LogFormat,
    /// `[audit]`.
    pub audit: Settings,
    /// `[retention]`.
    pub retention: Retention,
    /// `[webhook]`, the one receiver of notifications.
    pub webhook: Option<Webhook>,
}

/// How long what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Records of the log, after their receipt.
    pub raw_us: i64,
    /// What was counted by minute, after that minute.
    pub rollups_us: i64,
    /// So much the database may hold before the oldest days of the log go.
    pub disk_cap_bytes: Option<i64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { raw_us: 14 * limits::DAY_US, rollups_us: 400 * limits::DAY_US, disk_cap_bytes: None }
    }
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines: one JSON object a line.
    Json,
}

/// The receiver of notifications.
#[derive(Clone)]
pub struct Webhook {
    /// Where to post to; may hold a secret.
    pub url: String,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Webhook { url: <secret> }")
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 9736)),
            insecure_listen: false,
            database: "sqlite://data/dedupwatch.db".to_owned().into(),
            collector: "collector-1".into(),
            external_url: String::new(),
            log_filter: "info,actix_server=warn".into(),
            log_format: LogFormat::Text,
            audit: Settings::default(),
            retention: Retention::default(),
            webhook: None,
        }
    }
}
