//! The role `platform`: what reporters report, received, kept with its history, and shown; and what is done to its store.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use jiff::Timestamp;
use pipeline_core::{ExposeSecret as _, Service as _, ServiceContext, Shutdown};
use pipeline_http::serve::{FOLLOWED, ServeConfig};
use prometheus::Registry;
use stages_client::{OwnCookie, Token};
use stages_platform_api::{Api, ForwardConfig};
use stages_platform_console::{Console, OidcSignIn, Settings, StoredFleet};
use stages_platform_ingest::IngestConfig;
use stages_platform_oidc::OidcConfig;
use stages_platform_store::{
    Place, Retention, Sequence, Store, StoreConfig, adopt, backup, create_token, restore, revoke_token,
    runtime_id, tokens,
};

use crate::cli::{PlatformArgs, PlatformCommand, TokenCommand, print, single_thread};
use crate::config::{As, Config, PlatformServer, Variables};

/// What a backup is called that is named after its moment, which is written as digits in this shape.
const BACKUP: &str = "platform-";
const MOMENT: &str = "00000000T000000Z";
const DATABASE: &str = ".db";
/// Connections at a time: reporters keep some dozens each.
const CONNECTIONS: usize = 4_096;
/// An answer is made in this time beside that of the body.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Runs the role, or one of the commands about its store.
///
/// # Errors
/// Whatever kept it from being done, with what to do next.
pub(crate) fn command(given: &PlatformArgs, variables: &Variables) -> anyhow::Result<ExitCode> {
    let Some(command) = &given.command else { return super::serve(&given.given(), variables, run) };
    let load = |given| Config::load_given(&given, variables);
    single_thread()?.block_on(async {
        let mut text = String::new();
        match command {
            PlatformCommand::Token(TokenCommand::Create { runtime, adopted, place: at }) => {
                let place = place(&load(at.given())?)?;
                let made = match adopted {
                    true => adopt(&place, runtime).await,
                    false => create_token(&place, runtime).await,
                };
                writeln!(text, "{}", made.context("make a token")?.expose_secret())?;
                let mut said = format!("made in the store {place}, for a platform that runs on it\n");
                if let Some(id) = beside(runtime) {
                    said += &format!("the runtime {runtime} has the id {id}\n");
                }
                std::io::stderr().lock().write_all(said.as_bytes()).context("print what it is for")?;
            }
            PlatformCommand::Token(TokenCommand::List { place: at }) => {
                let place = place(&load(at.given())?)?;
                let all = tokens(&place).await.context("list the tokens")?;
                for token in &all {
                    let made = Timestamp::from_millisecond(token.created_at).unwrap_or(Timestamp::UNIX_EPOCH);
                    let id = beside(&token.runtime).map(|id| format!("  {id}")).unwrap_or_default();
                    writeln!(text, "{}  {}  {}{id}", token.name, made.strftime("%F %TZ"), token.runtime)?;
                }
                if all.is_empty() {
                    writeln!(
                        text,
                        "there is none in the store {place}: `gitops-runtime platform token create --runtime NAME` makes one"
                    )?;
                }
            }
            PlatformCommand::Token(TokenCommand::Revoke { name, place: at }) => {
                revoke_token(&place(&load(at.given())?)?, name).await.context("take a token away")?;
                writeln!(text, "{name} is taken away: a platform that runs refuses it within 10 seconds")?;
            }
            PlatformCommand::Backup { file, keep, place: at } => {
                let place = place(&load(at.given())?)?;
                let folder = file.is_dir();
                anyhow::ensure!(folder || keep.is_none(), "--keep: {} is no directory", file.display());
                let file = if folder { &named(file) } else { file };
                backup(&place, file).await.context("back the store up")?;
                writeln!(text, "the store {place} was copied to {}", file.display())?;
                if let (Some(keep), Some(folder)) = (keep, file.parent()) {
                    for gone in thin(folder, *keep).context("take older backups away")? {
                        writeln!(text, "{} is older and was removed", gone.display())?;
                    }
                }
            }
            PlatformCommand::Restore { file, place: at } => {
                let place = place(&load(at.given())?)?;
                let file = if file.is_dir() { &newest(file)? } else { file };
                let aside = restore(&place, file).await.context("restore the store")?;
                writeln!(text, "{} is the store now", file.display())?;
                if let Some(aside) = aside {
                    writeln!(text, "what was there is {}", aside.display())?;
                }
            }
        }
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    })
}

