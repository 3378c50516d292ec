//! What people and programs see: the pages, the read API, and the way in for outcomes.
//!
//! All routes are on this screen. `api` has one file for each resource; `pages` has one file for
//! each page, which is one template and one URL. Nothing here decides: handlers read, build the
//! answer and render it.

pub mod api;
mod coverage;
pub mod error;
mod format;
mod headers;
mod health;
mod host;
mod origin;
pub mod pages;
mod query;
mod server;
mod summary;

use std::sync::Arc;

use actix_web::web::{self as actix, ServiceConfig};

pub use self::server::{Server, StopHandle};
use crate::clock::Clock;
use crate::config::Config;
use crate::ingest::Ingest;
use crate::metrics::Metrics;
use crate::store::Store;
use crate::vitals::Vitals;

/// What the handlers work with.
pub struct AppState {
    /// The database.
    pub store: Arc<Store>,
    /// The way in for outcomes.
    pub ingest: Ingest,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// The signs of life of the other parts.
    pub vitals: Arc<Vitals>,
    /// The present moment.
    pub clock: Clock,
    /// What holds.
    pub config: Arc<Config>,
}

/// All routes.
pub fn routes(config: &mut ServiceConfig) {
    let at = |path| actix::resource(path).default_service(actix::to(error::wrong_method));
    config
        .app_data(error::json_config())
        .app_data(error::form_config())
        .service(at("/").get(pages::overview::show))
        .service(at("/findings").get(pages::findings::show))
        .service(at("/findings/{id}").get(pages::finding::show))
        .service(at("/findings/{id}/close").post(pages::finding::close))
        .service(at("/services/{name}").get(pages::service::show))
        .service(at("/sources").get(pages::sources::show))
        .service(at("/players/{ledger}/{player}").get(pages::player::show))
        .service(at("/alerts").get(pages::alerts::show))
        .service(at("/help").get(pages::help::list))
        .service(at("/help/{topic}").get(pages::help::show))
        .service(at("/assets/style.css").get(pages::assets::style))
        .service(at("/assets/icon.svg").get(pages::assets::icon))
        .service(at("/api/v1/findings").get(api::findings::list))
        .service(at("/api/v1/findings.csv").get(api::findings_csv::list))
        .service(at("/api/v1/findings/{id}").get(api::findings::one))
        .service(at("/api/v1/findings/{id}/close").post(api::close::close))
        .service(at("/api/v1/services").get(api::services::list))
        .service(at("/api/v1/services/{name}").get(api::services::one))
        .service(at("/api/v1/services/{name}/transitions").get(api::transitions::list))
        .service(at("/api/v1/sources").get(api::sources::list))
        .service(at("/api/v1/players/{ledger}/{player}").get(api::players::one))
        .service(at("/api/v1/outcomes").get(api::outcomes::list).post(api::ingest::outcomes))
        .service(at("/api/v1/heartbeats").post(api::ingest::heartbeats))
        .service(at("/api/v1/transitions").post(api::ingest::transitions))
        .service(at("/api/v1/alerts").get(api::alerts::list))
        .service(at("/api/v1/config").get(api::config::show))
        .service(at("/openapi.json").get(api::openapi::show))
        .service(at("/metrics").get(health::metrics))
        .service(at("/-/healthy").get(health::healthy))
        .service(at("/-/ready").get(health::ready))
        .default_service(actix::to(error::not_found));
}
