//! A collector as a process of its own, to be stopped by signals.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Instant;

use tempfile::TempDir;

use super::{Api, LOOK_EVERY, PATIENCE};

/// The program, built for the tests, with nothing of this machine's environment that it reads.
pub fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dedupwatch"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DEDUPWATCH_") {
            command.env_remove(name);
        }
    }
    command
}

/// A running collector. Dropped, it is killed.
pub struct TestProcess {
    api: Api,
    child: Child,
    folder: Arc<TempDir>,
    database: String,
    flags: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Deref for TestProcess {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl TestProcess {
    /// `serve` on a free port with a fresh database, without warm-up.
    pub async fn start() -> Self {
        Self::start_with(&[], &[("DEDUPWATCH_AUDIT_WARMUP", "0s")]).await
    }

    /// `serve` on a free port with a fresh database and these flags and variables.
    pub async fn start_with(flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let flags = flags.iter().map(ToString::to_string).collect();
        let variables = variables.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let database = format!("sqlite://{}", folder.path().join("test.db").display());
        Self::run(folder, database, flags, variables).await
    }

    /// The same with this database.
    pub async fn start_on(database: String) -> Self {
        let variables = vec![("DEDUPWATCH_AUDIT_WARMUP".into(), "0s".into())];
        Self::run(Arc::new(tempfile::tempdir().unwrap()), database, Vec::new(), variables).await
    }

    async fn run(
        folder: Arc<TempDir>,
        database: String,
        flags: Vec<String>,
        variables: Vec<(String, String)>,
    ) -> Self {
        let mut child = program()
            .args(["serve", "--listen", "127.0.0.1:0", "--database", &database])
            .args(&flags)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let base = address_told_by(&mut child);
        Self { api: Api::new(base), child, folder, database, flags, variables }
    }

    /// Kills it on the spot (`kill -9`).
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop (SIGTERM) without waiting.
    pub fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Waits for its end.
    pub async fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "the collector did not end in time");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Kills it, unless it has ended, and starts it again on the same database.
    pub async fn restart(mut self) -> Self {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        let (folder, flags) = (Arc::clone(&self.folder), std::mem::take(&mut self.flags));
        let database = std::mem::take(&mut self.database);
        Self::run(folder, database, flags, std::mem::take(&mut self.variables)).await
    }

    /// From the next start on.
    pub fn set_variable(&mut self, name: &str, value: &str) {
        self.variables.push((name.into(), value.into()));
    }

    /// The database's URL.
    pub fn database(&self) -> String {
        self.database.clone()
    }
}

/// The first line says where it listens.
fn address_told_by(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let from = line.find("http://").unwrap_or_else(|| panic!("no address in {line:?}"));
    line[from..].split(',').next().unwrap().to_string()
}
