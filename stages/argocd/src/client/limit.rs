//! How many calls may be under way at once: learnt from how long they take, and from those that fail.
//!
//! takes: the beginning and the end of every call, and the time - gives: a limit between two bounds - calls: nobody;
//! it has neither clock nor I/O - fails: never
//!
//! A peer that works on so many calls at a time lets each further one wait: more of them under way bring no more
//! answers, only later ones. So the limit follows how much slower than usual calls are. What is usual is kept for
//! each kind of call, because a manifest takes longer than a tree, and the slowest and the fastest quarter of a kind
//! do not count, because one application is larger than another:
//!
//! - not slower, and the limit is in use: it grows, twofold at first, by its square root once it was too high;
//! - a little slower: it stays, which keeps the peer busy with a short queue;
//! - slower than that: it falls at once to where the queue should be short (by half at most, then it looks again);
//! - 429 or 502 to 504: it falls to half of what was under way, once for each overload; a call that we gave up after
//!   its time is the same if others are slow or were given up too, and else a matter of that call alone: a repository
//!   that does not answer holds up its own manifests, and says nothing of how much Argo CD has to do.
//!
//! For the same reason a call that is under way far longer than usual makes room: beside such calls, as many may
//! always be made as the lower bound says, as long as all together are no more than the upper bound.
//!
//! What is usual falls with faster answers, and rises in two cases alone, in neither of which the wait is of our
//! making: few calls are under way, or the limit was halved for a moment to find out.

mod flights;

use std::time::Duration;

use pipeline_core::Call;

use self::flights::Flights;
pub(super) use self::flights::{Flight, STUCK_AFTER};

/// Up to so much slower than usual, or with so few calls that wait, more may be under way.
const GROW_BELOW: f64 = 1.25;
const GROW_QUEUE: f64 = 2.0;
/// From so much slower than usual, and with so many calls that wait, less may be.
const SHRINK_ABOVE: f64 = 1.5;
const SHRINK_QUEUE: f64 = 4.0;
/// What a limit that was too high falls to: as many as the peer works on, and this part of them, or so many, that
/// wait.
const AIM: f64 = 0.3;
const AIM_QUEUE: f64 = 3.0;
/// A window lasts at least so long, and for so many answers, or as many as the limit if that is more.
const WINDOW: Duration = Duration::from_millis(50);
const ANSWERS: usize = 32;
/// No window needs or keeps more answers than this.
const MOST_ANSWERS: usize = 256;
/// Fewer answers of one kind have no middle to speak of.
const OF_A_KIND: usize = 5;
/// What is usual is doubted this long after the start, when the peer may have been busy already, and this long after
/// it was last seen.
const FIRST_DOUBT: Duration = Duration::from_secs(5);
const DOUBT_AFTER: Duration = Duration::from_secs(30);
/// Answers this little slower than usual confirm it.
const CONFIRMS: f64 = 1.1;

/// Calls given up after their time are an overload if they are at least one of so many among the last ends, of
/// which `u64::BITS` are kept.
const GIVEN_UP: u32 = 4;

/// What the limit stays between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// At least 1.
    pub(super) min: usize,
    /// At least `min`; where they are equal, the limit never moves.
    pub(super) max: usize,
}

/// How a call ended, as far as the limit learns from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It was answered, with what it asked for.
    Answered,
    /// The peer says or shows that it has too much to do.
    Overloaded,
    /// It was not answered within the time that it was given.
    TimedOut,
    /// None of these: it was refused, broke off, or was given up early.
    Other,
}

/// The state machine. Times are since any moment, and never go back.
#[derive(Debug)]
pub(super) struct Limit {
    bounds: Bounds,
    limit: usize,
    flights: Flights,
    /// The last ends, the latest in the lowest bit: whether each was a time-out.
    timed_out: u64,
    /// How many ends those are.
    ends: u32,
    /// Calls that began before say nothing of the limit as it is.
    changed: Duration,
    /// Calls that began before belong to an overload that is known.
    overloaded: Duration,
    doubling: bool,
    window: Window,
    usual: Vec<(Call, Duration)>,
    /// When what is usual is doubted.
    doubt: Duration,
    /// The limit to return to, while it is halved to find out what is usual.
    probing: Option<usize>,
}