/// The id that a runtime has beside its name, where that is not its id.
fn beside(name: &str) -> Option<String> {
    let id = runtime_id(name);
    (id != name).then(|| id.into_owned())
}

/// Prints the schema of an API, or of what reporters send.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn schema(of: crate::cli::Api) -> anyhow::Result<()> {
    let pretty = |schema: serde_json::Value| format!("{schema:#}\n");
    let text = match of {
        crate::cli::Api::Platform => stages_platform_api::sdl(),
        crate::cli::Api::AppProxy => stages_proxy::sdl(),
        crate::cli::Api::Resources => pretty(stages_resources::schema()),
        crate::cli::Api::Cloudevents => {
            pretty(stages_report::cloudevents::schema(&stages_resources::schema()))
        }
    };
    print(&text)
}

/// Runs it until `stop`.
async fn run(config: &Config, stop: Shutdown) -> anyhow::Result<()> {
    let (settings, registry) = (&config.platform_server, Registry::new());
    let retention = Retention {
        history: *settings.retention.history,
        keys: *settings.retention.keys,
        interval: *settings.retention.interval,
    };
    let place = place(config)?;
    tracing::info!("opening the store {place}");
    let opening = StoreConfig { place, retention };
    // To change the tables of a large store takes minutes.
    let built = Box::pin(async { opening.build(&registry).await.context("open the store") });
    let Some((store, writing)) = super::unless_stopped(&stop, built).await? else { return Ok(()) };
    let ingest = ingest(settings).build(store.clone(), &registry);
    let sequence = Sequence::new(store.clone());
    // As it listens it is reached over http.
    let reached_at = settings.external_url.as_ref().map_or("", |url| url.as_str());
    let session = OwnCookie::session(reached_at);
    let api = Api::new(store.clone(), sequence.clone(), Timestamp::now, forward(settings, &stop), session);
    let address = config.serve.address.context("serve.address is not set: the platform is reached there")?;
    let serve = ServeConfig {
        request_timeout: *settings.ingest.body_timeout + ANSWERED_WITHIN,
        answer_age: FOLLOWED,
        connections: CONNECTIONS,
        grace: *config.shutdown.grace,
        flag: Some("--listen"),
        ..ServeConfig::new(address.to_string(), "serve.address")
    };
    let routes = ingest.routes().merge(api.routes()).merge(pages(store.clone()));
    let server = serve.build_bare(routes).await?;
    // Figures are not for everybody who may send reports.
    let figures = match *config.serve.metrics_address {
        Some(address) => {
            let serve = ServeConfig::new(address.to_string(), "serve.metricsAddress");
            Some(Box::new(serve.build_bare(super::pages::metrics(registry)).await?))
        }
        None => None,
    };
    let fleet = Arc::new(StoredFleet::new(store.clone(), sequence.clone(), Timestamp::now));
    let external = external(config, server.address());
    let oidc = oidc(config, &external)?;
    keep_groups(&store, oidc.as_ref()).await?;
    let console = Settings { external, store: store.clone(), retention, clock: Timestamp::now, oidc };
    let console = Console::new(fleet.clone(), console, stop.clone());
    if let Some(link) = console.first_link().await.context("make the link of the first account")? {
        // For whoever starts it: a line of its own, since an entry of the log is no place for a secret.
        let link = link.expose();
        let said =
            format!("nobody has an account yet; open this within 15 minutes to make the first one: {link}\n");
        std::io::stderr().lock().write_all(said.as_bytes()).context("print the link of the first account")?;
    }
    let server = server.mount(console.router());
    if !store.has_tokens().await.context("read the store")? {
        tracing::info!(
            "nobody has a token yet: add a runtime in the console, or make one with `gitops-runtime platform token create --runtime NAME`, given the same --state, --config and variables as this process"
        );
    }
    tracing::info!("receiving reports");
    let served = tokio::spawn(Box::new(server).serve(ServiceContext::alone(stop.clone())));
    let figures = figures.map(|server| tokio::spawn(server.serve(ServiceContext::alone(stop.clone()))));
    tokio::join!(store.retain(stop.clone()), sequence.follow(stop));
    drop((fleet, sequence));
    served.await.context("serve")?.context("serve")?;
    if let Some(figures) = figures {
        figures.await.context("serve")?.context("serve")?;
    }
    drop(store);
    writing.finished().await;
    Ok(())
}

