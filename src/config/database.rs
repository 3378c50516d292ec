//! Where the database is: a URL that may hold a password, which is shown to nobody.

use std::fmt;
use std::ops::Deref;

use super::keys::Fault;

/// The URL of a database. Read as `str` it is whole; shown it has no password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl Deref for DatabaseUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.0))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", without_password(&self.0))
    }
}

/// A URL of a database as it may be shown: of a server without the password, and without what
/// follows the name of the database.
pub fn without_password(url: &str) -> String {
    if url.starts_with("sqlite://") {
        return url.to_owned();
    }
    let Ok(mut parsed) = url::Url::parse(url) else {
        return format!("{}://...", url.split("://").next().unwrap_or_default());
    };
    parsed.set_query(None);
    parsed.set_fragment(None);
    // Refused only where there can be none.
    let _ = parsed.set_password(None);
    parsed.into()
}

pub(super) fn parse(text: &str) -> Result<DatabaseUrl, Fault> {
    const REMEDY: &str = "write sqlite://PATH, such as sqlite://data/dedupwatch.db, or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE";
    // A password may stand between the scheme and the host, so only the scheme is told.
    let scheme = text.split("://").next().unwrap_or_default();
    if matches!(scheme, "postgres" | "postgresql") && text.contains("://") {
        return server(text);
    }
    match text.strip_prefix("sqlite://") {
        None if text.contains("://") => Err(Fault {
            problem: format!("{scheme:?} is not a database known here"),
            remedy: REMEDY,
        }),
        None => Err(Fault { problem: "it is not a URL".into(), remedy: REMEDY }),
        Some("" | ":memory:") => Err(Fault {
            problem: "it names no file, and what was acknowledged has to outlive the program"
                .into(),
            remedy: REMEDY,
        }),
        Some(path) if path.ends_with('/') => {
            Err(Fault { problem: format!("{path:?} is a folder"), remedy: REMEDY })
        }
        Some(_) => Ok(DatabaseUrl(text.into())),
    }
}

/// A database of PostgreSQL. What is wrong is told without the text: it may hold a password.
fn server(text: &str) -> Result<DatabaseUrl, Fault> {
    const REMEDY: &str = "write postgres://USER:PASSWORD@HOST:PORT/DATABASE; in the password, \
         write @ as %40, / as %2F, : as %3A";
    let url = url::Url::parse(text)
        .map_err(|why| Fault { problem: format!("it is not a URL: {why}"), remedy: REMEDY })?;
    match url.path().trim_start_matches('/') {
        "" => Err(Fault { problem: "it names no database".into(), remedy: REMEDY }),
        _ => Ok(DatabaseUrl(text.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("sqlite://data/d.db", "sqlite://data/d.db"),
            ("postgres://me:hush@host:5432/d?password=hush", "postgres://me@host:5432/d"),
            ("postgresql://host/d#hush", "postgresql://host/d"),
            ("postgres://me:hush@host:port/d", "postgres://..."),
        ] {
            let url = DatabaseUrl(url.into());
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("{shown:?}"));
        }
    }
}
