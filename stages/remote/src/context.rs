//! `gitops-runtime context`: the platforms that somebody signed in to.

use serde_json::{Value, json};

use crate::arguments::context::ContextCommand;
use crate::contexts::{Context, Contexts};
use crate::environment::Environment;
use crate::error::RemoteError;
use crate::show::{Column, Output, Screen, document, table};

const COLUMNS: &[Column] = &[
    Column::new("CURRENT"),
    Column::new("NAME").path(),
    Column::new("PLATFORM").long(),
    Column::new("USER").rank(1),
];

pub(crate) fn run(
    command: &ContextCommand,
    screen: &Screen,
    environment: &Environment,
) -> Result<(), RemoteError> {
    match command {
        ContextCommand::List { shown } => {
            let text = list(&Contexts::read(environment)?, shown.output, screen, environment)?;
            screen.say(&text)
        }
        ContextCommand::Use { name } => {
            let platform = Contexts::change(environment, |all| {
                let platform = all.named(name)?.platform.clone();
                all.current = Some(name.clone());
                Ok(platform)
            })?;
            if let Some(other) = environment.context.as_ref().filter(|other| *other != name) {
                screen.note(&format!("GITOPS_RUNTIME_CONTEXT={other} stands above it while it is set"));
            }
            screen.tell(&format!("{name} is the current context: {platform}"))
        }
        ContextCommand::Remove { name } => {
            let platform = Contexts::change(environment, |all| {
                let platform = all.named(name)?.platform.clone();
                all.contexts.retain(|one| one.name != *name);
                all.current = all.current.take().filter(|current| current != name);
                Ok(platform)
            })?;
            let text = format!(
                "{name} is forgotten, with its key; {platform} still takes that key until it is taken back at {platform}/settings"
            );
            screen.tell(&text)
        }
        ContextCommand::Current => {
            let all = Contexts::read(environment)?;
            screen.say(&format!("{}\n", all.chosen(None, environment)?.name))
        }
    }
}

fn list(
    all: &Contexts,
    output: Output,
    screen: &Screen,
    environment: &Environment,
) -> Result<String, RemoteError> {
    let current = environment.context.as_ref().or(all.current.as_ref());
    let is_current = |one: &Context| current == Some(&one.name);
    match output {
        Output::Json | Output::Yaml => {
            let one = |one: &Context| json!({"name": one.name, "platform": one.platform, "user": one.user, "current": is_current(one)});
            document(&Value::Array(all.contexts.iter().map(one).collect()), output)
        }
        Output::Name => Ok(all.contexts.iter().map(|one| format!("{}\n", one.name)).collect()),
        Output::Table | Output::Wide => {
            if all.contexts.is_empty() {
                screen.note("nobody is signed in: `gitops-runtime login URL` signs you in");
            }
            let mark = |one: &Context| if is_current(one) { "*" } else { "" };
            let row = |one: &Context| {
                vec![mark(one).into(), (&*one.name).into(), (&*one.platform).into(), (&*one.user).into()]
            };
            let rows: Vec<_> = all.contexts.iter().map(row).collect();
            Ok(table(COLUMNS, &rows, true, true, screen))
        }
    }
}
