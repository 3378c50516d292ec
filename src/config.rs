//! What holds: the configuration after file, environment and flags.

use std::net::SocketAddr;

use crate::audit::Settings;

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// `sqlite://PATH`.
    pub database: String,
    /// The name under which this collector's part of the log and counters are kept.
    pub collector: String,
    /// How people reach the pages; used in links of notifications.
    pub external_url: String,
    /// `[audit]`.
    pub audit: Settings,
    /// `[webhook]`, the one receiver of notifications.
    pub webhook: Option<Webhook>,
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
            database: "sqlite://data/dedupwatch.db".into(),
            collector: "collector-1".into(),
            external_url: "http://127.0.0.1:9736".into(),
            audit: Settings::default(),
            webhook: None,
        }
    }
}
