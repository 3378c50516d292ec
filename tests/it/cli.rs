//! The command line, as its user meets it.

use std::io::{BufRead as _, BufReader};
use std::process::{Output, Stdio};

use crate::support::{TestProcess, program};

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    program().args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn an_open_address_is_refused_and_help_says_why() {
    let refused = run(&["--listen", "0.0.0.0:0"], &[]);
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(told.contains("listen") && told.contains("--insecure-listen"), "{told}");
    let help = text(&run(&["serve", "--help"], &[]).stdout);
    assert!(help.contains("There are no users and no TLS yet"), "{help}");
    assert!(help.contains("in the clear"), "{help}");
}

#[test]
fn help_names_all_commands_and_flags() {
    let help = text(&run(&["--help"], &[]).stdout);
    let commands = ["serve", "demo", "simulate", "verify", "rebuild", "backup", "restore"];
    for word in
        commands.into_iter().chain(["check-config"]).chain(["--config", "--listen", "--database"])
    {
        assert!(help.contains(word), "{word} is not in {help}");
    }
}

#[test]
fn check_config_prints_what_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dedupwatch.toml");
    std::fs::write(&file, "[audit]\nwarmup = \"0s\"\n[webhook]\nurl = \"https://h/hush\"").unwrap();
    let file = file.to_str().unwrap();
    let checked = run(
        &["check-config", "--config", file, "--listen", "127.0.0.1:1"],
        &[("DEDUPWATCH_COLLECTOR", "c-9"), ("DEDUPWATCH_LISTN", "127.0.0.1:2")],
    );
    let told = text(&checked.stdout);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let line = |key: &str| {
        let line = told.lines().find(|line| line.starts_with(&format!("{key} "))).unwrap();
        line.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("listen"), "listen 127.0.0.1:1 flag");
    assert_eq!(line("collector"), "collector c-9 environment");
    assert_eq!(line("audit.warmup"), "audit.warmup 0s file");
    assert_eq!(line("audit.horizon"), "audit.horizon 2h default");
    assert_eq!(line("webhook.url"), "webhook.url <hidden> file");
    assert!(!told.contains("hush"));
    assert!(told.contains("DEDUPWATCH_LISTN is passed over"), "{told}");
}

#[test]
fn check_config_tells_all_that_is_wrong() {
    let wrong = run(
        &["check-config", "--database", "postgres://x", "--listen", "x"],
        &[("DEDUPWATCH_AUDIT_HORIZON", "x")],
    );
    assert_eq!(wrong.status.code(), Some(2));
    let told = text(&wrong.stderr);
    for word in ["--database", "--listen", "DEDUPWATCH_AUDIT_HORIZON"] {
        assert!(told.contains(word), "{word} is not in {told}");
    }
    let gone = run(&["--config", "no-such-file.toml"], &[]);
    assert_eq!(gone.status.code(), Some(2));
    assert!(text(&gone.stderr).contains("no-such-file.toml"));
}

#[tokio::test]
async fn a_taken_port_is_told_and_the_database_left_alone() {
    let first = TestProcess::start().await;
    let address = first.base().trim_start_matches("http://");
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("second.db");
    let url = format!("sqlite://{}", database.display());
    let second = run(&["--listen", address, "--database", &url], &[]);
    assert_eq!(second.status.code(), Some(1));
    let told = text(&second.stderr);
    assert!(told.contains(address) && told.contains("another address"), "{told}");
    assert!(!database.exists());
}

#[tokio::test]
async fn a_database_in_use_is_told() {
    let first = TestProcess::start().await;
    let second = run(&["--listen", "127.0.0.1:0", "--database", &first.database()], &[]);
    assert_eq!(second.status.code(), Some(1));
    let told = text(&second.stderr);
    assert!(told.contains("another dedupwatch uses it"), "{told}");
}

#[test]
fn a_database_that_cannot_be_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "not a database, but long enough to be taken for one").unwrap();
    for path in [file.join("under.db"), file.clone()] {
        let url = format!("sqlite://{}", path.display());
        let refused = run(&["--listen", "127.0.0.1:0", "--database", &url], &[]);
        assert_eq!(refused.status.code(), Some(1));
        let told = text(&refused.stderr);
        assert!(told.contains("can't use the database") && told.contains("file"), "{told}");
        assert_eq!(told.matches("os error").count().max(1), 1, "said twice: {told}");
    }
}

#[test]
fn without_configuration_it_serves_from_a_folder_data() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = program()
        .current_dir(folder.path())
        // The port of the default may be taken where the tests run.
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut banner = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut banner).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(folder.path().join("data/dedupwatch.db").exists());
    let version = env!("CARGO_PKG_VERSION");
    for part in [version, "http://127.0.0.1:", "sqlite://data/dedupwatch.db"] {
        assert!(banner.contains(part), "{banner}");
    }
}

#[test]
fn a_simulation_without_a_collector_ends_at_once() {
    // Nobody listens on a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for more in [&["--check"][..], &["--rate", "max"]] {
        let target = format!("http://{free}");
        let mut arguments = vec!["simulate", "--target", &target];
        arguments.extend(more);
        let ended = run(&arguments, &[]);
        assert_eq!(ended.status.code(), Some(1));
        let told = text(&ended.stderr);
        assert!(told.contains(&format!("no collector answers at {target}")), "{told}");
    }
}
