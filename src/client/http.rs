//! The HTTP client, and the one place that names who does its cryptography.

use std::time::Duration;

/// Before the collector gives up an idle connection (75 s): a request on one that is just being
/// closed fails.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A client for requests that may take this long.
///
/// reqwest is built without a TLS provider, since its own choice costs a minute of compiling C.
/// ring is installed here; whoever installed another one before keeps it. Redirects are not
/// followed: most turn a POST into a GET, whose 200 would look like an acknowledgement.
pub fn http(timeout: Duration) -> Result<reqwest::Client, reqwest::Error> {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::trace!("a TLS provider was installed before");
    }
    let no_redirects = reqwest::redirect::Policy::none();
    reqwest::Client::builder()
        .timeout(timeout)
        .redirect(no_redirects)
        .pool_idle_timeout(IDLE_MAX)
        .build()
}
