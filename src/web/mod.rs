//! What people and programs see: the pages, the read API, and the way in for outcomes.
//!
//! All routes are on this screen. `api` has one file for each resource; `pages` has one file for
//! each page, which is one template and one URL. Nothing here decides: handlers read, build the
//! answer and render it.

pub mod api;
pub mod error;
mod headers;
mod health;
pub mod pages;
mod server;

use std::sync::Arc;

use actix_web::web::{self as actix, ServiceConfig};

pub use self::server::{Server, StopHandle};
use crate::clock::Clock;
use crate::config::Config;
use crate::store::Store;
use crate::vitals::Vitals;

/// What the handlers work with.
pub struct AppState {
    /// The database.
    pub store: Arc<Store>,
    /// The signs of life of the other parts.
    pub vitals: Arc<Vitals>,
    /// The present moment.
    pub clock: Clock,
    /// What holds.
    pub config: Arc<Config>,
}

/// All routes.
pub fn routes(config: &mut ServiceConfig) {
    let at = actix::resource::<&str>;
    config
        .service(at("/-/healthy").get(health::healthy))
        .service(at("/-/ready").get(health::ready))
        .default_service(actix::to(pages::error::not_found));
}
