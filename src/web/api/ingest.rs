//! The way in over HTTP: what a sender gets for which body.
//!
//! A body is refused as early as that can be known: by its headers, by its size while it comes,
//! by its form. Events are refused one by one, beside the others. Overload and outages say when
//! to try again.

use std::time::Duration;

use actix_web::error::BlockingError;
use actix_web::http::{StatusCode, header};
use actix_web::rt::time::timeout;
use actix_web::{HttpRequest, HttpResponse, web};

use crate::ingest::decode::{self, BodyError, Context, Decoded, Encoding, Format};
use crate::ingest::{Admission, Answer, Busy};
use crate::limits;
use crate::outcome::{Event, Heartbeat, Transition};
use crate::web::AppState;
use crate::web::error::{ApiError, ErrorBody, Problem};
use crate::web::query::{Params, refused};

/// What is accepted, for those who sent something else.
const ACCEPTED: &str = "send application/json or application/x-ndjson, UTF-8, plain, \
    gzip or zstd";

/// How long a body may take to arrive; set by tests that can't wait.
#[derive(Clone, Copy, Debug)]
pub struct BodyPatience(pub Duration);

impl Default for BodyPatience {
    fn default() -> Self {
        Self(Duration::from_secs(limits::BODY_SECONDS_MAX))
    }
}

/// Takes outcomes of guards: one object, an array, or one object a line. With `check=1` it answers
/// the same, and nothing is written, counted or remembered.
#[utoipa::path(post, path = "/api/v1/outcomes", tag = "ingest",
    params(("check" = Option<String>, Query, description = "`1`: say what would become of it")),
    request_body(content = Object,
        description = "One outcome, an array, or NDJSON; plain, gzip or zstd"),
    responses(
        (status = 200, description = "Nothing rejected", body = Answer),
        (status = 207, description = "Some rejected, the rest on disk", body = Answer),
        (status = 422, description = "All rejected", body = Answer),
        (status = 400, description = "Empty, broken or truncated body, or an unknown parameter",
            body = ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = ErrorBody),
        (status = 413, description = "Too large or too many events", body = ErrorBody),
        (status = 415, description = "Unknown content type or encoding", body = ErrorBody),
        (status = 429, description = "Queue full or audit behind", body = ErrorBody),
        (status = 503, description = "Database away or shutting down", body = ErrorBody),
))]
pub(in crate::web) async fn outcomes(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<AppState>,
) -> Result<HttpResponse, ApiError> {
    let check = is_check(&request)?;
    state.ingest.keeps_up()?;
    let (events, admission): (Decoded<Event>, _) =
        receive(&request, payload, &state, decode::outcomes).await?;
    let answer = match check {
        true => state.ingest.check(events, admission).await?,
        false => state.ingest.push(events, admission).await?,
    };
    Ok(told(&answer))
}

/// Takes moves of deliveries between states: one object, an array, or one object a line.
#[utoipa::path(post, path = "/api/v1/transitions", tag = "ingest",
    request_body(content = Object,
        description = "One transition, an array, or NDJSON; plain, gzip or zstd"),
    responses(
        (status = 200, description = "Nothing rejected", body = Answer),
        (status = 207, description = "Some rejected, the rest on disk", body = Answer),
        (status = 422, description = "All rejected", body = Answer),
        (status = 400, description = "Empty, broken or truncated body, or an unknown parameter",
            body = ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = ErrorBody),
        (status = 413, description = "Too large or too many transitions", body = ErrorBody),
        (status = 415, description = "Unknown content type or encoding", body = ErrorBody),
        (status = 429, description = "Queue full or audit behind", body = ErrorBody),
        (status = 503, description = "Database away or shutting down", body = ErrorBody),
))]
pub(in crate::web) async fn transitions(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<AppState>,
) -> Result<HttpResponse, ApiError> {
    Params::parse(request.query_string(), &[])?;
    state.ingest.keeps_up()?;
    let (transitions, admission): (Decoded<Transition>, _) =
        receive(&request, payload, &state, decode::transitions).await?;
    Ok(told(&state.ingest.transitions(transitions, admission).await?))
}

