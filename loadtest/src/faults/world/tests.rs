//! The judge itself, with the real binary: what it must not overlook.

use super::*;
use crate::faults::load::KNOWN_FOR;
use loadtest_sim::fault::{Fault, Rule};
use loadtest_sim::process;

async fn world() -> World {
    let setting = Setting { long: false, seed: 3, program: process::binary().await.unwrap() };
    World::settled(&setting, Scene::new(10, 2)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_is_answered_and_not_taken_is_lost() {
    let mut world = world().await;
    // It says yes and keeps nothing: two reports of one change.
    world.simulation.platform.faults().add(Rule::always(Fault::Delay { ms: 0 }).times(2));
    world.load.drift(&world.simulation, 4).unwrap();
    let missing = world.known(Duration::from_secs(4)).await.unwrap();
    assert_eq!(missing.count, 2, "{missing:?}");
    assert!(missing.told[0].starts_with("app-00004: "), "{missing:?}");
    let mut outcome = Outcome::new("kill", "");
    world.verdict(&mut outcome, None, Duration::from_millis(100)).await.unwrap();
    assert_eq!((outcome.lost, outcome.is_good()), (2, false));
    world.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_answered_and_not_taken_is_lost() {
    let mut world = world().await;
    world.simulation.platform.faults().add(Rule::always(Fault::Delay { ms: 0 }));
    sleep(KNOWN_FOR).await;
    let state = world.simulation.fleet.as_ref().unwrap().find_any(4).unwrap();
    world.load.delete(&world.simulation, &state).unwrap();
    let missing = world.known(Duration::from_secs(4)).await.unwrap();
    assert_eq!(missing.count, 1, "{missing:?}");
    assert!(
        missing.told[0].starts_with("app-00004 (")
            && missing.told[0].ends_with("): its deletion was not reported")
    );
    world.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ledger_that_is_taken_away_repeats_beyond_what_was_in_flight() {
    let mut world = world().await;
    sleep(Duration::from_secs(1)).await;
    world.kill().await.unwrap();
    let state = world.simulation.directory().join("state");
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::create_dir(&state).unwrap();
    // Each application and each of its resources once more, the first of them before it says that it is ready.
    let all = world.posts() + 30;
    world.start().await.unwrap();
    let deadline = Instant::now() + PATIENCE;
    while world.posts() < all {
        assert!(Instant::now() < deadline, "{} of {all} reports came", world.posts());
        sleep(LOOK).await;
    }
    let mut outcome = Outcome::new("kill", "");
    world.verdict(&mut outcome, None, Duration::from_secs(20)).await.unwrap();
    assert_eq!((outcome.lost, outcome.duplicated, outcome.beyond), (0, 30, 30), "{outcome:?}");
    world.end().await.unwrap();
}
