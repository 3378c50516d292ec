//! The rules of the house, so that nobody has to remember them in a review: which part may name
//! which, sizes, openings, bans. Whoever must break one changes it here, with the reason.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The parts, lowest first. A part names only parts of a lower rank: nothing points back, and
/// parts of one rank don't know each other.
const RANKS: [(&str, u8); 19] = [
    ("limits", 0),
    ("clock", 0),
    ("outcome", 1),
    ("guard", 2),
    ("audit", 2),
    ("client", 2),
    ("vitals", 2),
    ("config", 3),
    ("store", 4),
    ("metrics", 5),
    ("ingest", 6),
    ("judge", 6),
    ("alert", 6),
    ("simulate", 6),
    ("redo", 7),
    ("web", 7),
    ("retention", 8),
    ("app", 9),
    ("cli", 10),
];

/// The parts without clock, task, database or JSON.
const PURE: [&str; 3] = ["src/outcome/", "src/guard/", "src/audit/"];
const IMPURE: [&str; 10] = [
    "tokio",
    "sqlx",
    "actix",
    "reqwest",
    "serde_json",
    "tracing",
    "Utc::now",
    "SystemTime",
    "Instant",
    "crate::clock",
];

/// Who alone may name what.
const OWNERS: [(&str, &[&str]); 4] = [
    ("sqlx", &["src/store/"]),
    ("actix_web", &["src/web/"]),
    ("reqwest", &["src/client/", "src/alert/", "src/cli/", "src/simulate/"]),
    ("prometheus::", &["src/metrics"]),
];

/// What stands nowhere outside tests.
const BANNED: [(&str, &str); 9] = [
    (".unwrap()", "handle it or pass it on"),
    (".expect(", "handle it or pass it on"),
    ("panic!(", "errors are values"),
    ("unreachable!(", "make it a type that can't be, or an error"),
    ("todo!(", "finish it"),
    ("unimplemented!(", "finish it"),
    ("dbg!(", "tracing"),
    ("unbounded", "every queue has a bound with a name in limits.rs"),
    ("macro_rules!", "a function or a type says it too"),
];

const LINES_MAX: usize = 400;
const COLUMNS_MAX: usize = 100;

/// A source file: its path from the top of the repository, all of it, and what is not test.
struct Source {
    path: String,
    text: String,
    code: String,
}

impl Source {
    /// The part it belongs to: `src/audit/order.rs` to `audit`.
    fn part(&self) -> &str {
        let path = self.path.trim_start_matches("src/");
        path.split(['/', '.']).next().unwrap()
    }
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_under(folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(top().join(folder)) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let inner = path.strip_prefix(top()).unwrap().to_str().unwrap().to_owned();
            files.extend(files_under(&inner));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn sources(folder: &str) -> Vec<Source> {
    let rust =
        files_under(folder).into_iter().filter(|path| path.extension() == Some("rs".as_ref()));
    let read = rust.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(top()).unwrap().to_str().unwrap().to_owned();
        Source { path, code: without_tests(&text), text }
    });
    let mut all: Vec<Source> = read.collect();
    let tests: Vec<String> = all.iter().flat_map(files_of_tests).collect();
    for source in &mut all {
        let of = |stem: &String| source.path.strip_prefix(stem.as_str());
        if tests.iter().filter_map(of).any(|rest| rest == ".rs" || rest.starts_with('/')) {
            source.code.clear();
        }
    }
    all
}

/// All up to the module of tests, which is the last thing in a file.
fn without_tests(text: &str) -> String {
    let is_module = |after: &str| after.lines().nth(1).is_some_and(|line| line.ends_with('{'));
    let mut places = text.match_indices("#[cfg(test)]").map(|(at, _)| at);
    let end = places.find(|at| is_module(&text[*at..])).unwrap_or(text.len());
    text[..end].to_owned()
}

/// The modules that a source takes in for tests alone: paths without `.rs`.
fn files_of_tests(source: &Source) -> Vec<String> {
    let folder = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
    let modules = source.text.split("#[cfg(test)]\n").skip(1).filter_map(|after| {
        let line = after.lines().next()?;
        let (_, module) = line.strip_suffix(';')?.split_once("mod ")?;
        Some(format!("{folder}/{module}"))
    });
    modules.collect()
}

/// The lines of code, numbered from 1, without comments.
fn lines(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = code.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| !line.starts_with("//"))
}

/// The names that follow `before` in a line.
fn names_after<'a>(line: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(before).map(move |(at, _)| {
        let rest = &line[at + before.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    let told = found.iter().fold(String::new(), |mut all, one| {
        let _ = writeln!(all, "  {one}");
        all
    });
    assert!(found.is_empty(), "{what}:\n{told}");
}

