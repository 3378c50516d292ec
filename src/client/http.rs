//! The HTTP client, and the one place that names who does its cryptography.

use std::time::Duration;

/// A client for requests that may take this long.
///
/// reqwest is built without a TLS provider, since its own choice costs a minute of compiling C.
/// ring is installed here; whoever installed another one before keeps it.
pub fn http(timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::trace!("a TLS provider was installed before");
    }
    reqwest::Client::builder().timeout(timeout).build()
}
