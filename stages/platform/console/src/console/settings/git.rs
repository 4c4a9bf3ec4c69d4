//! Somebody's own tokens at Git providers: which runtime is asked, and whether they may register one there.

use super::SignedInRequest;
use crate::console::acts::may_commit;
use crate::console::handlers::HandlerResult;
use crate::page::acts::refused;
use crate::page::settings::git as page;

pub(crate) async fn show(request: SignedInRequest) -> HandlerResult {
    let session = &request.session;
    let runtimes = request.stored(session.fleet.runtimes()).await?;
    let names: Vec<String> = runtimes.into_iter().map(|one| one.name).collect();
    let asked = request.value("runtime");
    let chosen = names.iter().find(|name| **name == asked).or(names.first()).map(String::as_str);
    let why = chosen.filter(|runtime| !may_commit(session, runtime));
    let why = why.map(|runtime| refused(&format!("register a token with {runtime}")));
    Ok(request.shown(&page::page(&names, chosen, why.as_deref(), session.is_admin())))
}