/// Takes heartbeats of sources: one object, an array, or one object a line.
#[utoipa::path(post, path = "/api/v1/heartbeats", tag = "ingest",
    request_body(content = Object,
        description = "One heartbeat, an array, or NDJSON; plain, gzip or zstd"),
    responses(
        (status = 200, description = "Nothing rejected", body = Answer),
        (status = 207, description = "Some rejected, the rest on disk", body = Answer),
        (status = 422, description = "All rejected", body = Answer),
        (status = 400, description = "Empty, broken or truncated body, or an unknown parameter",
            body = ErrorBody),
        (status = 408, description = "The body did not arrive in time", body = ErrorBody),
        (status = 413, description = "Too large or too many heartbeats", body = ErrorBody),
        (status = 415, description = "Unknown content type or encoding", body = ErrorBody),
        (status = 429, description = "Queue full", body = ErrorBody),
        (status = 503, description = "Database away or shutting down", body = ErrorBody),
))]
pub(in crate::web) async fn heartbeats(
    request: HttpRequest,
    payload: web::Payload,
    state: web::Data<AppState>,
) -> Result<HttpResponse, ApiError> {
    Params::parse(request.query_string(), &[])?;
    let (beats, admission): (Decoded<Heartbeat>, _) =
        receive(&request, payload, &state, decode::heartbeats).await?;
    Ok(told(&state.ingest.heartbeats(beats, admission).await?))
}

/// Whether nothing is to be written. A query that says it in another way is refused rather than
/// written.
fn is_check(request: &HttpRequest) -> Result<bool, Problem> {
    let query = request.query_string();
    let check = Params::parse(query, &["check"])?.word("check", &["1"])?;
    match check {
        None if !query.is_empty() => {
            Err(refused("check", "has no value; use check=1, or leave it out to have it written"))
        }
        check => Ok(check.is_some()),
    }
}

type Decode<T> = fn(&[u8], Format, Context) -> Result<Decoded<T>, BodyError>;

/// The decoded body, and the room that it takes. Inflating and decoding take up to half a second,
/// so they are done beside the threads that serve.
async fn receive<T: Send + 'static>(
    request: &HttpRequest,
    payload: web::Payload,
    state: &AppState,
    decode: Decode<T>,
) -> Result<(Decoded<T>, Admission), ApiError> {
    let format = format_of(request)?;
    let encoding = encoding_of(request)?;
    let mut admission = state.ingest.admit(length_of(request)?)?;
    let body = read(request, payload).await?;
    admission.fit(body.len())?;
    admission.turn().await;
    let context = Context { now_us: state.clock.now_us(), hash: state.store.hash() };
    let decoded = web::block(move || {
        let body = match encoding {
            Some(encoding) => decode::inflate(&body, encoding)?.into(),
            None => body,
        };
        admission.fit(body.len())?;
        Ok::<_, Problem>((decode(&body, format, context)?, admission))
    });
    Ok(decoded.await??)
}

fn too_large() -> Problem {
    BodyError::TooLarge(limits::BODY_BYTES_MAX, "as sent").into()
}

/// How long the body is at most.
fn length_of(request: &HttpRequest) -> Result<usize, Problem> {
    let most = limits::BODY_BYTES_MAX;
    let named = request.headers().get(header::CONTENT_LENGTH);
    match named.and_then(|value| value.to_str().ok()?.parse::<usize>().ok()) {
        Some(length) if length > most => Err(too_large()),
        named => Ok(named.unwrap_or(most)),
    }
}

async fn read(request: &HttpRequest, payload: web::Payload) -> Result<web::Bytes, Problem> {
    let patience = request.app_data::<BodyPatience>().copied().unwrap_or_default();
    match timeout(patience.0, payload.to_bytes_limited(limits::BODY_BYTES_MAX)).await {
        Ok(Ok(Ok(body))) => Ok(body),
        Ok(Ok(Err(error))) => Err(Problem::bad_request(
            "truncated",
            format!("The body did not come to its end ({error}). Send it again."),
        )),
        Ok(Err(_)) => Err(too_large()),
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_too_slow",
            format!("The body did not arrive within {} s. Send it again.", patience.0.as_secs()),
        )),
    }
}

