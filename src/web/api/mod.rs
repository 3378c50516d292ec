//! The API: one file for each resource.
