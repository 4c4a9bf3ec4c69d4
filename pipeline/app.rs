//! The only place that knows every stage: one file per role, which builds its stages from the settings and puts them into an
//! engine; here stands what all roles share, from the first signal to the last line.

mod admin;
mod app_proxy;
mod applications;
mod board;
mod build;
pub(crate) mod bus;
mod change_revision;
mod changes;
mod credential_files;
mod dry_run;
mod follower;
pub(crate) mod join;
mod judged;
pub(crate) mod log;
mod nats;
mod pages;
mod platform;
mod rbac;
mod reporter;
mod repositories;
mod resources;
mod router;
mod routes;
mod secrets;
mod source_server;
mod sources;
mod traces;
mod tunnel_client;
mod tunnel_server;

use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::BoxFuture;
use pipeline_core::Shutdown;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::app_proxy::command as app_proxy;
pub(crate) use self::platform::{command as platform_command, schema};
pub(crate) use self::rbac::run as rbac;
pub(crate) use self::reporter::{CHANGES, PIPELINE, ROUTE, sharding};
use self::reporter::{Reporter, ReportingRole};
pub(crate) use self::router::command as router;
pub(crate) use self::secrets::run as secrets;
pub(crate) use self::source_server::command as source_server;
pub(crate) use self::tunnel_client::command as tunnel_client;
pub(crate) use self::tunnel_server::command as tunnel_server;
use crate::config::{Config, Given, Loaded, Variables};

/// Small pieces of many sizes come and go on every thread: with the system's allocator a third of the changes a second
/// fewer were reported by two cores. How it is set up stands in `.cargo/config.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the role `reporter` until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, each with what to do next; or when it ends without having been asked to.
pub(crate) fn reporter(loaded: &Loaded) -> anyhow::Result<()> {
    begin(&loaded.config);
    for ignored in &loaded.ignored {
        tracing::info!(variable = %ignored.name, why = %ignored.why, "this variable is known and not needed");
    }
    report(&loaded.config, ReportingRole::Applications, false)
}

/// Builds a reporter and runs it until SIGTERM or SIGINT.
fn report(config: &Config, role: ReportingRole, dry_run: bool) -> anyhow::Result<()> {
    run(async |stop| {
        let building = Box::pin(Reporter::build(config, role, dry_run, &stop));
        match unless_stopped(&stop, building).await? {
            Some(built) => built.run(stop).await,
            None => Ok(()),
        }
    })
}

/// What a role begins with, unless the process is told to stop. It asks files, credential plug-ins, the bus and the API server: none
/// of them keeps the process from ending, and what ends with an error for having been told to stop has not failed.
async fn unless_stopped<T>(
    stop: &Shutdown,
    begun: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<Option<T>> {
    let begun = tokio::select! {
        () = stop.cancelled() => return Ok(None),
        begun = begun => begun,
    };
    match begun {
        Err(_) if stop.is_cancelled() => Ok(None),
        begun => begun.map(Some),
    }
}

/// Runs the role `resource-reporter` until SIGTERM or SIGINT; a dry run sends nothing, and says what it would.
///
/// # Errors
/// When it cannot start, each with what to do next; or when it ends without having been asked to.
pub(crate) fn resource_reporter(mut config: Config, dry_run: bool) -> anyhow::Result<()> {
    anyhow::ensure!(
        config.bus.is_none(),
        "bus.url is set, and the resource reporter shares its work with no other process yet: run one of it with --bus ''"
    );
    begin(&config);
    let kept = routes::are_kept(&config);
    config.state = std::mem::take(&mut config.state).of_resources().with_routes(kept);
    report(&config, ReportingRole::Resources, dry_run)
}

/// Runs the role `change-revision` until SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, each with what to do next; or when it ends without having been asked to.
pub(crate) fn change_revision(mut config: Config) -> anyhow::Result<()> {
    begin(&config);
    config.of_changes();
    report(&config, ReportingRole::Changes, false)
}

/// Runs a role that has no engine by the settings that it is given, until SIGTERM or SIGINT.
fn serve(
    given: &Given,
    variables: &Variables,
    role: impl AsyncFnOnce(&Config, Shutdown) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let config = Config::load_given(given, variables)?;
    begin(&config);
    run(async |stop| role(&config, stop).await)?;
    Ok(ExitCode::SUCCESS)
}

/// What every role begins with.
fn begin(config: &Config) {
    stages_client::install_crypto();
    log::start(config);
}

/// Follows what is asked with, such as a token in a Secret, and ends when the process is told to, or where there is nothing to follow.
type Following = BoxFuture<'static, ()>;

fn nothing_to_follow() -> Following {
    Box::pin(std::future::ready(()))
}

fn run(role: impl AsyncFnOnce(Shutdown) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("start the runtime")?;
    let result = runtime.block_on(async {
        outlive_file_size_limit()?;
        let stop = Shutdown::new();
        let signals = tokio::spawn(stop_on_signal(stop.clone())?);
        let result = role(stop).await;
        signals.abort();
        tracing::info!("stopped");
        result
    });
    // What still blocks (a slow disk) does not keep the process from ending.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

/// A file that may not grow any more fails the write, as a full disk does: the ledger waits until there is room. Without
/// a listener the signal that comes with it would end the process.
fn outlive_file_size_limit() -> anyhow::Result<()> {
    /// The same number on Linux and macOS.
    const SIGXFSZ: i32 = 25;
    signal(SignalKind::from_raw(SIGXFSZ)).context("listen for SIGXFSZ").map(drop)
}

/// Cancels `stop` at the first SIGTERM or SIGINT; the second ends the process at once.
fn stop_on_signal(stop: Shutdown) -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    Ok(async move {
        for again in [false, true] {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
            };
            if again {
                tracing::warn!(signal = name, "told to stop a second time: ending at once");
                std::process::exit(1);
            }
            tracing::info!(signal = name, "stopping: what is in flight may finish");
            stop.cancel();
        }
    })
}