/// What reports are taken with.
fn ingest(settings: &PlatformServer) -> IngestConfig {
    let ingest = &settings.ingest;
    IngestConfig {
        max_body: ingest.max_body.len(),
        max_unpacked: ingest.max_unpacked.len(),
        body_timeout: *ingest.body_timeout,
        runtime_requests: ingest.runtime_requests,
        runtime_bytes: ingest.runtime_bytes.len(),
        all_bytes: ingest.all_bytes.len(),
    }
}

/// What is passed on to runtimes, and how.
fn forward(settings: &PlatformServer, stop: &Shutdown) -> ForwardConfig {
    let forward = &settings.forward;
    ForwardConfig {
        connect_timeout: *forward.connect_timeout,
        timeout: *forward.timeout,
        idle_timeout: *forward.idle_timeout,
        concurrency: forward.concurrency,
        refused: forward.refused_networks.iter().map(|network| network.0).collect(),
        stop: stop.clone(),
    }
}

/// Keeps who is an admin and in which team by groups of the provider; whoever is so by another one is it no more.
async fn keep_groups(store: &Store, oidc: Option<&OidcSignIn>) -> anyhow::Result<()> {
    let issuer = oidc.map_or("", |oidc| oidc.provider.issuer().as_str());
    let has_admins = oidc.is_some_and(|oidc| oidc.admin_group.is_some());
    let teams: Vec<_> = oidc.iter().flat_map(|oidc| &oidc.teams).map(|(_, team)| team.clone()).collect();
    let now = Timestamp::now().as_millisecond();
    let admins_by = if has_admins { issuer } else { "" };
    store.keep_admins_of(admins_by, now).await.context("keep who is an admin by a group")?;
    store.keep_teams_of(issuer, &teams, now).await.context("keep who is in which team by a group")
}

/// The provider by which people sign in, if one is set.
fn oidc(config: &Config, external: &str) -> anyhow::Result<Option<OidcSignIn>> {
    let settings = &config.platform_server.oidc;
    let Some(issuer) = &*settings.issuer else { return Ok(None) };
    let secret = match (&*settings.client_secret, &*settings.client_secret_file) {
        (Some(secret), _) => Token::Literal(secret.clone()),
        (None, Some(file)) => Token::file(file),
        (None, None) => anyhow::bail!("platformServer.oidc.clientSecretFile is not set"),
    };
    let redirect = format!("{}/login/oidc/callback", external.trim_end_matches('/'));
    let redirect = redirect.parse().context("platformServer.externalUrl is no address to come back to")?;
    let texts = |list: &[As<String>]| list.iter().map(|one| one.trim().to_owned()).collect::<Vec<_>>();
    let client_id = settings.client_id.clone().context("platformServer.oidc.clientId is not set")?;
    let provider = OidcConfig {
        scopes: texts(&settings.scopes),
        groups_claim: settings.groups_claim.clone(),
        ca_file: settings.ca_file.clone(),
        ..OidcConfig::new(issuer.clone(), client_id, secret, redirect)
    };
    let default = || format!("Sign in with {}", issuer.host());
    Ok(Some(OidcSignIn {
        provider: provider.build(),
        button: settings.button_text.clone().unwrap_or_else(default),
        teams: settings.teams.iter().map(|one| (one.group.clone(), one.team.clone())).collect(),
        admin_group: settings.admin_group.clone(),
        domains: settings.allowed_domains.iter().map(|one| one.0.clone()).collect(),
        creates_users: settings.create_users,
    }))
}

