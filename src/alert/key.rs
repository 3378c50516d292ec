//! Which alert: there is one for each rule, service and env.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::rule::Rule;
use crate::audit::Kind;

/// What tells alerts apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Which rule.
    pub rule: Rule,
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
}

impl Key {
    /// The labels that tell it apart, in the order of their names.
    pub fn labels(&self) -> [(&'static str, &str); 3] {
        [("alertname", self.rule.as_str()), ("env", &self.env), ("service", &self.service)]
    }

    /// Its identity in 16 hexadecimal digits, as Prometheus makes it of these labels (FNV-1a, each
    /// text ended by 255). Severity is no part of it: an alert that gets worse is still the same.
    pub fn fingerprint(&self) -> String {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let texts = self.labels().into_iter().flat_map(|(name, value)| [name, value]);
        let bytes = texts.flat_map(|text| text.bytes().chain([255]));
        let hash = bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        format!("{hash:016x}")
    }

    /// As the store has it.
    pub(super) fn stored(&self) -> (String, String, String) {
        (self.rule.as_str().to_owned(), self.service.clone(), self.env.clone())
    }
}

/// The page about what an alert is about: findings of its kind, its service, else the sources.
pub fn page(rule: Option<Rule>, service: &str, env: &str) -> String {
    let service = utf8_percent_encode(service, NON_ALPHANUMERIC);
    let env = utf8_percent_encode(env, NON_ALPHANUMERIC);
    match (rule, rule.and_then(Rule::kind).map(Kind::as_str)) {
        (_, Some(kind)) => format!("/findings?kind={kind}&service={service}&env={env}"),
        (Some(Rule::WindowTooSmall), _) => format!("/services/{service}"),
        _ => format!("/sources?service={service}&env={env}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(service: &str, env: &str) -> Key {
        Key { rule: Rule::DuplicateLeak, service: service.into(), env: env.into() }
    }

    /// The number that Alertmanager 0.25 gives to an alert with these labels.
    #[test]
    fn fingerprints_are_those_of_alertmanager() {
        assert_eq!(key("settle", "prod").fingerprint(), "19e916d7bd055742");
    }

    #[test]
    fn fingerprints_tell_alerts_apart() {
        assert_eq!(key("a", "b").fingerprint(), key("a", "b").fingerprint());
        assert_ne!(key("a", "b").fingerprint(), key("b", "a").fingerprint());
        assert_ne!(key("ab", "").fingerprint(), key("a", "b").fingerprint());
        assert_eq!(key("a", "b").fingerprint().len(), 16);
    }
}
