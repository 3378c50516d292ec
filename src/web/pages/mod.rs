//! The pages: one file is one page, one template and one URL. Server-rendered, without scripts.

pub mod alerts;
pub mod assets;
mod chart;
pub mod error;
pub mod finding;
pub mod findings;
pub mod help;
mod lines;
pub mod overview;
pub mod player;
mod sentence;
pub mod service;
pub mod sources;
mod topics;
mod verdict;
mod window;
mod words;

use actix_web::HttpResponse;
use askama::Template;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::AppState;
use super::error::{PageError, Problem};
use super::format::Moment;

/// The content type of a page.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// What every page has around it.
struct Shell {
    /// Which entry of the navigation this is: its address.
    here: &'static str,
    /// Where the style sheet is.
    style: &'static str,
    /// When the page was made; an error has no clock at hand.
    now: Option<Moment>,
}

impl Shell {
    fn new(here: &'static str, now_us: i64) -> Self {
        Self { now: Some(Moment::new(now_us, now_us)), here, ..Self::timeless() }
    }

    fn timeless() -> Self {
        Self { here: "", style: assets::STYLE_URL, now: None }
    }

    fn is(&self, address: &str) -> bool {
        self.here == address
    }
}

/// Renders a page. The program is without fault only if this can't fail; if it does, say so.
fn render(page: &impl Template) -> Result<HttpResponse, PageError> {
    match page.render() {
        Ok(html) => Ok(HttpResponse::Ok().content_type(HTML).body(html)),
        Err(error) => {
            tracing::error!(%error, "a page can't be rendered");
            let told = "This page can't be shown. The collector's log says why.";
            let status = actix_web::http::StatusCode::INTERNAL_SERVER_ERROR;
            Err(Problem::new(status, "internal", told).into())
        }
    }
}

/// Whether any outcome was ever received: no data must not look like zero. Heartbeats and the
/// collector's own records are none.
async fn has_data(state: &AppState) -> Result<bool, PageError> {
    Ok(state.store.has_outcomes().await?)
}

/// The address of a player's page; names may hold anything.
fn player_url(ledger: &str, player: &str) -> String {
    format!("/players/{}/{}", encode(ledger), encode(player))
}

/// The address of a service's page.
fn service_url(service: &str) -> String {
    format!("/services/{}", encode(service))
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
