//! `gitops-runtime app`: applications of all runtimes.

mod acts;
mod diff;
mod events;
pub(crate) mod find;
mod get;
mod history;
mod list;
mod logs;
mod resource_name;
mod sync;
mod tree;

pub(crate) use self::acts::actions;
pub(crate) use self::diff::unified;
use self::find::AppName;
pub(crate) use self::history::history_of;
use crate::arguments::AppProxyArgs;
use crate::arguments::app::{AppCommand, AppNameArgs};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::platform::Platform;
use crate::proxy::Proxy;
use crate::show::Screen;

/// Something differs, and the exit code is to say so.
const DIFFERS: u8 = 3;

/// An application, its platform, and the app proxy of its runtime.
pub(crate) struct AppConnection {
    pub(crate) platform: Platform,
    pub(crate) proxy: Proxy,
    pub(crate) name: AppName,
}

impl AppConnection {
    pub(crate) async fn find(
        named: &AppNameArgs,
        way: &AppProxyArgs,
        environment: &Environment,
    ) -> Result<Self, RemoteError> {
        let platform = Platform::find(&way.place, environment).await?;
        let (name, _) = platform.application(named, "uid").await?;
        let proxy = Proxy::find(way, &name.runtime, environment).await?;
        Ok(Self { platform, proxy, name })
    }
}

pub(crate) async fn run(
    command: &AppCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<u8, RemoteError> {
    let platform = async |way: &AppProxyArgs| Platform::find(&way.place, environment).await;
    let app = async |named, way| AppConnection::find(named, way, environment).await;
    match command {
        AppCommand::List { chosen, listed, place } => {
            list::run(&Platform::find(place, environment).await?, chosen, listed, screen).await?;
        }
        AppCommand::Get { named, watch, shown, place } => {
            let how = (shown.output, *watch);
            get::run(&Platform::find(place, environment).await?, named, how, screen).await?;
        }
        AppCommand::Tree { named, shown, live: true, way } => {
            tree::run_live(&app(named, way).await?, shown.output, screen).await?;
        }
        AppCommand::Tree { named, shown, way, .. } => {
            tree::run(&platform(way).await?, named, shown.output, screen).await?;
        }
        AppCommand::Diff { named, resources, exit_code, live, revisions, way } => {
            let differs = match live {
                true => diff::run_live(&app(named, way).await?, resources, revisions, screen).await?,
                false => diff::run(&platform(way).await?, named, resources, screen).await?,
            };
            return Ok(if differs && *exit_code { DIFFERS } else { 0 });
        }
        AppCommand::History { named, limit, shown, live: true, way } => {
            history::run_live(&app(named, way).await?, limit.get(), shown.output, screen).await?;
        }
        AppCommand::History { named, limit, shown, way, .. } => {
            history::run(&platform(way).await?, named, limit.get(), shown.output, screen).await?;
        }
        AppCommand::Events { named, resource, limit, shown, live: true, way } => {
            let limit = usize::try_from(limit.get()).unwrap_or(usize::MAX);
            let app = app(named, way).await?;
            events::run_live(&app, resource.as_deref(), limit, shown.output, screen).await?;
        }
        AppCommand::Events { named, limit, shown, way, .. } => {
            events::run(&platform(way).await?, named, limit.get(), shown.output, screen).await?;
        }
        AppCommand::Sync(given) => {
            sync::sync(&app(&given.named, &given.change.way).await?, given, screen).await?;
        }
        AppCommand::Rollback(given) => {
            sync::rollback(&app(&given.named, &given.change.way).await?, given, screen).await?;
        }
        AppCommand::Terminate { named, change } => {
            sync::terminate(&app(named, &change.way).await?, change, screen).await?;
        }
        AppCommand::Refresh { named, hard, careful, way } => {
            acts::refresh(&app(named, way).await?, *hard, careful, screen).await?;
        }
        AppCommand::Restart { named, resource, change } => {
            acts::restart(&app(named, &change.way).await?, resource, change, screen).await?;
        }
        AppCommand::Logs(given) => {
            logs::run(&app(&given.named, &given.way).await?, given, screen).await?;
        }
        AppCommand::DeleteResource(given) => {
            acts::delete(&app(&given.named, &given.change.way).await?, given, screen).await?;
        }
        AppCommand::Action(given) => {
            acts::action(&app(&given.named, &given.way).await?, given, screen).await?;
        }
    }
    Ok(0)
}
