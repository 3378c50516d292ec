//! The API: one file for each resource. Amounts and 64-bit numbers are strings, times RFC 3339.

pub mod alerts;
pub mod close;
pub mod config;
pub mod findings;
pub mod findings_csv;
pub mod ingest;
pub mod openapi;
pub mod outcomes;
pub mod players;
pub mod services;
pub mod sources;
mod text;
pub mod transitions;
pub mod windows;