#[derive(Debug, Default)]
struct Window {
    opened: Duration,
    /// The most that was under way.
    peak: usize,
    /// The most that was, without calls that are stuck.
    moving: usize,
    took: Vec<(Call, Duration)>,
}

/// How long calls of one kind took in a window, and how many there were.
struct Kind {
    call: Call,
    took: Duration,
    calls: u32,
}

impl Limit {
    /// Begins with the fewest: what is usual is best seen where little is under way.
    pub(super) fn new(bounds: Bounds) -> Self {
        let min = bounds.min.max(1);
        let bounds = Bounds { min, max: bounds.max.max(min) };
        Self {
            bounds,
            limit: bounds.min,
            flights: Flights::default(),
            timed_out: 0,
            ends: 0,
            changed: Duration::ZERO,
            overloaded: Duration::ZERO,
            doubling: true,
            window: Window::default(),
            usual: Vec::new(),
            doubt: FIRST_DOUBT,
            probing: None,
        }
    }

    /// Calls that may be under way, as far as was learnt.
    #[cfg(test)]
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Calls that may be under way now, those that are stuck included.
    pub(super) fn allowed(&mut self, now: Duration) -> usize {
        self.flights.look(now);
        let beside_stuck = self.flights.stuck() + self.bounds.min;
        self.limit.max(beside_stuck.min(self.bounds.max))
    }

    /// When more may be, if no call begins or ends before.
    pub(super) fn next_stuck(&self) -> Option<Duration> {
        self.flights.next_stuck()
    }

    /// Calls that are.
    pub(super) fn in_flight(&self) -> usize {
        self.flights.moving() + self.flights.stuck()
    }

    /// A call begins; whether it may, the caller has seen to.
    pub(super) fn begin(&mut self, call: Call, now: Duration) -> Flight {
        let usual = self.usual.iter().find(|(of, _)| *of == call).map(|(_, usual)| *usual);
        // Of a kind that is not known yet, as long as the slowest that is.
        let usual = usual.or_else(|| self.usual.iter().map(|(_, usual)| *usual).max());
        let flight = self.flights.begin(call, usual, now);
        self.window.peak = self.window.peak.max(self.in_flight());
        self.window.moving = self.window.moving.max(self.flights.moving());
        flight
    }

    /// A call ends.
    pub(super) fn end(&mut self, flight: &Flight, end: End, now: Duration) {
        self.flights.look(now);
        self.timed_out = self.timed_out << 1 | u64::from(end == End::TimedOut);
        self.ends = (self.ends + 1).min(u64::BITS);
        match end {
            End::Overloaded if flight.begun >= self.overloaded => self.halve(now),
            End::TimedOut if flight.begun >= self.overloaded && self.others_are_slow() => self.halve(now),
            End::Answered if flight.begun >= self.changed => {
                if self.window.took.len() < MOST_ANSWERS {
                    self.window.took.push((flight.call, now.saturating_sub(flight.begun)));
                }
                let enough = self.limit.clamp(ANSWERS, MOST_ANSWERS);
                if self.window.took.len() >= enough && now.saturating_sub(self.window.opened) >= WINDOW {
                    self.look(now);
                }
            }
            End::Answered | End::Overloaded | End::TimedOut | End::Other => {}
        }
        self.flights.end(flight);
    }

    /// Whether a call that was given up after its time is not the only one that waits.
    fn others_are_slow(&mut self) -> bool {
        let kinds = self.window.kinds();
        self.timed_out.count_ones() * GIVEN_UP >= self.ends || self.slower(&kinds) > SHRINK_ABOVE
    }

    /// The peer has too much to do.
    fn halve(&mut self, now: Duration) {
        self.overloaded = now;
        self.probing = None;
        self.doubling = false;
        let used = self.limit.min(self.window.peak.max(self.in_flight()));
        self.change(used / 2, now);
    }