#[test]
fn nothing_points_back() {
    let rank = |part: &str| RANKS.iter().find(|(name, _)| *name == part).map(|(_, rank)| *rank);
    let mut found = Vec::new();
    for source in sources("src") {
        if matches!(source.part(), "lib" | "main") {
            continue;
        }
        let Some(own) = rank(source.part()) else {
            found.push(format!("{}: part without a rank", source.path));
            continue;
        };
        for (at, line) in lines(&source.code) {
            for named in names_after(line, "crate::").filter(|named| *named != source.part()) {
                if rank(named).is_some_and(|other| other >= own) {
                    found.push(format!("{}:{at}: names {named}", source.path));
                }
            }
        }
    }
    none("parts name only what is below them", &found);
}

#[test]
fn the_pure_parts_are_pure() {
    let mut found = Vec::new();
    for source in sources("src") {
        if !PURE.iter().any(|part| source.path.starts_with(part)) {
            continue;
        }
        for (at, line) in lines(&source.code) {
            for word in IMPURE.iter().filter(|word| line.contains(*word)) {
                found.push(format!("{}:{at}: {word}", source.path));
            }
        }
    }
    none("the pure parts know no clock, task, database or JSON", &found);
}

#[test]
fn each_library_has_its_place() {
    let mut found = Vec::new();
    for source in sources("src") {
        for (word, places) in OWNERS {
            if places.iter().any(|place| source.path.starts_with(place)) {
                continue;
            }
            for (at, _) in lines(&source.code).filter(|(_, line)| line.contains(word)) {
                found.push(format!("{}:{at}: {word} belongs to {places:?}", source.path));
            }
        }
    }
    none("libraries are named in their place alone", &found);
}

#[test]
fn the_truth_of_the_simulator_knows_no_audit() {
    for source in sources("src/simulate") {
        if source.path.starts_with("src/simulate/truth") {
            assert!(!source.text.contains("audit::"), "{} judges by itself", source.path);
        }
    }
}

#[test]
fn files_open_with_why_and_stay_short() {
    let mut found = Vec::new();
    for source in sources("src").into_iter().chain(sources("tests")) {
        if !source.text.starts_with("//!") {
            found.push(format!("{}: does not open with //!", source.path));
        }
        let count = source.code.lines().count();
        if count > LINES_MAX {
            found.push(format!("{}: {count} lines without tests", source.path));
        }
        for (at, line) in source.text.lines().enumerate() {
            if line.chars().count() > COLUMNS_MAX {
                found.push(format!("{}:{}: over {COLUMNS_MAX} columns", source.path, at + 1));
            }
        }
    }
    none("sizes", &found);
}

#[test]
fn what_is_banned_is_not_there() {
    let mut found = Vec::new();
    for source in sources("src") {
        for (at, line) in lines(&source.code) {
            for (word, instead) in BANNED.iter().filter(|(word, _)| line.contains(word)) {
                found.push(format!("{}:{at}: {word} ({instead})", source.path));
            }
        }
    }
    none("banned", &found);
}

/// `query(INSERT_EVENT)`, with the constant in the same file: SQL is read where it is run, and
/// none is put together at run time. A field `table.x` is of a constant table of statements.
#[test]
fn each_statement_is_a_constant_of_its_file() {
    let calls =
        ["query(", "query_as(", "query_scalar(", "QueryBuilder::new(", "raw_sql(", "run_script("];
    let mut found = Vec::new();
    for source in sources("src/store") {
        if source.path.starts_with("src/store/db/") {
            continue; // it runs the statements of all others
        }
        let code: String = lines(&source.code).flat_map(|(_, line)| line.split(' ')).collect();
        for call in calls {
            for name in names_after(&code, call) {
                let of_table = name == "table" && source.code.contains("const TABLES: [Table;");
                let is_constant = ["&str", "Each"]
                    .iter()
                    .any(|text| source.code.contains(&format!("const {name}: {text}")));
                if !of_table && !is_constant {
                    found.push(format!("{}: {call}{name}", source.path));
                }
            }
        }
    }
    none("statements that are no constant of their file", &found);
}

#[test]
fn no_path_of_a_machine_is_in_the_tree() {
    let homes = ["ho\x6de", "ro\x6ft", "wo\x72k", "Use\x72s"].map(|name| format!("/{name}/"));
    let folders = ["src", "tests", "templates", "migrations", "benches", "grafana", ".ci"];
    let single = ["README.md", "Cargo.toml", "clippy.toml"].map(|name| top().join(name));
    let mut found = Vec::new();
    for path in folders.into_iter().flat_map(files_under).chain(single) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for home in homes.iter().filter(|home| text.contains(*home)) {
            found.push(format!("{}: {home}", path.display()));
        }
    }
    none("paths of a machine", &found);
}

#[test]
fn each_dependency_has_its_reason() {
    let manifest = std::fs::read_to_string(top().join("Cargo.toml")).unwrap();
    let sections = manifest.split("\n[").filter(|text| {
        let name = text.split(']').next().unwrap_or_default();
        matches!(name, "dependencies" | "dev-dependencies" | "build-dependencies")
    });
    let entries = sections.flat_map(str::lines).filter(|line| line.contains(" = "));
    let bare: Vec<String> =
        entries.filter(|line| !line.contains(" # ")).map(String::from).collect();
    none("dependencies without a reason", &bare);
}
