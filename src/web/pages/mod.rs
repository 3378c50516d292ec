//! The pages: one file is one page, one template and one URL.

pub mod error;

/// The content type of a page.
pub(super) const HTML: &str = "text/html; charset=utf-8";
