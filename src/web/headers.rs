//! Headers of every answer. The pages have no script and nothing inline, so the policy can
//! forbid all that a page could be tricked into loading.

use actix_web::middleware::DefaultHeaders;

/// Nothing but our own style sheet and images; forms only to us; in nobody's frame.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; \
     form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The headers that an answer gets unless its handler says otherwise.
pub(super) fn defaults() -> DefaultHeaders {
    DefaultHeaders::new()
        .add(("Content-Security-Policy", CONTENT_SECURITY_POLICY))
        .add(("X-Content-Type-Options", "nosniff"))
        // Addresses of pages name players.
        .add(("Referrer-Policy", "same-origin"))
        .add(("Cross-Origin-Opener-Policy", "same-origin"))
        .add(("Cross-Origin-Resource-Policy", "same-origin"))
        // What a page says is true for a moment only.
        .add(("Cache-Control", "no-store"))
}
