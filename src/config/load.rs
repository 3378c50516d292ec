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
    /// The variables, by name. Names that are no key's are passed over: Kubernetes puts some of
    /// that form into the environment of each container (`DEDUPWATCH_PORT` for a service of this
    /// name).
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
        loaded: Loaded { config: Config::default(), origins: BTreeMap::new() },
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
        if !listen.ip().is_loopback() && !insecure_listen {
            self.add(
                "listen",
                format!("{listen} can be reached by other machines, and there are no users and \
                         no TLS yet: whoever reaches it reads all and pushes what they like"),
                "listen on 127.0.0.1 behind a proxy that checks who comes, or add --insecure-listen",
            );
        }
    }
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
