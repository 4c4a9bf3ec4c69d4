//! What whoever looks may do to an application, by the rules that its runtime will ask about.

use stages_platform_store::{Action, ApplicationName, Entity, StoreError, Subject};

use super::{Console, Session};
use crate::page::acts::{Acts, is_of_workflows};
use crate::view::application::Application;
use crate::view::resource::ResourceKey;

/// `resource` is the one that is looked at: workflows are asked about by their namespace, as the runtime does.
pub(super) async fn of(
    console: &Console,
    session: &Session,
    id: &ApplicationName,
    application: &Application,
    resource: Option<&ResourceKey>,
) -> Result<Acts, StoreError> {
    let store = console.store();
    let known = store.subject((&id.runtime, &id.namespace, &id.name)).await?;
    let labels = known.labels();
    let subject = known.within(&id.runtime, &id.namespace, &labels);
    let of_workflows = resource.filter(|key| is_of_workflows(key)).map(|key| Subject {
        runtime: &id.runtime,
        namespace: &key.namespace,
        ..Subject::default()
    });
    let may = |(entity, action): &(Entity, Action)| {
        let about = if *entity == Entity::Workflows { of_workflows.as_ref() } else { Some(&subject) };
        about.is_some_and(|about| session.access.may(*action, *entity, about))
    };
    let allowed = Acts::asked_about().filter(may).collect();
    let may_commit = may_commit(session, &id.runtime);
    let none = application.deleted.then(|| "It is deleted: nothing can be done to it.".to_owned());
    Ok(Acts { none, allowed, may_commit })
}

/// Whether they may register a token with the Git integrations of a runtime, and commit by it.
pub(super) fn may_commit(session: &Session, runtime: &str) -> bool {
    session.access.may(Action::Create, Entity::GitContexts, &Subject { runtime, ..Subject::default() })
}
