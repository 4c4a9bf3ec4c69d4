use super::*;

#[test]
fn what_is_told_is_summed_over_shards() {
    let busy = Figures { observed: 5, queued: 2, waiting: 1, in_flight: 1, acked: 1, ..Figures::default() };
    let idle = Figures { observed: 7, acked: 7, ..Figures::default() };
    let told = Told { shards: vec![busy, idle] };
    assert_eq!((told.idle(), told.observed()), (false, 12));
    assert!(Told { shards: vec![idle] }.idle());
}
