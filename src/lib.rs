//! Independent audit of settlement deduplication: is every settlement booked exactly once?
//!
//! `outcome <- guard, audit, client <- store <- ingest, judge, alert, simulate <- redo, web <-
//! retention <- app <- cli`. Nothing points back. What is absent:
//!
//! - `outcome`, `guard` and `audit` have no clock, task, database or JSON.
//! - Nothing but `store` names sqlx; nothing but `web` names actix.
//! - `simulate::truth` shares no code with `audit`.

pub mod alert;
pub mod app;
pub mod audit;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod guard;
pub mod ingest;
pub mod judge;
pub mod limits;
pub mod metrics;
pub mod outcome;
pub mod redo;
pub mod retention;
pub mod simulate;
pub mod store;
pub mod vitals;
pub mod web;