fn format_of(request: &HttpRequest) -> Result<Format, Problem> {
    let header = request.headers().get(header::CONTENT_TYPE);
    let text = header.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = text.split(';').map(|part| part.trim().to_ascii_lowercase());
    let format = match parts.next().as_deref() {
        Some("application/json") => Some(Format::Json),
        Some("application/x-ndjson") => Some(Format::NdJson),
        _ => None,
    };
    let foreign = parts.any(|part| {
        part.strip_prefix("charset=").is_some_and(|charset| charset.trim_matches('"') != "utf-8")
    });
    format.filter(|_| !foreign).ok_or_else(|| {
        unsupported("unknown_content_type", &format!("Content-Type {text:.100?} is not taken"))
    })
}

/// How the body is packed, if it is.
fn encoding_of(request: &HttpRequest) -> Result<Option<Encoding>, Problem> {
    let encodings: Vec<_> = request.headers().get_all(header::CONTENT_ENCODING).collect();
    let names: Vec<_> =
        encodings.iter().map(|value| value.as_bytes().to_ascii_lowercase()).collect();
    match names.as_slice() {
        [] => Ok(None),
        [name] if name == b"identity" => Ok(None),
        [name] if name == b"gzip" => Ok(Some(Encoding::Gzip)),
        [name] if name == b"zstd" => Ok(Some(Encoding::Zstd)),
        _ => Err(unsupported("unknown_encoding", "this Content-Encoding is not taken")),
    }
}

fn unsupported(code: &'static str, what: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, code, format!("{what}; {ACCEPTED}"))
}

fn told(answer: &Answer) -> HttpResponse {
    let status = match (answer.rejected, answer.written + answer.repeated) {
        (0, _) => StatusCode::OK,
        (_, 0) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::MULTI_STATUS,
    };
    HttpResponse::build(status)
        .insert_header(("X-Dedupwatch-Written", answer.written.to_string()))
        .insert_header(("X-Dedupwatch-Repeated", answer.repeated.to_string()))
        .insert_header(("X-Dedupwatch-Rejected", answer.rejected.to_string()))
        .json(answer)
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let status = match error.is_size() {
            true => StatusCode::PAYLOAD_TOO_LARGE,
            false => StatusCode::BAD_REQUEST,
        };
        Self::new(status, error.code(), error.to_string())
    }
}

