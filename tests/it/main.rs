//! The program from outside: one binary for all integration tests, so that it links once.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub, reason = "a test binary has nobody to reach it")]

mod advisor;
mod alerts;
mod api;
mod app;
mod backup;
mod cases;
mod cases_http;
mod cases_stored;
mod cli;
mod demo;
mod flood;
mod healthy;
mod ingest;
mod kill;
mod kit;
mod limits;
mod metrics;
mod money;
mod oracle;
mod pages;
mod readme;
mod simulate;
mod status;
mod story;
mod support;
mod tidy;
mod transitions;
mod verify;
