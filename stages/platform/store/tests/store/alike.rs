//! Reports that are kept together leave what they leave when each is kept alone: whatever they say, however often they are sent,
//! and in whichever order.

use fastrand::Rng;
use stages_platform_store::{
    Commit, Delivery, Listing, Operation, Outcome, Pods, Report, ResourceName, SourceChange, Text,
};

use crate::rows;
use crate::support::{Opened, digest, report};

/// Groups that follow each other, of so many reports at most: more than one statement has rows for.
const GROUPS: usize = 24;
const REPORTS: usize = 150;

/// Makes reports of few applications and few resources, so that most of them are of what others in their group are of too.
pub(crate) struct Dice {
    random: Rng,
    runtimes: [i64; 2],
    keys: u64,
}

impl Dice {
    pub(crate) const fn of(random: Rng, runtimes: [i64; 2]) -> Self {
        Self { random, runtimes, keys: 0 }
    }

    fn is(&mut self, one_in: u32) -> bool {
        self.random.u32(0..one_in) == 0
    }

    fn one_of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.random.usize(0..texts.len())]
    }

    pub(crate) fn delivery(&mut self) -> Delivery {
        // A report that is sent again has the key of an earlier one, and says the same or not.
        self.keys += 1;
        let key = if self.is(6) { self.random.u64(0..self.keys) } else { self.keys };
        let epoch = self.is(4).then(|| self.random.i64(0..4));
        let era = i64::from(self.is(9));
        let runtime = self.runtimes[usize::from(self.is(5))];
        let (key, keyed, report) = (digest(&key.to_string()), !self.is(8), self.report());
        Delivery { runtime, key, keyed, epoch, era, report }
    }

    fn report(&mut self) -> Report {
        let version = self.random.i64(1..8);
        // Now and then so late that versions went back.
        let at = self.random.i64(1..60) * if self.is(10) { 100_000 } else { 1 };
        let mut report = report(self.one_of(&["u", "u", "u", "v", ""]), version, at);
        report.version = (!self.is(10)).then_some(version);
        report.created_at = self.is(3).then(|| self.random.i64(1..4));
        report.timed = !self.is(8);
        report.deleted = self.is(10);
        report.entity.app_name =
            self.one_of(&["shop", "shop", "cart", "pay\0ments", "pay\u{fffd}ments"]).to_owned();
        report.sync = self.said(&["Synced", "OutOfSync", "OutOfSync", "Unknown", ""]);
        report.health = self.said(&["Healthy", "Degraded", "Progressing", ""]);
        report.health_message = self.said(&["back-off", "waits"]);
        report.revision = self.said(&["abc", "def"]);
        report.object_is_json = self.is(4);
        report.git = self.said(&["kind: Deployment\n", "kind: Service\n"]).map(Text::new);
        report.desired = self.said(&["{}"]).map(Text::new);
        report.details = self.said(&["{\"a\":1}", "{\"a\":2}"]).map(Text::new);
        if self.is(3) {
            self.of_an_application(&mut report);
        } else {
            self.of_a_resource(&mut report);
        }
        report
    }

    fn said(&mut self, texts: &[&str]) -> Option<String> {
        (!self.is(5)).then(|| self.one_of(texts).to_owned())
    }

    fn of_an_application(&mut self, report: &mut Report) {
        let listed = |name: &&str| Listing::new("apps", "Deployment", "shop", name);
        report.listed = ["web", "db"].iter().take(self.random.usize(0..3)).map(listed).collect();
        report.images = self.one_of(&["[]", r#"["web:1"]"#, r#"["web:2"]"#]).to_owned();
        report.placement.labels = vec![("team".to_owned(), self.one_of(&["shop", "ops"]).to_owned())];
        let [author, message] = [["Ada", ""], ["fix", ""]].map(|texts| self.one_of(&texts).to_owned());
        report.commit = Commit { author, message, date: String::new() };
        report.operation = (!self.is(3)).then(|| Operation {
            started_at: self.random.i64(1..6),
            finished_at: (!self.is(3)).then(|| self.random.i64(6..9)),
            phase: self.one_of(&["Running", "Succeeded", "Failed"]).to_owned(),
            revision: self.one_of(&["abc", "def"]).to_owned(),
            initiated_by: self.one_of(&["", "ada"]).to_owned(),
            message: String::new(),
            is_dry_run: self.is(6),
        });
        if self.is(2) {
            let revision = self.one_of(&["abc", "def"]).to_owned();
            report.changes = vec![SourceChange { revision, ..SourceChange::default() }];
        }
    }

    fn of_a_resource(&mut self, report: &mut Report) {
        report.listed.clear();
        report.entity.resource = Some(ResourceName {
            api_version: self.one_of(&["apps/v1", "apps/v1", "apps/v2"]).to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            // One is longer than Postgres indexes: nothing of it is kept there.
            name: if self.is(400) {
                long(&mut self.random)
            } else {
                self.one_of(&["web", "web", "db"]).to_owned()
            },
        });
        report.pods = self.is(3).then(|| Pods {
            ready: self.random.i64(0..3),
            wanted: 3,
            revision: self.random.bool().then_some(7),
        });
        // Whoever watches resources knows the object alone, and whose it is or not.
        if self.is(3) {
            report.has_source = false;
            (report.sync, report.health, report.health_message, report.revision) = (None, None, None, None);
            (report.actual, report.desired, report.git, report.details) = (None, None, None, None);
            if !self.is(4) {
                report.entity.app_namespace.clear();
                report.entity.app_name.clear();
            }
        }
    }
}

fn long(random: &mut Rng) -> String {
    std::iter::repeat_with(|| random.alphanumeric()).take(20_000).collect()
}

/// With a second runtime.
async fn runtimes(opened: &Opened) -> [i64; 2] {
    let token = stages_platform_store::create_token(&opened.place, "other").await.unwrap();
    [opened.runtime.id, opened.store.runtime(&token).await.unwrap().unwrap().id]
}

pub(crate) async fn reports_of_one_group_leave_what_each_alone_leaves(
    together: Opened,
    alone: Opened,
    seed: u64,
) {
    let both = [runtimes(&together).await, runtimes(&alone).await];
    assert_eq!(both[0], both[1]);
    let mut dice = Dice::of(Rng::with_seed(seed), both[0]);
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for group in 0..GROUPS {
        let count = if group % 4 == 0 { dice.random.usize(1..REPORTS) } else { dice.random.usize(1..12) };
        let deliveries: Vec<Delivery> = (0..count).map(|_| dice.delivery()).collect();
        let mut one_by_one = Vec::new();
        for delivery in &deliveries {
            one_by_one.extend(alone.store.keep(vec![delivery.clone()]).await.unwrap());
        }
        let kept = together.store.keep(deliveries).await.unwrap();
        assert_eq!(kept, one_by_one, "group {group} of seed {seed}");
        for outcome in kept {
            *seen.entry(format!("{outcome:?}")).or_default() += 1;
        }
        let (those, these) = (rows::all(&alone.place).await, rows::all(&together.place).await);
        let stale = these.iter().find(|row| row.starts_with(rows::STALE));
        assert_eq!(stale, None, "group {group} of seed {seed}");
        let differing = |some: &[String], others: &[String]| {
            some.iter().filter(|row| !others.contains(row)).cloned().collect::<Vec<_>>()
        };
        assert!(
            those == these,
            "group {group} of seed {seed}: without\n{}\nand with\n{}",
            differing(&those, &these).join("\n"),
            differing(&these, &those).join("\n")
        );
    }
    for outcome in [Outcome::Kept, Outcome::Repeated, Outcome::Outdated] {
        assert!(seen.contains_key(&format!("{outcome:?}")), "none was {outcome:?}: {seen:?}");
    }
    together.close().await;
    alone.close().await;
}

impl Opened {
    /// Statements of the commits so far.
    fn statements(&self) -> u64 {
        let families = self.registry.gather();
        let found =
            families.iter().find(|family| family.name() == "gitops_runtime_platform_statements_total");
        found.expect("statements are counted").get_metric()[0].get_counter().get_value() as u64
    }
}

pub(crate) async fn a_group_takes_few_statements_and_a_repeat_of_it_hardly_any(opened: Opened) {
    let mut dice = Dice::of(Rng::with_seed(1), [opened.runtime.id; 2]);
    let mut deliveries: Vec<Delivery> = Vec::new();
    for number in 0..64 {
        let mut one = dice.delivery();
        (one.key, one.epoch, one.report.has_source) = (digest(&format!("k{number}")), None, true);
        one.report.entity.app_name = format!("shop{}", number % 16);
        // One whose name cannot be indexed is kept apart from the others, and they from each other.
        if let Some(resource) = &mut one.report.entity.resource {
            resource.name.truncate(20);
        }
        deliveries.push(one);
    }
    let mut before = 0;
    let mut took = async |deliveries: Vec<Delivery>| {
        let count = deliveries.len();
        assert_eq!(opened.store.keep(deliveries).await.unwrap().len(), count);
        let now = opened.statements();
        let took = now - before;
        before = now;
        took
    };
    let first = took(deliveries.clone()).await;
    assert!((10..=24).contains(&first), "64 new reports took {first} statements");
    // What was taken before: it begins, looks at the keys, says when the runtime was seen, and commits.
    assert_eq!(took(deliveries.clone()).await, 4);
    for one in &mut deliveries {
        one.key = digest(&format!("again {:?}", one.key));
    }
    let again = took(deliveries).await;
    assert!((8..=24).contains(&again), "64 reports that are known took {again} statements");
    opened.close().await;
}
