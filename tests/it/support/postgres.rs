//! A PostgreSQL server of the test process's own: made at first use in a temporary folder, on a
//! free port of this machine, and gone with the process, however that ends. A missing PostgreSQL
//! is no reason to skip a test: it fails.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long it may take to answer: other tests run beside it.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const USER: &str = "dedupwatch";
/// With what a URL must not have as it is.
const PASSWORD: &str = "hush/@:1";
const PASSWORD_IN_URL: &str = "hush%2F%40%3A1";

/// A server. A child of ours watches over it: when nobody holds the pipe to it any more, it stops
/// the server and removes the folder.
pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    is_durable: bool,
    guard: Mutex<Option<(Child, ChildStdin)>>,
}

/// Waits for the end of its input, then stops the server and removes its folder.
const WATCH: &str = "while :; do \"$1/postgres\" -D \"$2/data\" >>\"$2/log\" 2>&1 & \
     echo $! >\"$2/server\"; read -r again || break; done; \
     kill -INT $(cat \"$2/server\"); wait; rm -rf \"$2\"";

static SHARED: OnceLock<Server> = OnceLock::new();
static DATABASES: AtomicU32 = AtomicU32::new(0);

/// The server of this process. It does not wait for the disk: nobody cuts its power.
pub(crate) fn shared() -> &'static Server {
    SHARED.get_or_init(|| Server::start(false))
}

impl Server {
    /// Makes one and starts it; `is_durable` if what it acknowledged has to outlive its end.
    pub(crate) fn start(is_durable: bool) -> Self {
        let folder = tempfile::Builder::new().prefix("dedupwatch-pg-").tempdir().unwrap().keep();
        let server = Self { folder, port: free_port(), is_durable, guard: Mutex::new(None) };
        server.init();
        server.run();
        server
    }

    fn init(&self) {
        std::fs::set_permissions(&self.folder, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(self.folder.join("password"), PASSWORD).unwrap();
        if let Some((user, group)) = other_user() {
            chown(&self.folder, Some(user), Some(group)).unwrap();
        }
        let mut init = command("/bin/sh");
        init.args([
            "-c",
            "\"$1/initdb\" -D \"$2/data\" -U \"$3\" --pwfile=\"$2/password\" \
             -A scram-sha-256 -E UTF8 --locale=C.UTF-8 --no-sync",
            "sh",
        ]);
        let done = init.arg(binaries()).arg(&self.folder).arg(USER).output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "initdb: {told}");
        let sync = if self.is_durable { "on" } else { "off" };
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\n\
             max_connections = 300\nfsync = {sync}\nsynchronous_commit = {sync}\n\
             full_page_writes = {sync}\nautovacuum = off\nshared_buffers = 64MB\n",
            self.port
        );
        let path = self.folder.join("data/postgresql.auto.conf");
        std::fs::write(path, settings).unwrap();
    }

    /// Starts it, and waits until it answers.
    fn run(&self) {
        let mut guard = self.guard.lock().unwrap();
        match &mut *guard {
            Some((_, pipe)) => pipe.write_all(b"again\n").unwrap(),
            None => {
                let mut watch = command("/bin/sh");
                watch.args(["-c", WATCH, "sh"]).arg(binaries()).arg(&self.folder);
                let mut child = watch.stdin(Stdio::piped()).spawn().unwrap();
                let pipe = child.stdin.take().unwrap();
                *guard = Some((child, pipe));
            }
        }
        let began = Instant::now();
        while !self.psql("postgres", "SELECT 1").0 {
            assert!(began.elapsed() < PATIENCE, "no answer: {}", self.log());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Runs a statement, and says whether that went well and what came of it.
    pub(crate) fn psql(&self, database: &str, statement: &str) -> (bool, String) {
        let psql = Command::new(Path::new(binaries()).join("psql"))
            .args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", statement])
            .arg(self.url(database))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = if psql.status.success() { psql.stdout } else { psql.stderr };
        (psql.status.success(), String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// A new database; its URL.
    pub(crate) fn database(&self) -> String {
        let number = DATABASES.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let (is_made, told) = self.psql("postgres", &format!("CREATE DATABASE {name}"));
        assert!(is_made, "{told}");
        self.url(&name)
    }

    /// The URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{PASSWORD_IN_URL}@127.0.0.1:{}/{database}", self.port)
    }

    /// Ends the server at once, as a power cut does, and starts it again after `meanwhile`.
    pub(crate) fn cut(&self, meanwhile: impl FnOnce()) {
        let pid_file = self.folder.join("data/postmaster.pid");
        let text = std::fs::read_to_string(&pid_file).unwrap();
        let pid = text.lines().next().unwrap();
        assert!(Command::new("kill").args(["-QUIT", pid]).status().unwrap().success());
        let began = Instant::now();
        while pid_file.exists() {
            assert!(began.elapsed() < PATIENCE, "it does not stop: {}", self.log());
            std::thread::sleep(LOOK_EVERY);
        }
        meanwhile();
        self.run();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let guard = self.guard.get_mut().unwrap().take();
        if let Some((mut child, pipe)) = guard {
            drop(pipe);
            let _ = child.wait();
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Where Debian has them: a folder for each version, the newest last.
fn binaries() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(|| {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let number = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.parse::<u32>().ok()
        };
        let newest = versions.filter_map(number).max();
        let newest = newest.expect("no PostgreSQL: install the package postgresql; see tests/run");
        format!("/usr/lib/postgresql/{newest}/bin")
    })
}

/// PostgreSQL does not run as root: then it runs as the user that its package makes.
fn other_user() -> Option<(u32, u32)> {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    let id = |kind: &str| {
        let told = Command::new("id").args([kind, "postgres"]).output().unwrap().stdout;
        String::from_utf8_lossy(&told).trim().parse().expect("no user called postgres")
    };
    is_root.then(|| (id("-u"), id("-g")))
}

fn command(program: &str) -> Command {
    let Some((user, group)) = other_user() else { return Command::new(program) };
    let mut command = Command::new("setpriv");
    command.args(["--reuid", &user.to_string(), "--regid", &group.to_string(), "--clear-groups"]);
    command.arg(program);
    // Root's own folder is closed to it.
    command.current_dir("/");
    command
}
