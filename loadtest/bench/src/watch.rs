//! What is looked at again and again: while something is done, or for as long as it moves.

use std::time::{Duration, Instant};

use loadtest_sim::reporter::memory_of;
use tokio::time::sleep;

/// How often the memory of a process is looked at that lives for a moment.
pub(crate) const LOOK: Duration = Duration::from_millis(2);

/// The anonymous memory of a process, in bytes: what it allocated, without the files that it maps.
pub(crate) fn anonymous(id: u32) -> Option<[u64; 1]> {
    memory_of(id, "RssAnon:").map(|bytes| [bytes])
}

/// Does something, and gives the most of each figure that was seen before it, meanwhile and after it, with so long between two looks;
/// `None` where none was ever seen.
pub(crate) async fn most_while<const N: usize, T>(
    every: Duration,
    look: impl Fn() -> Option<[u64; N]>,
    doing: impl Future<Output = T>,
) -> (T, Option<[u64; N]>) {
    let mut most: Option<[u64; N]> = None;
    let mut see = || {
        let Some(seen) = look() else { return };
        let most = most.get_or_insert(seen);
        most.iter_mut().zip(seen).for_each(|(most, seen)| *most = seen.max(*most));
    };
    let mut doing = std::pin::pin!(doing);
    let done = loop {
        see();
        tokio::select! {
            done = &mut doing => break done,
            () = sleep(every) => {}
        }
    };
    see();
    (done, most)
}

/// What is seen of something that goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// It goes on for as long as this is another number from time to time.
    pub(crate) at: u64,
    pub(crate) is_over: bool,
}

/// Looks until it is over, or has not moved for so long; gives when it moved last.
pub(crate) async fn while_it_moves(
    patience: Duration,
    every: Duration,
    mut look: impl FnMut() -> anyhow::Result<Seen>,
) -> anyhow::Result<Instant> {
    let (mut at, mut moved) = (None, Instant::now());
    loop {
        let seen = look()?;
        if at.replace(seen.at) != Some(seen.at) {
            moved = Instant::now();
        }
        if seen.is_over || moved.elapsed() > patience {
            return Ok(moved);
        }
        sleep(every).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn the_most_is_of_all_looks_also_of_one_that_came_before_and_one_that_came_after() {
        let figures = Cell::new([7, 1]);
        let doing = async { figures.set([2, 5]) };
        let done = most_while(Duration::from_secs(600), || Some(figures.get()), doing).await;
        assert_eq!(done, ((), Some([7, 5])));
        let (done, most) = most_while(Duration::from_secs(600), || None::<[u64; 1]>, async { "done" }).await;
        assert_eq!((done, most), ("done", None));
    }

    #[tokio::test]
    async fn what_moves_is_looked_at_until_it_is_over_and_what_stands_still_for_as_long_as_patience_lasts() {
        let mut looks = 0;
        let look = || {
            looks += 1;
            Ok(Seen { at: looks, is_over: looks == 30 })
        };
        while_it_moves(Duration::from_secs(600), Duration::ZERO, look).await.unwrap();
        assert_eq!(looks, 30);
        let stands = || Ok(Seen { at: 1, is_over: false });
        let moved = while_it_moves(Duration::from_millis(1), Duration::ZERO, stands).await.unwrap();
        assert!(moved.elapsed() > Duration::from_millis(1));
    }
}
