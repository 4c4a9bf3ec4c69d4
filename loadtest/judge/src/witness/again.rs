//! What came again since the ledger was taken away.

use super::Witness;

impl Witness {
    /// Which it is of the times of which each may repeat what was sent in those before.
    pub fn era(&self) -> u32 {
        self.lock().era
    }

    /// How many applications are not over, and were not reported since `era`, when what had been sent could not come again
    /// yet; and one of them.
    pub fn not_again(&self, era: u32) -> (usize, Option<String>) {
        let seen = self.lock();
        let is_over = |name: &String, uid: &String| seen.deleted.contains(&(name.clone(), uid.clone()));
        let here = seen.last.iter().filter(|(entity, last)| {
            entity.resource.is_none() && last.era <= era && !is_over(&entity.app_name, &last.uid)
        });
        let names: Vec<&String> = here.map(|(entity, _)| &entity.app_name).collect();
        (names.len(), names.first().map(|name| (*name).clone()))
    }
}
