//! What came again since the ledger was taken away.

use super::Witness;

impl Witness {
    /// How many applications are not over, and were not reported since what was sent before may come again; and one.
    pub(crate) fn not_again(&self) -> (usize, Option<String>) {
        let seen = self.lock();
        let is_over = |name: &String, uid: &String| seen.deleted.contains(&(name.clone(), uid.clone()));
        let here = seen.last.iter().filter(|(entity, last)| {
            entity.resource.is_none() && last.era != seen.era && !is_over(&entity.app_name, &last.uid)
        });
        let names: Vec<&String> = here.map(|(entity, _)| &entity.app_name).collect();
        (names.len(), names.first().map(|name| (*name).clone()))
    }
}
