//! Every key of the configuration, once: name, meaning, how it is read, checked and shown.
//!
//! A key `audit.warmup` is `warmup` under `[audit]` in the file and `DEDUPWATCH_AUDIT_WARMUP` in
//! the environment. All values come in as text, so that each layer is read by the same code.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Config, LogFormat, Webhook, database};
use crate::audit::ReuseAfter;
use crate::limits;
use crate::outcome::Id;

/// One key.
pub struct Key {
    /// Its full name: `listen`, `audit.warmup`.
    pub name: &'static str,
    /// What it is for, in a line.
    pub about: &'static str,
    /// Whether its value is never shown.
    pub secret: bool,
    pub(super) set: fn(&mut Config, &str) -> Result<(), Fault>,
    pub(super) get: fn(&Config) -> String,
}

/// What is wrong with a value, and what to write instead.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) problem: String,
    pub(super) remedy: &'static str,
}

impl Key {
    /// Its name in the environment.
    pub fn variable(&self) -> String {
        format!("DEDUPWATCH_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The value in force; of a secret only whether there is one.
    pub fn shown(&self, config: &Config) -> String {
        match (self.get)(config) {
            value if self.secret && !value.is_empty() => "<hidden>".into(),
            value => value,
        }
    }
}

/// All keys, in the order in which they are shown.
pub const KEYS: [Key; 19] = [
    Key {
        name: "listen",
        about: "address and port of the server",
        secret: false,
        set: |config, text| address(text).map(|value| config.listen = value),
        get: |config| config.listen.to_string(),
    },
    Key {
        name: "insecure_listen",
        about: "allow an address that other machines can reach",
        secret: false,
        set: |config, text| truth(text).map(|value| config.insecure_listen = value),
        get: |config| config.insecure_listen.to_string(),
    },
    Key {
        name: "database",
        about: "where everything is kept: `sqlite://PATH`, or \
                `postgres://USER:PASSWORD@HOST:PORT/DATABASE`",
        secret: false,
        set: |config, text| database::parse(text).map(|value| config.database = value),
        get: |config| config.database.to_string(),
    },
    Key {
        name: "collector",
        about: "name of this collector's part of the log",
        secret: false,
        set: |config, text| name(text).map(|value| config.collector = value),
        get: |config| config.collector.clone(),
    },
    Key {
        name: "external_url",
        about: "how people reach the pages, for links; else the address listened on; no other host \
                name than this one and `localhost` is answered",
        secret: false,
        set: |config, text| web_url(text).map(|value| config.external_url = value),
        get: |config| config.external_url.clone(),
    },
    Key {
        name: "log.filter",
        about: "what is logged: a level, or `target=level` by commas",
        secret: false,
        set: |config, text| filter(text).map(|value| config.log_filter = value),
        get: |config| config.log_filter.clone(),
    },
    Key {
        name: "log.format",
        about: "how it is logged: `text` or `json`",
        secret: false,
        set: |config, text| log_format(text).map(|value| config.log_format = value),
        get: |config| match config.log_format {
            LogFormat::Text => "text".into(),
            LogFormat::Json => "json".into(),
        },
    },
    Key {
        name: "audit.eviction_grace",
        about: "how long a live eviction waits for the acceptance that pushed it out",
        secret: false,
        set: |config, text| duration_us(text).map(|value| config.audit.eviction_grace_us = value),
        get: |config| shown_duration(config.audit.eviction_grace_us),
    },
    Key {
        name: "audit.block_grace",
        about: "how long a block waits for the acceptance that makes it right",
        secret: false,
        set: |config, text| duration_us(text).map(|value| config.audit.block_grace_us = value),
        get: |config| shown_duration(config.audit.block_grace_us),
    },
    Key {
        name: "audit.gap_grace",
        about: "how long a missing number is waited for",
        secret: false,
        set: |config, text| duration_us(text).map(|value| config.audit.gap_grace_us = value),
        get: |config| shown_duration(config.audit.gap_grace_us),
    },
    Key {
        name: "audit.warmup",
        about: "how long a new ledger is blind, since its guards may remember more",
        secret: false,
        set: |config, text| duration_us(text).map(|value| config.audit.warmup_us = value),
        get: |config| shown_duration(config.audit.warmup_us),
    },
    Key {
        name: "audit.horizon",
        about: "how long a message can come back: queue retention, redrives by hand",
        secret: false,
        set: |config, text| duration_us(text).map(|value| config.audit.horizon_us = value),
        get: |config| shown_duration(config.audit.horizon_us),
    },
    Key {
        name: "audit.live_games",
        about: "how many of a player's newest games are live",
        secret: false,
        set: |config, text| games(text).map(|value| config.audit.live_games = value),
        get: |config| config.audit.live_games.to_string(),
    },
    Key {
        name: "audit.live_for",
        about: "how long an opaque key is live after its acceptance",
        secret: false,
        set: |config, text| duration_us(text).map(|value| config.audit.live_for_us = value),
        get: |config| shown_duration(config.audit.live_for_us),
    },
    Key {
        name: "audit.reuse_after",
        about: "how long after its use a signature may come again as a new one; other times for \
                ledgers by commas: `90days, chips=1day`",
        secret: false,
        set: |config, text| reuse_after(text).map(|value| config.audit.reuse_after = value),
        get: |config| shown_reuse_after(&config.audit.reuse_after),
    },
    Key {
        name: "retention.raw",
        about: "how long records of the log are kept after their receipt",
        secret: false,
        set: |config, text| {
            age_us(text, limits::RAW_AGE_US_MIN).map(|value| config.retention.raw_us = value)
        },
        get: |config| shown_days(config.retention.raw_us),
    },
    Key {
        name: "retention.rollups",
        about: "how long counts by minute are kept",
        secret: false,
        set: |config, text| {
            age_us(text, limits::ROLLUPS_AGE_US_MIN)
                .map(|value| config.retention.rollups_us = value)
        },
        get: |config| shown_days(config.retention.rollups_us),
    },
    Key {
        name: "retention.disk_cap",
        about: "how much the database and its base may hold, such as `50GiB`, before the oldest \
                days of the log go sooner; none without it",
        secret: false,
        set: |config, text| {
            disk_cap(text).map(|value| config.retention.disk_cap_bytes = Some(value))
        },
        get: |config| match config.retention.disk_cap_bytes {
            Some(bytes) => bytesize::ByteSize(bytes.unsigned_abs()).to_string(),
            None => String::new(),
        },
    },
    Key {
        name: "webhook.url",
        about: "where notifications are posted; none without it",
        secret: true,
        set: |config, text| {
            let url = http_url(text).map_err(|why| Fault {
                // Never the text itself: it may hold a token.
                problem: format!("is not a URL that can be posted to: {why}"),
                remedy: "write https://HOST/PATH, or leave it out",
            })?;
            config.webhook = Some(Webhook { url: url.into() });
            Ok(())
        },
        get: |config| {
            config.webhook.as_ref().map(|webhook| webhook.url.clone()).unwrap_or_default()
        },
    },
];

fn address(text: &str) -> Result<std::net::SocketAddr, Fault> {
    text.parse().map_err(|_| Fault {
        problem: format!("{text:?} is not an address with a port"),
        remedy: "write IP:PORT, such as 127.0.0.1:9736 or [::1]:9736",
    })
}

fn truth(text: &str) -> Result<bool, Fault> {
    text.parse().map_err(|_| Fault {
        problem: format!("{text:?} is neither true nor false"),
        remedy: "write true or false",
    })
}

fn name(text: &str) -> Result<String, Fault> {
    match Id::parse(text) {
        Ok(_) => Ok(text.into()),
        Err(_) => Err(Fault {
            problem: "it is empty, over 256 bytes, or has control characters".into(),
            remedy: "write a short name, such as collector-1",
        }),
    }
}

fn http_url(text: &str) -> Result<url::Url, String> {
    let url = url::Url::parse(text).map_err(|why| why.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("the scheme is {other:?}, not http or https")),
    }
}

/// Without the slash at its end: paths are put behind it.
fn web_url(text: &str) -> Result<String, Fault> {
    const REMEDY: &str = "write http://HOST:PORT or https://HOST, without a query";
    let url = http_url(text).map_err(|why| Fault {
        problem: format!("{text:?} is not usable: {why}"),
        remedy: REMEDY,
    })?;
    if url.query().is_some() || url.fragment().is_some() {
        let problem = format!("{text:?} goes on after the path");
        return Err(Fault { problem, remedy: REMEDY });
    }
    Ok(url.as_str().trim_end_matches('/').into())
}

fn filter(text: &str) -> Result<String, Fault> {
    match text.parse::<tracing_subscriber::EnvFilter>() {
        Ok(_) => Ok(text.into()),
        Err(why) => Err(Fault {
            problem: format!("{text:?} is not a filter: {why}"),
            remedy: "write a level (error, warn, info, debug, trace) or target=level, by commas",
        }),
    }
}

fn log_format(text: &str) -> Result<LogFormat, Fault> {
    match text {
        "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err(Fault {
            problem: format!("{text:?} is not a format"),
            remedy: "write text or json",
        }),
    }
}

