//! Something that is looked at again and again until it is as it should be, or the time is over.

use std::fmt::Debug;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Whatever is waited for is there within this time, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// Looks until `is_so`, with a `pause` between two looks; gives what was seen last, whatever it is when the time is over.
///
/// # Errors
/// Those of a look.
pub async fn until<T>(
    within: Duration,
    pause: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<T>,
    is_so: impl Fn(&T) -> bool,
) -> anyhow::Result<T> {
    let end = Instant::now() + within;
    loop {
        let seen = look().await?;
        if is_so(&seen) || Instant::now() > end {
            return Ok(seen);
        }
        sleep(pause).await;
    }
}

/// How often [`wait_for`] looks.
const LOOK: Duration = Duration::from_millis(20);

/// Looks until `is_so`, and gives what was seen then.
///
/// # Panics
/// When [`PATIENCE`] is over, with what was seen last.
pub async fn wait_for<T: Debug>(
    what: &str,
    mut look: impl AsyncFnMut() -> T,
    is_so: impl Fn(&T) -> bool,
) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        let seen = look().await;
        if is_so(&seen) {
            return seen;
        }
        assert!(Instant::now() < end, "waited for {what} in vain: {seen:?}");
        sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_millis(1);

    #[tokio::test]
    async fn the_first_look_that_is_as_it_should_be_is_the_last() {
        let mut looks = 0;
        let look = async || {
            looks += 1;
            Ok(looks)
        };
        assert_eq!(until(Duration::from_secs(60), PAUSE, look, |seen| *seen == 3).await.unwrap(), 3);
        assert_eq!(looks, 3);
    }

    #[tokio::test]
    async fn when_the_time_is_over_what_there_is_instead_is_given_and_a_look_that_fails_ends_it() {
        assert_eq!(until(Duration::ZERO, PAUSE, async || Ok("other"), |_| false).await.unwrap(), "other");
        let failing = async || -> anyhow::Result<()> { anyhow::bail!("nobody answers") };
        let failed = until(Duration::from_secs(60), PAUSE, failing, |()| false).await.unwrap_err();
        assert_eq!(failed.to_string(), "nobody answers");
    }
}
