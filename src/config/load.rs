//! Puts the layers together: default < file < environment < flag. All that is wrong is told at
//! once; a value that a stronger layer covers is checked all the same.

use std::collections::BTreeMap;
use std::fmt;

use toml::{Table, Value};

use super::Config;
use super::keys::{Fault, KEYS, Key};

/// Where a value comes from, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The file of `--config`.
    File,
    /// `DEDUPWATCH_*`.
    Environment,
    /// The command line.
    Flag,
}

impl Origin {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// What was said, layer by layer.
#[derive(Debug, Default)]
pub struct Layers {
    /// The text of the file.
    pub file: Option<String>,
    /// The variables, by name. Names that are no key's are told and passed over, not refused:
    /// Kubernetes puts some of that form into each container (`DEDUPWATCH_PORT` for a service of
    /// this name).
    pub environment: Vec<(String, String)>,
    /// The flags, by key.
    pub flags: Vec<(&'static str, String)>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The key, as its layer names it.
    pub key: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// All that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the configuration can't be used:")?;
        for Problem { key, problem, remedy } in &self.0 {
            writeln!(f, "  {key}: {problem}; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The configuration in force and where each value of it comes from.
#[derive(Debug)]
pub struct Loaded {
    /// What holds.
    pub config: Config,
    /// Variables of our form that are no key's: a slip of the pen, or not meant for us.
    pub passed_over: Vec<String>,
    origins: BTreeMap<&'static str, Origin>,
}

impl Loaded {
    /// Where the value of a key comes from.
    pub fn origin(&self, key: &Key) -> Origin {
        self.origins.get(key.name).copied().unwrap_or(Origin::Default)
    }
}

/// Puts the layers together, or says all that is wrong with them.
pub fn load(layers: &Layers) -> Result<Loaded, Problems> {
    let mut loading = Loading {
        loaded: Loaded {
            config: Config::default(),
            passed_over: passed_over(&layers.environment),
            origins: BTreeMap::new(),
        },
        problems: Vec::new(),
    };
    if let Some(text) = &layers.file {
        loading.read_file(text);
    }
    for key in &KEYS {
        let variable = key.variable();
        for (name, value) in &layers.environment {
            if *name == variable {
                loading.set(key, name, value, Origin::Environment);
            }
        }
        for (name, value) in &layers.flags {
            if *name == key.name {
                let flag = format!("--{}", name.replace('_', "-"));
                loading.set(key, &flag, value, Origin::Flag);
            }
        }
    }
    loading.check_together();
    if loading.problems.is_empty() { Ok(loading.loaded) } else { Err(Problems(loading.problems)) }
}

struct Loading {
    loaded: Loaded,
    problems: Vec<Problem>,
}

impl Loading {
    fn set(&mut self, key: &'static Key, named: &str, value: &str, origin: Origin) {
        match (key.set)(&mut self.loaded.config, value) {
            Ok(()) => {
                self.loaded.origins.insert(key.name, origin);
            }
            Err(Fault { problem, remedy }) => self.add(named, problem, remedy),
        }
    }

    fn add(&mut self, key: &str, problem: String, remedy: impl Into<String>) {
        self.problems.push(Problem { key: key.into(), problem, remedy: remedy.into() });
    }

    fn read_file(&mut self, text: &str) {
        let table = match text.parse::<Table>() {
            Ok(table) => table,
            Err(why) => {
                // Not the error's own text: it shows the line, which may hold a secret.
                let line = why.span().map_or(1, |span| line_of(text, span.start));
                let problem = format!("line {line}: {}", why.message().replace('\n', ", "));
                return self.add("file", problem, "the file must be TOML");
            }
        };
        let mut left = BTreeMap::new();
        flatten(&table, "", &mut left);
        for key in &KEYS {
            match left.remove(key.name) {
                None => {}
                Some(Value::String(text)) => self.set(key, key.name, text, Origin::File),
                Some(value @ (Value::Integer(_) | Value::Boolean(_))) => {
                    self.set(key, key.name, &value.to_string(), Origin::File);
                }
                Some(value) => {
                    let problem = format!("a value of type {} does not fit", value.type_str());
                    self.add(key.name, problem, "write a text in quotes, a number, true or false");
                }
            }
        }
        for name in left.into_keys() {
            let all: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            self.add(
                &name,
                "unknown key".into(),
                format!("take it out; known are {}", all.join(", ")),
            );
        }
    }

    /// What only several keys together can break.
    fn check_together(&mut self) {
        let Config { listen, insecure_listen, .. } = self.loaded.config;
        let audit = &self.loaded.config.audit;
        let horizon_us = audit.horizon_us;
        let shortest =
            audit.reuse_after.of_us.values().chain([&audit.reuse_after.default_us]).min();
        if shortest.is_some_and(|us| *us < horizon_us) {
            let problem = "a replay could pass for a new use: a message can come back for longer, \
                           as audit.horizon says"
                .into();
            self.add("audit.reuse_after", problem, "write no less than audit.horizon");
        }
        if !listen.ip().is_loopback() && !insecure_listen {
            let problem = format!(
                "{listen} can be reached by other machines, and there are no users and no TLS \
                 yet: whoever reaches it reads all and pushes what they like"
            );
            let remedy = "listen on 127.0.0.1 behind a proxy that asks who comes, or add \
                          --insecure-listen";
            self.add("listen", problem, remedy);
        }
    }
}

fn passed_over(environment: &[(String, String)]) -> Vec<String> {
    let is_key = |name: &str| KEYS.iter().any(|key| key.variable() == name);
    let names = environment.iter().map(|(name, _)| name).filter(|name| !is_key(name));
    names.cloned().collect()
}

/// Leaves by their full names. Empty tables are no keys of their own.
fn flatten<'a>(table: &'a Table, above: &str, into: &mut BTreeMap<String, &'a Value>) {
    for (name, value) in table {
        let name = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Table(inner) => flatten(inner, &name, into),
            _ => {
                into.insert(name, value);
            }
        }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits;

    fn file(text: &str) -> Layers {
        Layers { file: Some(text.into()), ..Layers::default() }
    }

    fn keys_of(problems: &Problems) -> Vec<&str> {
        problems.0.iter().map(|problem| problem.key.as_str()).collect()
    }

    #[test]
    fn nothing_said_is_the_defaults_and_valid() {
        let loaded = load(&Layers::default()).unwrap();
        assert_eq!(loaded.config.listen.to_string(), "127.0.0.1:9736");
        assert_eq!(loaded.config.audit, crate::audit::Settings::default());
        assert!(KEYS.iter().all(|key| loaded.origin(key) == Origin::Default));
    }

    #[test]
    fn each_default_is_taken_when_said() {
        let shown = |key: &Key| (key.get)(&Config::default());
        let environment = KEYS.iter().map(|key| (key.variable(), shown(key)));
        let environment = environment.filter(|(_, value)| !value.is_empty()).collect();
        let loaded = load(&Layers { environment, ..Layers::default() }).unwrap();
        assert_eq!(loaded.config.audit, Config::default().audit);
    }

    #[test]
    fn a_file_is_read() {
        let loaded = load(&file(
            "collector = \"c-2\"\n[audit]\nwarmup = 0\nhorizon = \"30m\"\nlive_games = 3\n\
             [webhook]\nurl = \"https://hooks.example/x\"",
        ));
        let config = loaded.unwrap().config;
        assert_eq!(config.collector, "c-2");
        assert_eq!(config.audit.warmup_us, 0);
        assert_eq!(config.audit.horizon_us, 30 * limits::MINUTE_US);
        assert_eq!(config.audit.live_games, 3);
        assert_eq!(config.webhook.unwrap().url, "https://hooks.example/x");
    }

    #[test]
    fn flag_beats_environment_beats_file_beats_default() {
        let mut layers = file(
            "listen = \"127.0.0.1:1\"\n\
                  database = \"sqlite://f\"\ncollector = \"f\"",
        );
        layers.environment = vec![
            ("DEDUPWATCH_LISTEN".into(), "127.0.0.1:2".into()),
            ("DEDUPWATCH_DATABASE".into(), "sqlite://e".into()),
        ];
        layers.flags = vec![("listen", "127.0.0.1:3".into())];
        let loaded = load(&layers).unwrap();
        assert_eq!(loaded.config.listen.port(), 3);
        assert_eq!(&*loaded.config.database, "sqlite://e");
        assert_eq!(loaded.config.collector, "f");
        let origins = KEYS.iter().take(4).map(|key| loaded.origin(key)).collect::<Vec<_>>();
        assert_eq!(origins, [Origin::Flag, Origin::Default, Origin::Environment, Origin::File],);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let mut layers = file(
            "listn = 1\ndatabase = \"postgres://me:hush@host:x/db\"\n[audit]\nwarmup = \"soon\"\n\
             live_games = 9\nhorizon = [1]\n[other]\nx = 1",
        );
        layers.environment = vec![("DEDUPWATCH_EXTERNAL_URL".into(), "ftp://x".into())];
        layers.flags = vec![("listen", "here".into())];
        let problems = load(&layers).unwrap_err();
        let mut keys = keys_of(&problems);
        keys.sort_unstable();
        assert_eq!(
            keys,
            [
                "--listen",
                "DEDUPWATCH_EXTERNAL_URL",
                "audit.horizon",
                "audit.live_games",
                "audit.warmup",
                "database",
                "listn",
                "other.x",
            ],
        );
        assert!(problems.0.iter().all(|p| !p.problem.is_empty() && !p.remedy.is_empty()));
        assert!(!problems.to_string().contains("hush"), "{problems}");
    }

    #[test]
    fn a_broken_file_names_its_line_and_not_its_text() {
        let problems = load(&file("[webhook]\nurl = \"https://x/hush\n")).unwrap_err();
        assert!(problems.to_string().contains("line 2"), "{problems}");
        assert!(!problems.to_string().contains("hush"), "{problems}");
    }

    #[test]
    fn secrets_are_never_shown() {
        for text in ["https://hooks.example/hush", "hush"] {
            let layers = file(&format!("[webhook]\nurl = \"{text}\""));
            let told = match load(&layers) {
                Ok(loaded) => {
                    let shown: String = KEYS.iter().map(|key| key.shown(&loaded.config)).collect();
                    assert!(shown.contains("<hidden>"));
                    format!("{shown} {loaded:?}")
                }
                Err(problems) => problems.to_string(),
            };
            assert!(!told.contains("hush"), "{told}");
        }
    }

    #[test]
    fn an_address_that_others_reach_has_to_be_meant() {
        let listen = |text: &str, insecure: bool| {
            let mut flags = vec![("listen", text.to_string())];
            flags.extend(insecure.then(|| ("insecure_listen", "true".to_string())));
            load(&Layers { flags, ..Layers::default() })
        };
        assert!(listen("127.0.0.9:80", false).is_ok());
        assert!(listen("[::1]:80", false).is_ok());
        for open in ["0.0.0.0:80", "10.0.0.1:80", "[::]:80"] {
            assert_eq!(keys_of(&listen(open, false).unwrap_err()), ["listen"]);
            assert!(listen(open, true).is_ok());
        }
    }

    #[test]
    fn what_kubernetes_puts_there_is_passed_over() {
        let environment = vec![("DEDUPWATCH_PORT".into(), "tcp://10.0.0.1:9736".into())];
        let loaded = load(&Layers { environment, ..Layers::default() }).unwrap();
        assert_eq!(loaded.passed_over, ["DEDUPWATCH_PORT"]);
    }

    #[test]
    fn values_are_checked() {
        let refused = [
            ("listen", "9736"),
            ("listen", "localhost:9736"),
            ("insecure_listen", "yes"),
            ("database", "data.db"),
            ("database", "sqlite://"),
            ("database", "sqlite://:memory:"),
            ("database", "sqlite://data/"),
            ("database", "mysql://me:hush@host/db"),
            ("database", "postgres://me:hush@host"),
            ("database", "postgres://me:hu/sh@host/db"),
            ("collector", ""),
            ("collector", "a\nb"),
            ("external_url", "dedupwatch.example"),
            ("external_url", "https://x/?a=1"),
            ("log.filter", "dedupwatch=loud"),
            ("log.format", "xml"),
            ("audit.warmup", "-1s"),
            ("audit.warmup", "10"),
            ("audit.warmup", "91days"),
            ("audit.live_games", "0"),
            ("audit.live_games", "4"),
            ("audit.reuse_after", "soon"),
            ("audit.reuse_after", "90days, chips"),
            ("audit.reuse_after", "90days, chips=1day, chips=2days"),
            ("retention.raw", "1h"),
            ("retention.raw", "14"),
            ("retention.rollups", "14days"),
            ("retention.rollups", "101years"),
            ("retention.disk_cap", "1MiB"),
            ("retention.disk_cap", "much"),
            ("retention.disk_cap", "none"),
            ("webhook.url", "mailto:a@b"),
        ];
        for (name, value) in refused {
            let key = KEYS.iter().find(|key| key.name == name).unwrap();
            let environment = vec![(key.variable(), value.into())];
            let problems = load(&Layers { environment, ..Layers::default() }).unwrap_err();
            assert_eq!(keys_of(&problems), [key.variable()], "{name} = {value:?}");
        }
    }

    #[test]
    fn ages_and_sizes_are_shown_as_they_are_read() {
        let text = "[retention]\nraw = \"30days\"\nrollups = \"2years\"\ndisk_cap = \"50GiB\"";
        let config = load(&file(text)).unwrap().config;
        assert_eq!(config.retention.raw_us, 30 * limits::DAY_US);
        assert_eq!(config.retention.disk_cap_bytes, Some(50 << 30));
        for name in ["retention.raw", "retention.rollups", "retention.disk_cap"] {
            let key = KEYS.iter().find(|key| key.name == name).unwrap();
            let flags = vec![(key.name, key.shown(&config))];
            let again = load(&Layers { flags, ..Layers::default() }).unwrap().config;
            assert_eq!(key.shown(&again), key.shown(&config));
        }
    }

    #[test]
    fn a_signature_is_used_anew_later_than_a_message_can_come_back() {
        let told = |text: &str| load(&file(&format!("[audit]\nreuse_after = \"{text}\"")));
        let audit = told("30days, chips=1day, a=b=3h").unwrap().config.audit;
        assert_eq!(audit.reuse_after.default_us, 30 * limits::DAY_US);
        let of: Vec<_> = audit.reuse_after.of_us.into_iter().collect();
        assert_eq!(
            of,
            [("a=b".into(), 3 * 60 * limits::MINUTE_US), ("chips".into(), limits::DAY_US)]
        );
        for text in ["1h", "30days, chips=1h"] {
            assert_eq!(keys_of(&told(text).unwrap_err()), ["audit.reuse_after"]);
        }
    }

    #[test]
    fn the_slash_at_the_end_of_a_url_goes() {
        let loaded = load(&file("external_url = \"https://watch.example/d/\"")).unwrap();
        assert_eq!(loaded.config.external_url, "https://watch.example/d");
    }
}
