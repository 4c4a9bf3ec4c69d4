//! What is known of the applications and entities that the reports of a group are about, and what each report changes of it: here
//! everything about a report is decided, and nothing is asked of the database.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::application_state::{ApplicationKey, ApplicationState};
use super::entity_state::EntityState;
use super::keys::NewKeys;
use super::newest::Newest;
use super::said::Said;
use super::transition::{NewTransition, Reported, TransitionRef};
use crate::fleet::{BLAMED_FOR, Index};
use crate::report::{Delivery, Millis, Operation, Outcome, Report, ResourceName};
use crate::texts::NamedTexts;

/// What is known of a group. Places in its lists are given by it alone, and nothing is taken from a list.
#[derive(Default)]
pub(super) struct GroupState<'a> {
    pub(super) applications: Vec<ApplicationState<'a>>,
    pub(super) entities: Vec<EntityState<'a>>,
    by_key: HashMap<ApplicationKey<'a>, usize>,
    by_name: HashMap<(usize, Option<&'a ResourceName>), usize>,
    /// Resources of the applications of a runtime that have one name, as far as they are known: whoever reports the object alone, and
    /// not whose it is, means the one that was reported of last, and that is one of these, since no entity's time goes back.
    namesakes: HashMap<(i64, &'a ResourceName), Vec<usize>>,
    /// What the transitions said that reports of objects alone may follow.
    said: HashMap<i64, Said<'a>>,
    /// Transitions that are new.
    pub(super) transitions: Vec<NewTransition<'a>>,
    /// Transitions that are kept and were reported again.
    pub(super) again: BTreeMap<i64, Reported>,
    /// Of each deployment the report that says how far it is.
    pub(super) deployments: BTreeMap<(usize, Millis), &'a Report>,
    /// Of each that has ended the newest report that shows what it brought.
    pub(super) shown: BTreeMap<(usize, Millis), &'a Report>,
    /// Of each sync the report that says which commits it brought.
    pub(super) changes: BTreeMap<(usize, Millis), &'a Report>,
    pub(super) texts: NamedTexts<'a>,
}

/// What a report is to the state of its entity.
enum Recency<'a> {
    /// It is the state from now on.
    Newest,
    /// The object of the state is newer, as this says; what the report says beside its object is the newest that is known.
    Beside(Box<Said<'a>>),
    /// It is of a time that is over.
    Late,
}

impl<'a> GroupState<'a> {
    /// An application that was read, or that there is from now on.
    pub(super) fn add_application(&mut self, application: ApplicationState<'a>) -> usize {
        let place = self.applications.len();
        self.by_key.insert(application.key.clone(), place);
        self.applications.push(application);
        place
    }

    pub(super) fn application(&self, key: &ApplicationKey<'a>) -> Option<usize> {
        self.by_key.get(key).copied()
    }

    /// An entity that was read, or that there is from now on.
    pub(super) fn add_entity(&mut self, entity: EntityState<'a>) -> usize {
        let place = self.entities.len();
        let ApplicationState { key: (runtime, _, name), entities, .. } =
            &mut self.applications[entity.application];
        entities.push(place);
        if let Some(resource) = entity.resource.filter(|_| !name.is_empty())
            && let Some(namesakes) = self.namesakes.get_mut(&(*runtime, resource))
        {
            namesakes.push(place);
        }
        self.by_name.insert((entity.application, entity.resource), place);
        self.entities.push(entity);
        place
    }

    pub(super) fn entity(&self, application: usize, resource: Option<&'a ResourceName>) -> Option<usize> {
        self.by_name.get(&(application, resource)).copied()
    }

    /// Somebody reports a resource by its object alone: asked before any entity is read.
    pub(super) fn ask_for_namesakes(&mut self, runtime: i64, resource: &'a ResourceName) {
        self.namesakes.entry((runtime, resource)).or_default();
    }

    /// Of which kept transitions it must be known what they said, for these deliveries.
    pub(super) fn followed(&self, deliveries: &[&'a Delivery]) -> Vec<i64> {
        let asked = |entity: &&EntityState<'a>| {
            let (runtime, ..) = self.applications[entity.application].key;
            entity.resource.is_some_and(|resource| self.namesakes.contains_key(&(runtime, resource)))
        };
        let both = |entity: &EntityState<'a>| [entity.current, entity.latest];
        let behind = deliveries.iter().copied().filter_map(|delivery| {
            let resource = delivery.report.entity.resource.as_ref()?;
            let place = self.entity(self.application(&key(delivery))?, Some(resource))?;
            let entity = &self.entities[place];
            entity.current.filter(|_| entity.newest.is_ahead_of(&delivery.report))
        });
        let all = self.entities.iter().filter(asked).flat_map(both).chain(behind.map(Some));
        let kept = all.filter_map(|which| match which {
            Some(TransitionRef::Kept(id)) => Some(id),
            _ => None,
        });
        let mut kept: Vec<i64> = kept.collect();
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    pub(super) fn add_said(&mut self, transition: i64, said: Said<'a>) {
        self.said.insert(transition, said);
    }

    /// Takes a delivery, as what is known says then.
    pub(super) fn take(&mut self, delivery: &'a Delivery, keys: &mut NewKeys) -> Outcome {
        if !keys.has(delivery) {
            return self.repeat(delivery);
        }
        let report = &delivery.report;
        // One name may be that of resources of several clusters: where it is told whose it is, nobody is asked for.
        let nameless = object_alone(report).filter(|_| report.entity.app_name.is_empty());
        let namesake = nameless.and_then(|resource| self.namesake(delivery.runtime, resource));
        let application = match namesake {
            Some(entity) => self.entities[entity].application,
            None => {
                let key = key(delivery);
                self.application(&key).unwrap_or_else(|| {
                    self.add_application(ApplicationState::new(key, None, 0, Index::new()))
                })
            }
        };
        let is_admitted = |epoch| self.applications[application].admits(epoch);
        if !delivery.epoch.is_none_or(is_admitted) {
            return Outcome::Outdated;
        }
        keys.keep(delivery);
        let resource = report.entity.resource.as_ref();
        let entity = namesake.or_else(|| self.entity(application, resource)).unwrap_or_else(|| {
            self.add_entity(EntityState { application, resource, ..EntityState::default() })
        });
        self.follow(delivery, application, entity);
        Outcome::Kept
    }

    /// What was kept before changes nothing, but who may still report of its application.
    fn repeat(&mut self, delivery: &'a Delivery) -> Outcome {
        let Some(epoch) = delivery.epoch else { return Outcome::Repeated };
        let application = self.application(&key(delivery));
        let is_admitted = application.is_none_or(|place| self.applications[place].admits(epoch));
        if is_admitted { Outcome::Repeated } else { Outcome::Outdated }
    }

    /// The resource of an application that a report of an object alone is about, where one has it.
    fn namesake(&self, runtime: i64, resource: &'a ResourceName) -> Option<usize> {
        let all = self.namesakes.get(&(runtime, resource))?;
        // Of several of one time the one that has been there for longest.
        all.iter().copied().max_by_key(|place| {
            let entity = &self.entities[*place];
            (entity.newest.at, Reverse((entity.id.is_none(), entity.id, *place)))
        })
    }

    /// An entity follows a report of it.
    fn follow(&mut self, delivery: &'a Delivery, application: usize, place: usize) {
        let report = &delivery.report;
        let is_application = report.entity.resource.is_none();
        let entity = &self.entities[place];
        let recency = if entity.current.is_none() || entity.newest.gives_way_to(delivery) {
            Recency::Newest
        } else {
            self.shown_sooner(delivery, place).map_or(Recency::Late, |known| Recency::Beside(Box::new(known)))
        };
        let (is_newest, is_late) = (matches!(recency, Recency::Newest), matches!(recency, Recency::Late));
        // Times are of several clocks, and of reports that waited: what is newer began no earlier than what it follows, and what is
        // older before that, so that whoever reads states by their times comes to the same.
        let since = match entity.current {
            None => report.at,
            Some(_) if is_late => report.at.min(entity.since.saturating_sub(1)),
            Some(_) => report.at.max(entity.newest.at),
        };
        if is_application {
            self.application_follows(report, since, application, is_newest);
        }
        let entity = &self.entities[place];
        let followed = entity.current.filter(|_| !report.has_source).map(|current| self.said_in(current));
        // The object is all that it says: it tells nothing where that is the state.
        let state =
            entity.current.filter(|_| followed.as_ref().is_some_and(|said| said.has_object_of(report)));
        let content = report.content().to_vec();
        // What came late is of a time that is over: what is so now began now, also if it is the same.
        let is_in_time = |latest: &TransitionRef| is_late || entity.current == Some(*latest);
        let said_last = entity.latest.filter(|latest| content == entity.content && is_in_time(latest));
        let transition = match state.or(said_last) {
            Some(known) => {
                self.report_again(known, report.at);
                known
            }
            None => self.add_transition(report, place, since, (followed, recency)),
        };
        let entity = &mut self.entities[place];
        entity.is_reported = true;
        if state.is_none() {
            (entity.latest, entity.content) = (Some(transition), content);
        }
        // Nothing is held of what has ended, and what has no key moves none. Nor does a report of another reporter than that of
        // the application, which is the one that compares.
        let has_ended = is_application && report.deleted;
        let key = delivery.key.get(..16).filter(|_| delivery.keyed && !has_ended && report.has_source);
        entity.held_key = key.or(entity.held_key);
        if is_newest {
            entity.owner = Some(&*report.owner).filter(|owner| !owner.is_empty()).or(entity.owner);
        }
        if !is_late && entity.current != Some(transition) {
            entity.current = Some(transition);
            entity.since = entity.latest_since;
            let held = std::mem::take(&mut entity.newest);
            let era = delivery.era.max(held.era);
            let newest = if is_newest { Newest::of(report) } else { held };
            entity.newest = Newest { at: since, era, ..newest };
            entity.drifts.follow(report, since);
        } else if entity.current == Some(transition) {
            // What came last moves the time of the state where it is the state.
            entity.newest.at = entity.newest.at.max(report.at);
        }
    }

    /// What the state of a resource says whose object whoever watches resources sent, in a later version than that of a report: Argo CD
    /// reads objects later than they are watched, and none that changed in its status alone. What the report says beside its object is no
    /// less the newest that is known, as whoever reports of applications sends one report of a resource after the other.
    fn shown_sooner(&self, delivery: &'a Delivery, place: usize) -> Option<Said<'a>> {
        let (report, entity) = (&delivery.report, &self.entities[place]);
        let is_told = delivery.keyed
            && report.has_source
            && report.entity.resource.is_some()
            && report.pods.is_none()
            && !report.deleted;
        let current = entity.current.filter(|_| is_told && entity.newest.is_ahead_of(report))?;
        Some(self.said_in(current)).filter(|said| said.object_is_json && !said.deleted)
    }

    fn application_follows(&mut self, report: &'a Report, since: Millis, place: usize, is_newest: bool) {
        let application = &mut self.applications[place];
        // The end of an application, or another life of it, takes away what was held of it for whoever compares. What came of
        // it before its own first report is of this life.
        if report.deleted || application.index.is_of_another(report) {
            application.forgets_held = true;
            for entity in &application.entities {
                self.entities[*entity].held_key = None;
            }
        }
        application.follow(report, since, is_newest);
        // Also of what came late: an operation that ended is a deployment, whatever was reported since. What only tried deployed
        // nothing.
        let Some(operation) = report.operation.as_ref().filter(|one| !one.is_dry_run) else { return };
        let sync = (place, operation.started_at);
        let said = self.deployments.entry(sync).or_insert(report);
        if said.operation.as_ref().is_none_or(|said| said.finished_at.is_none()) {
            *said = report;
        }
        if is_newest && shows_images(report, operation) {
            self.shown.insert(sync, report);
        }
        if !report.changes.is_empty() {
            self.changes.insert(sync, report);
        }
    }

    fn said_in(&self, transition: TransitionRef) -> Said<'a> {
        match transition {
            TransitionRef::New(place) => self.transitions[place].said.clone(),
            TransitionRef::Kept(id) => self.said.get(&id).cloned().unwrap_or_default(),
        }
    }

    fn report_again(&mut self, transition: TransitionRef, at: Millis) {
        match transition {
            TransitionRef::New(place) => self.transitions[place].reports.again(at),
            TransitionRef::Kept(id) => {
                let more = self.again.entry(id).or_insert(Reported { times: 0, last_at: at });
                more.again(at);
            }
        }
    }

    fn add_transition(
        &mut self,
        report: &'a Report,
        entity: usize,
        since: Millis,
        (followed, recency): (Option<Said<'a>>, Recency<'a>),
    ) -> TransitionRef {
        let (knows_more, is_beside) = (followed.is_some(), matches!(recency, Recency::Beside(_)));
        let said = match recency {
            Recency::Beside(known) => Said::beside(report, *known),
            Recency::Newest | Recency::Late => Said::by(report, followed),
        };
        for (number, (own, digest)) in report.texts().into_iter().zip(&said.texts).enumerate() {
            let is_own = if is_beside { number > 0 } else { number == 0 || !knows_more };
            match (own, digest) {
                (Some(text), _) if is_own => self.texts.name(text),
                (_, Some(known)) => self.texts.name_again(known),
                _ => {}
            }
        }
        let place = self.transitions.len();
        let mut added = NewTransition::by(report, entity, since, said);
        if is_beside {
            added.version = self.entities[entity].newest.version;
        }
        self.transitions.push(added);
        self.entities[entity].latest_since = since;
        TransitionRef::New(place)
    }
}

/// The resource that a report knows by its object alone.
pub(super) fn object_alone(report: &Report) -> Option<&ResourceName> {
    report.entity.resource.as_ref().filter(|_| !report.has_source)
}

/// Whether the images that a report tells are those that an operation brought: when that ends, what it replaced runs still. What is
/// otherwise than in Git long after it was brought by somebody else.
fn shows_images(report: &Report, operation: &Operation) -> bool {
    let is_in_sync = report.sync.as_deref() == Some("Synced");
    let is_of_it = |end: Millis| is_in_sync || report.at <= end.saturating_add(BLAMED_FOR);
    !report.deleted && report.images != "[]" && operation.finished_at.is_some_and(is_of_it)
}

/// The application that a delivery names.
pub(super) fn key(delivery: &Delivery) -> ApplicationKey<'_> {
    let entity = &delivery.report.entity;
    (delivery.runtime, (&*entity.app_namespace).into(), (&*entity.app_name).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::samples::{delivery, report};
    use crate::report::Text;

    fn taken<'a>(known: &mut GroupState<'a>, deliveries: &'a [Delivery]) -> Vec<Outcome> {
        let mut keys = NewKeys::of(deliveries);
        deliveries.iter().map(|delivery| known.take(delivery, &mut keys)).collect()
    }

    /// A report that knows the object alone, and not whose it is.
    fn alone(name: &str, version: i64, at: Millis) -> Report {
        let mut alone = report("", Some(name));
        alone.entity.app_namespace.clear();
        (alone.has_source, alone.sync, alone.health) = (false, None, None);
        (alone.git, alone.version, alone.at) = (None, Some(version), at);
        alone.object = Some(Text::new(format!("{{\"version\":{version}}}")));
        alone
    }

    /// A Deployment of an application that was reported of then.
    fn kept<'a>(
        known: &mut GroupState<'a>,
        application: usize,
        resource: &'a ResourceName,
        id: i64,
        at: Millis,
    ) -> usize {
        let newest = Newest { uid: "u".into(), version: Some(1), created_at: None, at, era: 0 };
        let (current, latest) = (Some(TransitionRef::Kept(id)), Some(TransitionRef::Kept(id)));
        let resource = Some(resource);
        known.add_entity(EntityState {
            id: Some(id),
            application,
            resource,
            current,
            latest,
            newest,
            ..EntityState::default()
        })
    }

    #[test]
    fn what_differs_in_its_time_alone_is_one_transition_and_a_repeat_is_none() {
        let at = |number, at| {
            let mut one = report("shop", None);
            one.at = at;
            delivery(number, one)
        };
        let mut other = report("shop", None);
        (other.at, other.git) = (5, None);
        let all = [at(1, 1), at(2, 3), at(2, 4), at(3, 2), delivery(4, other)];
        let mut known = GroupState::default();
        let expected = [Outcome::Kept, Outcome::Kept, Outcome::Repeated, Outcome::Kept, Outcome::Kept];
        assert_eq!(taken(&mut known, &all), expected);
        let reports: Vec<_> = known.transitions.iter().map(|one| (one.at, one.reports)).collect();
        let three = Reported { times: 3, last_at: 3 };
        assert_eq!(reports, [(1, three), (5, Reported::once(5))]);
        let [entity] = &known.entities[..] else { panic!("one entity") };
        assert_eq!((entity.current, entity.newest.at), (Some(TransitionRef::New(1)), 5));
    }

    #[test]
    fn what_is_newer_began_no_earlier_and_what_is_older_did_before_it() {
        let at = |number, version, at, sync: &str| {
            let mut one = report("shop", None);
            (one.version, one.at, one.sync) = (Some(version), at, Some(sync.to_owned()));
            one.object = Some(Text::new(format!("{{\"version\":{version}}}")));
            delivery(number, one)
        };
        let all = [
            at(1, 6, 102, "OutOfSync"),
            // Of a clock that is behind, or of a report that was long in the making.
            at(2, 7, 101, "Synced"),
            // Late: of what is over.
            at(3, 5, 200, "OutOfSync"),
            at(4, 4, 90, "OutOfSync"),
            at(5, 8, 100, "OutOfSync"),
            at(6, 9, 103, "OutOfSync"),
        ];
        let mut known = GroupState::default();
        taken(&mut known, &all);
        let times: Vec<_> = known.transitions.iter().map(|one| (one.version.unwrap(), one.at)).collect();
        assert_eq!(times, [(6, 102), (7, 102), (5, 101), (4, 90), (8, 102), (9, 103)]);
        let told: Vec<_> = known.transitions.iter().map(|one| one.reports.last_at).collect();
        assert_eq!(told, [102, 101, 200, 90, 100, 103], "as each report says it");
        let [entity] = &known.entities[..] else { panic!("one entity") };
        assert_eq!((entity.since, entity.newest.at, entity.newest.version), (103, 103, Some(9)));
        let drifts: Vec<_> = entity.drifts.changed().map(|one| (one.onset, one.ended)).collect();
        assert_eq!(drifts, [(102, Some(102)), (102, None)]);
    }

    #[test]
    fn what_came_late_is_not_the_state_when_that_is_told_again() {
        let told = |all: &[Delivery]| {
            let mut known = GroupState::default();
            taken(&mut known, all);
            let [entity] = &known.entities[..] else { panic!("one entity") };
            let Some(TransitionRef::New(current)) = entity.current else { panic!("it is of this group") };
            let times: Vec<_> = known.transitions.iter().map(|one| (one.at, one.reports.times)).collect();
            (times, current, entity.since)
        };
        // By two reporters, of which one lags behind.
        let of = |number, version, at| delivery(number, alone("web", version, at));
        let all = [of(1, 6, 10), of(2, 5, 11), of(3, 6, 12)];
        assert_eq!(told(&all), (vec![(10, 2), (9, 1)], 0, 10));
        // Of one version: the same is said of an earlier time, and then of now.
        let at = |number, at, health: &str| {
            let mut one = report("shop", None);
            (one.at, one.version, one.health) = (at, Some(5), Some(health.to_owned()));
            one.details = Some(Text::new(format!("{{\"health\":\"{health}\"}}")));
            // Of one reporter what comes later is later; of several nobody knows.
            Delivery { keyed: false, ..delivery(number, one) }
        };
        let all = [at(1, 10, "Progressing"), at(2, 9, "Healthy"), at(3, 12, "Healthy"), at(4, 13, "Healthy")];
        assert_eq!(told(&all), (vec![(10, 1), (9, 1), (12, 2)], 2, 12));
    }

    #[test]
    fn an_older_right_is_refused_and_its_key_stays_free() {
        let with = |number, epoch| Delivery { epoch: Some(epoch), ..delivery(number, report("shop", None)) };
        let all = [with(1, 7), with(2, 6), with(2, 7), with(1, 6), with(1, 8), with(3, 7)];
        let mut known = GroupState::default();
        let expected = [
            Outcome::Kept,
            Outcome::Outdated,
            Outcome::Kept,
            Outcome::Outdated,
            Outcome::Repeated,
            Outcome::Outdated,
        ];
        assert_eq!(taken(&mut known, &all), expected);
        assert_eq!((known.applications[0].epoch, known.applications[0].has_new_epoch), (8, true));
    }

    #[test]
    fn the_end_of_an_application_takes_what_was_held_of_all_of_it() {
        let mut end = report("shop", None);
        (end.deleted, end.at) = (true, 2);
        let all = [
            delivery(1, report("shop", None)),
            delivery(2, report("shop", Some("web"))),
            delivery(3, end),
            delivery(4, report("shop", Some("db"))),
        ];
        let mut known = GroupState::default();
        taken(&mut known, &all);
        let held: Vec<_> = known.entities.iter().map(|entity| entity.held_key).collect();
        assert_eq!(held, [None, None, Some(&[4; 16][..])]);
        assert!(known.applications[0].forgets_held);
    }

    #[test]
    fn a_deployment_is_as_it_was_told_until_it_has_ended() {
        let told = |number, finished_at, phase: &str| {
            let mut one = report("shop", None);
            let is_dry_run = phase == "Tried";
            let (started_at, phase) = (if is_dry_run { 2 } else { 1 }, phase.to_owned());
            let told = Operation { started_at, finished_at, phase, is_dry_run, ..Operation::default() };
            one.operation = Some(told);
            delivery(number, one)
        };
        let all = [
            told(1, None, "Running"),
            told(2, Some(5), "Failed"),
            told(3, None, "Running"),
            told(4, Some(9), "Odd"),
            told(5, Some(9), "Tried"),
        ];
        let mut known = GroupState::default();
        taken(&mut known, &all);
        let phases: Vec<_> =
            known.deployments.values().map(|one| &*one.operation.as_ref().unwrap().phase).collect();
        assert_eq!(phases, ["Failed"]);
    }

    #[test]
    fn what_a_deployment_brought_is_what_its_application_comes_to() {
        let hour = BLAMED_FOR;
        let said = |number: u8, at, (image, sync): (&str, &str), finished_at| {
            let mut one = report("shop", None);
            (one.at, one.version, one.sync) = (at, Some(number.into()), Some(sync.to_owned()));
            one.images = if image.is_empty() { "[]".to_owned() } else { format!("[\"{image}\"]") };
            one.object = Some(Text::new(format!("{{\"version\":{number}}}")));
            let (started_at, phase) = (1, "Succeeded".to_owned());
            one.operation = Some(Operation { started_at, finished_at, phase, ..Operation::default() });
            delivery(number, one)
        };
        let end = Some(2);
        let mut gone = said(9, 2 * hour + 4, ("web:9", "Synced"), end);
        gone.report.deleted = true;
        let all = [
            (said(1, 1, ("web:1", "OutOfSync"), None), None),
            (said(2, 2, ("web:1", "OutOfSync"), end), Some("web:1")),
            (said(4, 4, ("web:2", "OutOfSync"), end), Some("web:2")),
            (said(3, 9, ("web:1", "Synced"), end), Some("web:2")),
            (said(5, hour + 3, ("web:3", "OutOfSync"), end), Some("web:2")),
            (said(6, hour + 4, ("web:4", "Synced"), end), Some("web:4")),
            (said(7, 2 * hour, ("", "Synced"), end), Some("web:4")),
            (gone, Some("web:4")),
        ];
        let (deliveries, expected): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        for (count, expected) in (1..).zip(expected) {
            let mut known = GroupState::default();
            taken(&mut known, &deliveries[..count]);
            let shown: Vec<_> = known.shown.values().map(|one| &*one.images).collect();
            let expected: Vec<_> = expected.into_iter().map(|image| format!("[\"{image}\"]")).collect();
            assert_eq!(shown, expected, "of the first {count}");
        }
    }

    #[test]
    fn an_object_alone_is_of_the_namesake_that_was_reported_of_last() {
        let asked = delivery(1, alone("web", 2, 10));
        let resource = asked.report.entity.resource.as_ref().unwrap();
        let mut known = GroupState::default();
        known.ask_for_namesakes(1, resource);
        let names = ["", "cart", "shop"].map(|name| {
            let state = ApplicationState::new((1, "argocd".into(), name.into()), Some(1), 0, Index::new());
            known.add_application(state)
        });
        // What belongs to no application is nobody's, however new.
        kept(&mut known, names[0], resource, 3, 100);
        let last = kept(&mut known, names[1], resource, 4, 7);
        let of_one_time = kept(&mut known, names[2], resource, 5, 7);
        assert_eq!(known.followed(&[]), [3, 4, 5]);
        known.add_said(4, Said { sync: Some("OutOfSync".into()), ..Said::default() });
        let deliveries = [asked.clone()];
        assert_eq!(taken(&mut known, &deliveries), [Outcome::Kept]);
        assert_eq!(known.transitions[0].entity, last);
        assert_eq!(known.transitions[0].said.sync.as_deref(), Some("OutOfSync"), "what is known of it stays");
        // A newer version of an earlier time: it is no less the one that was reported of last.
        let deliveries = [delivery(2, alone("web", 3, 5))];
        taken(&mut known, &deliveries);
        assert_eq!(known.entities[last].newest.at, 10);
        assert_eq!((known.namesake(1, resource), known.entities[of_one_time].newest.at), (Some(last), 7));
    }
}