    /// A window has closed.
    fn look(&mut self, now: Duration) {
        let kinds = self.window.kinds();
        let (used, light) = (self.window.peak >= self.limit, self.window.moving <= self.bounds.min);
        if kinds.is_empty() {
            self.open(now);
            return;
        }
        if let Some(before) = self.probing.take() {
            self.learn(&kinds, true);
            self.doubt = now + DOUBT_AFTER;
            self.change(before, now);
            return;
        }
        self.learn(&kinds, light);
        let slower = self.slower(&kinds);
        if slower <= CONFIRMS {
            self.doubt = now + DOUBT_AFTER;
        }
        let limit = self.limit as f64;
        // By Little's law: as long as they all take, as many are there; as long as they usually take, so many of
        // them are worked on.
        let worked_on = limit / slower;
        let queue = limit - worked_on;
        if !used {
            // A limit that is not in use is neither too high nor too low.
            self.open(now);
        } else if slower > SHRINK_ABOVE && queue > SHRINK_QUEUE {
            self.doubling = false;
            let aim = worked_on + (worked_on * AIM).max(AIM_QUEUE);
            self.change((aim as usize).clamp(self.limit / 2, self.limit - 1), now);
        } else if slower > CONFIRMS && now >= self.doubt && self.limit > self.bounds.min {
            self.probing = Some(self.limit);
            self.change(self.limit / 2, now);
        } else if slower <= GROW_BELOW || queue <= GROW_QUEUE {
            let more = if self.doubling { self.limit } else { limit.sqrt() as usize };
            self.change(self.limit + more, now);
        } else {
            self.doubling = false;
            self.open(now);
        }
    }

    /// Faster answers are what is usual, by a quarter of the way, so that one lucky window is not; slower ones only
    /// where `as_it_is` says that nothing waits for our own calls.
    fn learn(&mut self, kinds: &[Kind], as_it_is: bool) {
        // A kind that is seen for the first time is as much slower as those that are known.
        let slower = if as_it_is { 1.0 } else { self.slower(kinds).max(1.0) };
        for kind in kinds {
            match self.usual.iter_mut().find(|(call, _)| *call == kind.call) {
                None => self.usual.push((kind.call, kind.took.div_f64(slower))),
                Some((_, usual)) if as_it_is => *usual = kind.took,
                Some((_, usual)) if kind.took < *usual => *usual = (*usual * 3 + kind.took) / 4,
                Some(_) => {}
            }
        }
    }

    /// How many times as long as usual the calls of known kinds took together; once, where none is known.
    fn slower(&self, kinds: &[Kind]) -> f64 {
        let (mut took, mut usually) = (0.0, 0.0);
        for kind in kinds {
            if let Some((_, usual)) = self.usual.iter().find(|(call, _)| *call == kind.call) {
                took += kind.took.as_secs_f64() * f64::from(kind.calls);
                usually += usual.as_secs_f64() * f64::from(kind.calls);
            }
        }
        // What takes no time cannot take a multiple of it.
        if usually > 0.0 && took > 0.0 { took / usually } else { 1.0 }
    }

    fn change(&mut self, limit: usize, now: Duration) {
        let limit = limit.clamp(self.bounds.min, self.bounds.max);
        if limit != self.limit {
            self.limit = limit;
            self.changed = now;
        }
        self.open(now);
    }

    fn open(&mut self, now: Duration) {
        self.window.opened = now;
        self.window.took.clear();
        // Those that a lower limit leaves over are not of this window.
        self.window.peak = self.in_flight().min(self.limit);
        self.window.moving = self.flights.moving().min(self.limit);
    }
}

impl Window {
    fn kinds(&mut self) -> Vec<Kind> {
        self.took.sort_unstable();
        let kinds = self.took.chunk_by(|(one, _), (other, _)| one == other);
        kinds.filter(|kind| kind.len() >= OF_A_KIND).filter_map(Kind::of).collect()
    }
}

impl Kind {
    /// The mean of the middle half. A median would do for one application larger than another, but not for a peer
    /// that works in step, where one half waits and the other does not.
    fn of(sorted: &[(Call, Duration)]) -> Option<Self> {
        let quarter = sorted.len() / 4;
        let middle = sorted.get(quarter..sorted.len() - quarter)?;
        let sum: Duration = middle.iter().map(|(_, took)| *took).sum();
        let (call, _) = *middle.first()?;
        let took = sum / u32::try_from(middle.len()).ok()?;
        Some(Self { call, took, calls: u32::try_from(sorted.len()).ok()? })
    }
}

#[cfg(test)]
mod tests;
