//! What whoever looks may do to an application, by the rules that its runtime will ask about.

use stages_platform_store::{Entity, StoreError};

use super::{Console, Session};
use crate::page::acts::Acts;
use crate::view::application::{Application, ApplicationId};

pub(super) async fn of(
    console: &Console,
    session: &Session,
    id: &ApplicationId,
    application: &Application,
) -> Result<Acts, StoreError> {
    let store = &console.0.settings.store;
    let known = store.subject((&id.runtime, &id.namespace, &id.name)).await?;
    let labels = known.labels();
    let subject = known.within(&id.runtime, &id.namespace, &labels);
    let may = |action: &_| session.access.may(*action, Entity::GitopsApplications, &subject);
    let allowed = Acts::actions().filter(may).collect();
    let none = application.deleted.then(|| "It is deleted: nothing can be done to it.".to_owned());
    Ok(Acts { none, allowed })
}