fn duration_us(text: &str) -> Result<i64, Fault> {
    let duration = humantime::parse_duration(text).map_err(|why| Fault {
        problem: format!("{text:?} is not a duration: {why}"),
        remedy: "write a number and its unit, such as 2s, 30m or 24h; 0s is allowed",
    })?;
    i64::try_from(duration.as_micros())
        .ok()
        .filter(|us| *us <= limits::AUDIT_SETTING_US_MAX)
        .ok_or_else(|| Fault {
            problem: format!("{text:?} is longer than signatures are kept"),
            remedy: "write 90days at most",
        })
}

fn shown_duration(us: i64) -> String {
    let duration = Duration::from_micros(us.unsigned_abs());
    humantime::format_duration(duration).to_string()
}

/// A time, then `LEDGER=TIME`, by commas.
fn reuse_after(text: &str) -> Result<ReuseAfter, Fault> {
    const REMEDY: &str = "write a time, then other times for ledgers: 90days, chips=1day";
    let mut parts = text.split(',').map(str::trim);
    let default_us = duration_us(parts.next().unwrap_or_default())?;
    let mut of_us = BTreeMap::new();
    for part in parts {
        let Some((ledger, time)) = part.rsplit_once('=') else {
            let problem = format!("{part:?} names no ledger");
            return Err(Fault { problem, remedy: REMEDY });
        };
        let ledger = name(ledger.trim())?;
        if of_us.insert(ledger, duration_us(time.trim())?).is_some() {
            let problem = format!("{part:?} names a ledger that stands there twice");
            return Err(Fault { problem, remedy: REMEDY });
        }
    }
    Ok(ReuseAfter { default_us, of_us })
}

