//! Prometheus and Alertmanager as users run them (Debian's packages `prometheus` and
//! `prometheus-alertmanager`), each with a folder of its own on a free port. Dropped, they are
//! killed.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Instant;

use tempfile::TempDir;
use tokio::net::TcpStream;

use super::{Api, LOOK_EVERY, PATIENCE};

/// An address that is free now, for what must be found under it again.
pub fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A process that listens.
struct Server {
    api: Api,
    address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a command that keeps its data in `folder` and listens on `address`.
    async fn start(command: &mut Command, address: SocketAddr, folder: TempDir) -> Self {
        let command = command.arg(format!("--web.listen-address={address}"));
        let child = command.arg("--log.level=error").spawn();
        let child = child.unwrap_or_else(|why| panic!("{command:?}: {why}; see tests/run"));
        let api = Api::new(format!("http://{address}"));
        let server = Self { api, address, child, _folder: folder };
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < end, "{command:?} does not listen");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        server
    }
}

/// A Prometheus with this configuration.
pub struct Prometheus(Server);

impl Prometheus {
    pub async fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prometheus.yml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()));
        Self(Server::start(&mut command, free_address(), folder).await)
    }

    pub fn api(&self) -> &Api {
        &self.0.api
    }

    /// Where an expression is evaluated.
    pub fn query(expression: &str) -> String {
        format!("/api/v1/query?query={}", encoded(expression))
    }

    /// Waits until an expression has one value, and this one.
    pub async fn wait_for(&self, expression: &str, value: &str) {
        let wanted = |answer: &serde_json::Value| {
            let result = answer["data"]["result"].as_array();
            result.is_some_and(|all| all.len() == 1 && all[0]["value"][1] == value)
        };
        self.api().wait_for(&Self::query(expression), wanted).await;
    }
}

/// A text as part of an address.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// An Alertmanager with a file of ours.
pub struct Alertmanager(Server);

impl Alertmanager {
    pub async fn start(config: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("prometheus-alertmanager");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.path={}", folder.path().display()))
            .arg("--cluster.listen-address="); // alone
        Self(Server::start(&mut command, free_address(), folder).await)
    }

    pub fn api(&self) -> &Api {
        &self.0.api
    }

    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}
