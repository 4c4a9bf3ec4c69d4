//! What waits to be written, by runtime: each has its turn, so that one that sends much keeps no other waiting.

use std::collections::{HashMap, VecDeque};

use crate::writer::Keeping;

/// What waits. Of each runtime it is in the order in which it came.
#[derive(Default)]
pub(crate) struct Waiting {
    of: HashMap<i64, VecDeque<Keeping>>,
    /// Runtimes that wait, in the order of their turns.
    turns: VecDeque<i64>,
}

impl Waiting {
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Behind all that its runtime has waiting. What is kept together is of one runtime.
    pub(crate) fn push(&mut self, keeping: Keeping) {
        let runtime = keeping.deliveries.first().map_or(0, |delivery| delivery.runtime);
        let own = self.of.entry(runtime).or_default();
        if own.is_empty() {
            self.turns.push_back(runtime);
        }
        own.push_back(keeping);
    }

    /// What is written next: in turns of each runtime what it has waited with for longest, until that is so many reports.
    pub(crate) fn group(&mut self, most: usize) -> Vec<Keeping> {
        let (mut group, mut reports) = (Vec::new(), 0);
        while reports < most {
            let Some(runtime) = self.turns.pop_front() else { break };
            let Some(own) = self.of.get_mut(&runtime) else { continue };
            if let Some(next) = own.pop_front() {
                reports += next.deliveries.len();
                group.push(next);
            }
            if own.is_empty() {
                self.of.remove(&runtime);
            } else {
                self.turns.push_back(runtime);
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::group::{delivery, report};

    fn keeping(runtime: i64, reports: usize) -> Keeping {
        let mut one = delivery(1, report("shop", None));
        one.runtime = runtime;
        Keeping { deliveries: vec![one; reports], held: Box::new(()), answer: oneshot::channel().0 }
    }

    fn groups(waiting: &mut Waiting, most: usize) -> Vec<Vec<(i64, usize)>> {
        let mut all = Vec::new();
        while !waiting.is_empty() {
            let group = waiting.group(most);
            all.push(group.iter().map(|one| (one.deliveries[0].runtime, one.deliveries.len())).collect());
        }
        all
    }

    #[test]
    fn runtimes_have_their_turns_however_much_one_of_them_has_waiting() {
        let mut waiting = Waiting::default();
        for reports in [4, 3, 2, 1] {
            waiting.push(keeping(1, reports));
        }
        waiting.push(keeping(2, 1));
        waiting.push(keeping(3, 1));
        waiting.push(keeping(2, 1));
        assert_eq!(
            groups(&mut waiting, 4),
            [vec![(1, 4)], vec![(2, 1), (3, 1), (1, 3)], vec![(2, 1), (1, 2), (1, 1)]]
        );
        // Nothing of it is left behind.
        assert!(waiting.of.is_empty());
        assert_eq!(waiting.group(4).len(), 0);
    }
}
