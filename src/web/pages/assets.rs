//! The style sheet and the icon, from our own origin.

use actix_web::HttpResponse;
use actix_web::http::header::CACHE_CONTROL;

const STYLE: &str = include_str!("../../../templates/style.css");
const ICON: &str = include_str!("../../../templates/icon.svg");

/// The address of the style sheet. Browsers may keep it for a day; another version of the program
/// has another address.
pub(super) const STYLE_URL: &str = concat!("/assets/style.css?v=", env!("CARGO_PKG_VERSION"));

/// The style sheet.
pub(in crate::web) async fn style() -> HttpResponse {
    keep("text/css; charset=utf-8", STYLE)
}

/// The icon.
pub(in crate::web) async fn icon() -> HttpResponse {
    keep("image/svg+xml", ICON)
}

fn keep(content_type: &str, body: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, "max-age=86400"))
        .content_type(content_type)
        .body(body)
}