fn shown_reuse_after(reuse_after: &ReuseAfter) -> String {
    let of = reuse_after.of_us.iter();
    let of = of.map(|(ledger, us)| format!(", {ledger}={}", shown_days(*us)));
    std::iter::once(shown_days(reuse_after.default_us)).chain(of).collect()
}

/// In days, where it comes out even: a month has no fixed length.
fn shown_days(us: i64) -> String {
    match us % limits::DAY_US {
        0 if us > limits::DAY_US => format!("{}days", us / limits::DAY_US),
        _ => shown_duration(us),
    }
}

fn age_us(text: &str, least_us: i64) -> Result<i64, Fault> {
    let remedy = "write a number and its unit, such as 14days";
    let duration = humantime::parse_duration(text)
        .map_err(|why| Fault { problem: format!("{text:?} is not a duration: {why}"), remedy })?;
    let us = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    match us {
        us if us < least_us => {
            let problem = format!("{text:?} is less than {}", shown_days(least_us));
            Err(Fault { problem, remedy })
        }
        us if us > limits::RETENTION_US_MAX => {
            let problem = format!("{text:?} is more than {}", shown_days(limits::RETENTION_US_MAX));
            Err(Fault { problem, remedy })
        }
        us => Ok(us),
    }
}

fn disk_cap(text: &str) -> Result<i64, Fault> {
    let remedy = "write a number and its unit, such as 50GiB; 64MiB at least";
    let size: bytesize::ByteSize = text
        .parse()
        .map_err(|why| Fault { problem: format!("{text:?} is not a size: {why}"), remedy })?;
    let bytes = i64::try_from(size.as_u64()).unwrap_or(i64::MAX);
    match bytes >= limits::DISK_CAP_BYTES_MIN {
        true => Ok(bytes),
        false => Err(Fault { problem: format!("{text:?} is too little"), remedy }),
    }
}

fn games(text: &str) -> Result<u32, Fault> {
    let games = text.parse().ok().filter(|games| (1..=limits::LIVE_GAMES_MAX).contains(games));
    games.ok_or_else(|| Fault {
        problem: format!("{text:?} is not a number of games that are remembered"),
        remedy: "write 1, 2 or 3",
    })
}
