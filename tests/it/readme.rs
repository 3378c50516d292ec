//! The README names every key and every metric as it is.

use std::fmt::Write as _;
use std::path::Path;

use dedupwatch::config::{Config, KEYS};
use dedupwatch::metrics;
use dedupwatch::simulate::FaultKind;

fn readme() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_key_stands_in_the_readme() {
    let mut table = "| key | default | meaning |\n|---|---|---|\n".to_owned();
    for key in &KEYS {
        let default = match key.shown(&Config::default()) {
            value if value.is_empty() => "none".to_owned(),
            value => format!("`{value}`"),
        };
        writeln!(table, "| `{}` | {default} | {} |", key.name, key.about).unwrap();
    }
    assert!(readme().contains(&table), "the table has to be:\n{table}");
}

#[test]
fn every_metric_stands_in_the_readme() {
    let mut table = "| metric | meaning |\n|---|---|\n".to_owned();
    for (name, help) in metrics::described() {
        writeln!(table, "| `{name}` | {help} |").unwrap();
    }
    assert!(readme().contains(&table), "the table has to be:\n{table}");
}

#[test]
fn every_fault_stands_in_the_readme() {
    let mut table = "| fault | what goes wrong | shown by |\n|---|---|---|\n".to_owned();
    for kind in FaultKind::all() {
        let shown_by = kind.known_for().iter().map(|known| format!("`{known}`"));
        let shown_by = shown_by.collect::<Vec<_>>().join(", ");
        writeln!(table, "| `{}` | {} | {shown_by} |", kind.as_str(), kind.about()).unwrap();
    }
    assert!(readme().contains(&table), "the table has to be:\n{table}");
}