impl From<Busy> for Problem {
    fn from(busy: Busy) -> Self {
        let status = match busy.is_overload() {
            true => StatusCode::TOO_MANY_REQUESTS,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let message = format!("Not taken: {busy}. Send the same again.");
        Self::busy(status, busy.code(), &message, busy.retry_after_s())
    }
}

/// The threads that decode are gone: the collector is going too.
impl From<BlockingError> for Problem {
    fn from(_: BlockingError) -> Self {
        Busy::Closing.into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::Arc;

    use actix_web::rt::System;
    use actix_web::{App, HttpServer};

    use super::*;
    use crate::clock::Clock;
    use crate::config::Config;
    use crate::ingest::{Ingest, Parts};
    use crate::metrics::Metrics;
    use crate::store::fixtures::{self, Fixture};
    use crate::vitals::Vitals;
    use crate::web::routes;

    struct World {
        address: SocketAddr,
        vitals: Arc<Vitals>,
        ingest: Ingest,
        _folder: tempfile::TempDir,
    }

    /// A server that waits for a body for 0.2 s.
    async fn serve() -> World {
        let Fixture { store, _folder } = fixtures::store().await;
        let (store, vitals, clock) = (Arc::new(store), Arc::new(Vitals::default()), Clock::System);
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await.unwrap();
        let metrics = Arc::new(metrics);
        let parts = Parts {
            store: Arc::clone(&store),
            vitals: Arc::clone(&vitals),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            gap_grace_us: 0,
        };
        let ingest = Ingest::start(parts).await.unwrap();
        let config = Arc::new(Config::default());
        let (vitals_there, ingest_there) = (Arc::clone(&vitals), ingest.clone());
        let state = web::Data::new(AppState { store, ingest, metrics, vitals, clock, config });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = HttpServer::new(move || {
            App::new()
                .app_data(state.clone())
                .app_data(BodyPatience(Duration::from_millis(200)))
                .configure(routes)
        });
        let server = server.workers(1).disable_signals().listen(listener).unwrap();
        actix_web::rt::spawn(server.run());
        World { address, vitals: vitals_there, ingest: ingest_there, _folder }
    }

    /// Sends these bytes and reads the head of the answer.
    async fn answer(world: &World, length: usize, body: &'static str) -> String {
        let address = world.address;
        let asked = web::block(move || {
            let mut stream = TcpStream::connect(address).unwrap();
            let head = format!(
                "POST /api/v1/outcomes HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\n\r\n{body}"
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = vec![0; 4_096];
            let length = stream.read(&mut answer).unwrap();
            String::from_utf8_lossy(&answer[..length]).to_lowercase()
        });
        asked.await.unwrap()
    }

    #[test]
    fn a_408_comes_when_the_body_hangs() {
        System::new().block_on(async {
            let world = serve().await;
            let hung = answer(&world, 100, "[{\"service\":").await;
            assert!(hung.starts_with("http/1.1 408 "), "{hung}");
            assert!(hung.contains("body_too_slow"), "{hung}");
            let next = answer(&world, 2, "[]").await;
            assert!(next.starts_with("http/1.1 200 "), "{next}");
        });
    }

    #[test]
    fn a_429_says_that_the_audit_is_behind_and_when_to_try_again() {
        System::new().block_on(async {
            let world = serve().await;
            world.vitals.set_judged(0, limits::AUDIT_LAG_US_MAX + 1);
            let behind = answer(&world, 2, "[]").await;
            assert!(behind.starts_with("http/1.1 429 "), "{behind}");
            assert!(behind.contains("\r\nretry-after: 2\r\n"), "{behind}");
            assert!(behind.contains("audit_behind"), "{behind}");
        });
    }

    #[test]
    fn a_429_comes_before_the_body_where_there_is_no_room_for_it() {
        System::new().block_on(async {
            let world = serve().await;
            let mut others = Vec::new();
            while let Ok(other) = world.ingest.admit(limits::BODY_BYTES_MAX) {
                others.push(other);
            }
            world.vitals.take_turned_away();
            let full = answer(&world, limits::BODY_BYTES_MAX, "").await;
            assert!(world.vitals.take_turned_away(), "its sender is not silent");
            assert!(full.starts_with("http/1.1 429 "), "{full}");
            assert!(full.contains("\r\nretry-after: 1\r\n") && full.contains("queue_full"));
            drop(others.pop());
            let next = answer(&world, 2, "[]").await;
            assert!(next.starts_with("http/1.1 200 "), "{next}");
        });
    }

    #[test]
    fn a_503_says_that_the_collector_is_closing() {
        System::new().block_on(async {
            let world = serve().await;
            world.vitals.set_closing();
            let closing = answer(&world, 2, "[]").await;
            assert!(closing.starts_with("http/1.1 503 "), "{closing}");
            assert!(closing.contains("\r\nretry-after: 5\r\n"), "{closing}");
        });
    }

    #[test]
    fn being_busy_is_an_overload_or_an_outage() {
        for (busy, status) in [
            (Busy::QueueFull, 429),
            (Busy::AuditBehind, 429),
            (Busy::DatabaseAway, 503),
            (Busy::Closing, 503),
        ] {
            let problem = Problem::from(busy);
            assert_eq!((problem.status.as_u16(), problem.code), (status, busy.code()));
            assert!(problem.retry_after_s.is_some_and(|seconds| seconds > 0));
        }
    }
}
