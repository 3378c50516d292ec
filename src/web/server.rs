//! The HTTP server. Signals are the application's business, so it has none of its own.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use actix_web::dev::{ServerHandle, Service};
use actix_web::http::Method;
use actix_web::{App, HttpServer, middleware, web};

use super::{AppState, headers, host, routes};

/// Threads that serve requests: parsing an event costs 2 us, so one is enough; the second keeps
/// the pages answering while the first inflates a body.
const WORKERS: usize = 2;
/// How long an idle connection stays open: longer than proxies (60 s) and our own clients keep
/// theirs, so that none sends a request into one that is being closed.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// How long open requests may go on once the server is told to stop.
const SHUTDOWN_SECONDS: u64 = 5;

/// A bound server, not yet running.
pub struct Server(actix_web::dev::Server);

/// Stops a [`Server`] from elsewhere.
#[derive(Clone)]
pub struct StopHandle(ServerHandle);

impl Server {
    /// Serves on a bound socket.
    pub fn new(listener: TcpListener, state: AppState) -> io::Result<Self> {
        let state = web::Data::new(state);
        let server = HttpServer::new(move || {
            App::new()
                .wrap_fn(|mut request, service| {
                    // HEAD is GET whose body the server leaves out.
                    if request.method() == Method::HEAD {
                        request.head_mut().method = Method::GET;
                    }
                    service.call(request)
                })
                .wrap(middleware::from_fn(host::check))
                .wrap(headers::defaults())
                .wrap(middleware::NormalizePath::trim())
                .app_data(state.clone())
                .configure(routes)
        })
        .workers(WORKERS)
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(SHUTDOWN_SECONDS)
        .disable_signals()
        .listen(listener)?;
        Ok(Self(server.run()))
    }

    /// For stopping it.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.0.handle())
    }

    /// Serves until it is stopped.
    pub async fn run(self) -> io::Result<()> {
        self.0.await
    }
}

impl StopHandle {
    /// Takes no more connections, lets open requests end, and returns when they have.
    pub async fn stop(&self) {
        self.0.stop(true).await;
    }
}