/// The address that people have for it: as it is set, or as it listens.
fn external(config: &Config, listens: SocketAddr) -> String {
    match &*config.platform_server.external_url {
        Some(url) => url.to_string(),
        // Of every address of this machine the one that is sure to be reached from it.
        None if listens.ip().is_unspecified() => format!("http://localhost:{}", listens.port()),
        None => format!("http://{listens}"),
    }
}

/// The name of a backup that is made now.
fn named(folder: &Path) -> PathBuf {
    folder.join(format!("{BACKUP}{}{DATABASE}", Timestamp::now().strftime("%Y%m%dT%H%M%SZ")))
}

/// The backups of a folder that are named after their moment, the oldest first, and what of others was never finished.
fn backups(folder: &Path) -> std::io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut backups = Vec::new();
    let mut partial = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(BACKUP) else { continue };
        let moment: String =
            rest.chars().take(MOMENT.len()).map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        match rest.get(MOMENT.len()..) {
            Some(DATABASE) if moment == MOMENT => backups.push(folder.join(name)),
            Some(".db.partial") if moment == MOMENT => partial.push(folder.join(name)),
            _ => {}
        }
    }
    backups.sort();
    Ok((backups, partial))
}

/// Takes away all but the newest of the backups that are named after their moment, and what was never finished; says what.
fn thin(folder: &Path, keep: u32) -> std::io::Result<Vec<PathBuf>> {
    let (backups, mut gone) = backups(folder)?;
    let more = backups.len().saturating_sub(usize::try_from(keep).unwrap_or(usize::MAX));
    gone.extend(backups.into_iter().take(more));
    gone.iter().try_for_each(std::fs::remove_file)?;
    Ok(gone)
}

/// The newest backup of a folder, of those that are named after their moment.
fn newest(folder: &Path) -> anyhow::Result<PathBuf> {
    let (mut all, _) = backups(folder).with_context(|| format!("read {}", folder.display()))?;
    all.pop().with_context(|| format!("there is no backup in {}", folder.display()))
}

/// Where the store is.
fn place(config: &Config) -> anyhow::Result<Place> {
    let settings = &config.platform_server.store;
    if let Some(url) = &*settings.postgres_url {
        return Ok(Place::Postgres(url.expose_secret().to_owned()));
    }
    if let Some(file) = &*settings.postgres_url_file {
        return Ok(Place::PostgresFile(file.clone()));
    }
    Ok(Place::Sqlite(match &*settings.path {
        Some(path) => path.clone(),
        None => config.state.directory()?.join("platform.db"),
    }))
}

/// What a process says of itself.
fn pages(store: Store) -> Router {
    let health = async |State(store): State<Store>| match store.is_writable() {
        true => "ok\n",
        // No restart helps: what is sent is answered 503 until there is room, or the disk is well.
        false => "degraded: the store cannot be written, the log says why\n",
    };
    let ready = async |State(store): State<Store>| match store.is_newer() {
        false => (StatusCode::OK, "ready\n"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "a newer version has the store: this one writes nothing\n"),
    };
    Router::new().route("/healthz", get(health)).route("/readyz", get(ready)).with_state(store)
}

#[cfg(test)]
mod tests {
    use super::newest;

    #[test]
    fn the_newest_backup_of_a_folder_is_the_whole_one_of_the_last_moment() {
        let folder = tempfile::tempdir().unwrap();
        let none = newest(folder.path()).unwrap_err().to_string();
        assert_eq!(none, format!("there is no backup in {}", folder.path().display()));
        for name in [
            "platform-20261126T031700Z.db",
            "platform-20261127T031700Z.db",
            "platform-20261128T031700Z.db.partial",
            "platform-of-somebody.db",
            "zzz.db",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(newest(folder.path()).unwrap(), folder.path().join("platform-20261127T031700Z.db"));
    }
}
