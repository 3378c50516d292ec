//! Keeps other sites from reading the pages through a reader's browser. A site can give its own
//! name the address of this collector (DNS rebinding); to the browser both are then one site. But
//! the browser says by which name it came, so names that are not ours are refused. What compares
//! an origin with the name ([`super::origin`]) rests on this.

use std::net::IpAddr;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::uri::Authority;
use actix_web::http::{StatusCode, Uri, header};
use actix_web::middleware::Next;
use actix_web::{Error, HttpResponse, ResponseError, web};

use super::AppState;
use super::error::{ApiError, Problem, is_api};

/// Refuses requests to a name that is not ours. Without a name no browser has sent it.
pub(super) async fn check<B: MessageBody>(
    state: web::Data<AppState>,
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let host = request.headers().get(header::HOST);
    if host.is_none_or(|host| is_ours(host.as_bytes(), &state.config.external_url)) {
        return Ok(next.call(request).await?.map_into_left_body());
    }
    let told = "This collector does not go by that host name. Reach it by its IP address, as \
                localhost, or by the name in `external_url` of its configuration.";
    let problem = Problem::new(StatusCode::MISDIRECTED_REQUEST, "other_host", told);
    let response = match is_api(request.path()) {
        true => ApiError(problem).error_response(),
        // A page would load its style sheet by the same wrong name.
        false => HttpResponse::build(problem.status).body(problem.message + "\n"),
    };
    Ok(request.into_response(response).map_into_right_body())
}

/// Whether a name is an address, `localhost`, or the one that people are told.
fn is_ours(host: &[u8], external_url: &str) -> bool {
    let Ok(host) = Authority::try_from(host) else { return false };
    let name = host.host();
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let external: Option<Uri> = external_url.parse().ok();
    let external = external.as_ref().and_then(Uri::host);
    address.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || external.is_some_and(|external| name.eq_ignore_ascii_case(external))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_our_own_names_are_ours() {
        let is_ours = |host: &str| is_ours(host.as_bytes(), "https://Watch.example:8443/d");
        for host in [
            "127.0.0.1:9736",
            "10.1.2.3",
            "[::1]:9736",
            "localhost",
            "LOCALHOST:1",
            "watch.example",
        ] {
            assert!(is_ours(host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "a b", "x@"]
        {
            assert!(!is_ours(host), "{host}");
        }
    }
}
