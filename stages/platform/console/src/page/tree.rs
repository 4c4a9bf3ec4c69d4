//! The tree of an application's resources, drawn here so that it stands at once.

use std::collections::{HashMap, HashSet};

use maud::{Markup, html};
use stages_platform_store::Pods;

use crate::view::resource::{Resource, ResourceKey};
use crate::view::state::Health;

const WIDTH: usize = 172;
const HEIGHT: usize = 40;
const COLUMN: usize = 204;
const ROW: usize = 52;
/// Letters of a name on a card.
const NAME: usize = 19;
/// Columns: nothing is owned by so many that own each other.
const DEEPEST: usize = 8;

/// A node with its place: column, and twice its row, so that a parent may stand between two rows.
struct Node<'a> {
    resource: &'a Resource,
    column: usize,
    row: usize,
    /// Twice the rows of what it owns, which stands in the next column.
    below: Vec<usize>,
}

/// What is placed so far.
struct Places<'a> {
    /// What each owns.
    owned: HashMap<&'a ResourceKey, Vec<&'a Resource>>,
    nodes: Vec<Node<'a>>,
    rows: usize,
}

/// The tree below an application. `link` makes the address of a resource.
pub(crate) fn tree(
    name: &str,
    health: Health,
    resources: &[Resource],
    selected: Option<&ResourceKey>,
    link: &dyn Fn(&ResourceKey) -> String,
) -> Markup {
    let known: HashSet<&ResourceKey> = resources.iter().map(|one| &one.key).collect();
    let mut places = Places { owned: HashMap::new(), nodes: Vec::new(), rows: 0 };
    let mut roots = Vec::new();
    for one in resources {
        match one.parent.as_ref().filter(|owner| known.contains(owner)) {
            Some(owner) => places.owned.entry(owner).or_default().push(one),
            None => roots.push(one),
        }
    }
    let rows: Vec<usize> = roots.into_iter().map(|root| places.place(root, 1)).collect();
    let Places { nodes, rows: next, .. } = places;
    let middle = (rows.first().copied().unwrap_or(0) + rows.last().copied().unwrap_or(0)) / 2;
    let columns = nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let (width, height) = (columns * COLUMN - (COLUMN - WIDTH), next.max(1) * ROW + 8);
    html! {
        svg.tree width=(width) height=(height) viewBox={"0 0 " (width) " " (height)} role="group" aria-label={"Resources of " (name)} {
            @for row in &rows { (edge((0, middle), *row)) }
            @for node in &nodes { @for row in &node.below { (edge((node.column, node.row), *row)) } }
            g.node { title { "Application " (name) } (card((0, y(middle)), "Application", &cut(name, NAME), Some(health))) }
            @for node in &nodes {
                @let resource = node.resource;
                @let (kind, shown) = titles(resource, resources);
                a.node.changed[resource.changed].selected[Some(&resource.key) == selected] href=(link(&resource.key)) {
                    title { (kind) " " (resource.key.name) @if let Some(health) = resource.health { ", " (health.word()) } @if let Some(pods) = resource.pods { ": " (pods) } @if resource.changed { ", changed" } }
                    (card((node.column * COLUMN, y(node.row)), &kind, &shown, resource.health))
                }
            }
        }
    }
}

impl<'a> Places<'a> {
    /// Places a resource and all below it; gives twice its row.
    fn place(&mut self, resource: &'a Resource, column: usize) -> usize {
        let owned = if column < DEEPEST { self.owned.remove(&resource.key) } else { None };
        let below: Vec<usize> =
            owned.unwrap_or_default().into_iter().map(|one| self.place(one, column + 1)).collect();
        let row = match (below.first(), below.last()) {
            (Some(first), Some(last)) => usize::midpoint(*first, *last),
            _ => {
                self.rows += 1;
                (self.rows - 1) * 2
            }
        };
        self.nodes.push(Node { resource, column, row, below });
        row
    }
}

/// Twice a row, as it stands in the drawing.
fn y(row: usize) -> usize {
    row * ROW / 2 + 6
}

/// From a node to one in the next column.
fn edge((column, from): (usize, usize), to: usize) -> Markup {
    let (from_x, to_x) = (column * COLUMN + WIDTH, (column + 1) * COLUMN);
    let (from_y, to_y) = (y(from) + HEIGHT / 2, y(to) + HEIGHT / 2);
    let middle = usize::midpoint(from_x, to_x);
    html! { path.edge d={"M" (from_x) " " (from_y) "C" (middle) " " (from_y) " " (middle) " " (to_y) " " (to_x) " " (to_y)} {} }
}

/// What stands on a card. Of a ReplicaSet the end of its name tells it from others of its owner, and beside that whether it is the new
/// one, and its pods.
fn titles(resource: &Resource, all: &[Resource]) -> (String, String) {
    let ResourceKey { kind, name, .. } = &resource.key;
    let Some(Pods { ready, wanted, revision }) = resource.pods else {
        return (kind.clone(), cut(name, NAME));
    };
    let beside = all.iter().filter(|one| one.parent == resource.parent && one.key != resource.key);
    let newest = beside.filter_map(|one| one.pods?.revision).max();
    let age = match revision.zip(newest) {
        Some((own, newest)) if own > newest => " · new",
        Some(_) => " · old",
        None => "",
    };
    let end = name.rsplit_once('-').map_or(&**name, |(_, end)| end);
    (format!("{kind}{age}"), format!("{} {ready}/{wanted}", cut(&format!("…-{end}"), NAME - 6)))
}

fn card((x, y): (usize, usize), kind: &str, name: &str, health: Option<Health>) -> Markup {
    html! {
        rect x=(x + 1) y=(y) width=(WIDTH - 2) height=(HEIGHT) rx="7" {}
        text.kind x=(x + 12) y=(y + 16) { (cut(kind, 24)) }
        text.name x=(x + 12) y=(y + 32) { (name) }
        @if let Some(health) = health {
            text class={"glyph " (health.class())} x=(x + WIDTH - 24) y=(y + 17) { (health.glyph()) }
        }
    }
}

/// The end of a long name tells more than its beginning.
fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        text.to_owned()
    } else {
        text.chars().take(8).chain("…".chars()).chain(text.chars().skip(count - (most - 9))).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::view::state::SyncStatus;

    type Pairs = Vec<(usize, usize)>;

    fn key(kind: &str, name: &str) -> ResourceKey {
        ResourceKey { kind: kind.to_owned(), name: name.to_owned(), ..ResourceKey::default() }
    }

    fn resource(kind: &str, name: &str, parent: Option<ResourceKey>) -> Resource {
        Resource {
            key: key(kind, name),
            health: None,
            sync: SyncStatus::Synced,
            message: String::new(),
            pods: None,
            parent,
            since: Timestamp::UNIX_EPOCH,
            changed: false,
        }
    }

    /// Where each card stands, column and row, and the edges: both ends of each.
    fn drawn(resources: &[Resource]) -> (Pairs, Pairs) {
        let text = tree("shop", Health::Healthy, resources, None, &|key| format!("#{key}")).0;
        let number = |text: &str, name: &str| {
            let rest = text.split(&format!("{name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse::<usize>().unwrap()
        };
        let cards = text.split("<rect").skip(1).map(|card| (number(card, " x") / COLUMN, number(card, " y")));
        let ends = text.split("<path class=\"edge\" d=\"M").skip(1).map(|edge| {
            let numbers: Vec<usize> = edge
                .split('"')
                .next()
                .unwrap()
                .split(|c: char| !c.is_ascii_digit())
                .map(|part| part.parse().unwrap())
                .collect();
            (numbers[1] - HEIGHT / 2, numbers[7] - HEIGHT / 2)
        });
        let (mut cards, mut ends): (Vec<_>, Vec<_>) = (cards.collect(), ends.collect());
        cards.sort_unstable();
        ends.sort_unstable();
        (cards, ends)
    }

    #[test]
    fn what_is_owned_stands_beside_its_owner_and_all_else_beside_the_application() {
        let set = key("ReplicaSet", "web-a");
        let all = [
            resource("Rollout", "web", None),
            resource("Pod", "web-a-1", Some(set.clone())),
            resource("Service", "web", None),
            resource("ReplicaSet", "web-a", Some(key("Rollout", "web"))),
            resource("Pod", "web-a-2", Some(set)),
            resource("Pod", "alone", Some(key("ReplicaSet", "not-there"))),
        ];
        let (cards, edges) = drawn(&all);
        // The pods, the Service and what is owned by nothing that is there take four rows; owners stand in the middle of theirs.
        let row = |twice: usize| twice * ROW / 2 + 6;
        let expected = [(0, 3), (1, 1), (1, 4), (1, 6), (2, 1), (3, 0), (3, 2)];
        assert_eq!(cards, expected.map(|(column, twice)| (column, row(twice))));
        let expected = [(1, 0), (1, 1), (1, 2), (3, 1), (3, 4), (3, 6)];
        assert_eq!(edges, expected.map(|(from, to)| (row(from), row(to))));
    }

    #[test]
    fn how_a_resource_is_is_told_in_words_to_whoever_has_its_card_read() {
        let degraded = Resource { health: Some(Health::Degraded), ..resource("Deployment", "web", None) };
        let all = [degraded, Resource { changed: true, ..resource("Service", "web", None) }];
        let text = tree("shop", Health::Degraded, &all, None, &|key| format!("#{key}")).0;
        for title in ["<title>Deployment web, Degraded</title>", "<title>Service web, changed</title>"] {
            assert!(text.contains(title), "{title}: {text}");
        }
    }

    #[test]
    fn a_replica_set_is_told_as_new_or_old_with_its_pods() {
        let set = |end: &str, pods: Option<(i64, i64, Option<i64>)>, owner: &str| Resource {
            pods: pods.map(|(ready, wanted, revision)| Pods { ready, wanted, revision }),
            ..resource("ReplicaSet", &format!("payments-api-{end}"), Some(key("Deployment", owner)))
        };
        let all = [
            resource("Deployment", "api", None),
            set("5c41", Some((2, 2, Some(9))), "api"),
            set("7d9f", Some((4, 6, Some(10))), "api"),
            set("aaaa", Some((1, 1, Some(3))), "alone"),
            set("bbbb", None, "api"),
            set("cccc", Some((0, 1, None)), "api"),
        ];
        let told: Vec<_> = all[1..].iter().map(|one| titles(one, &all)).collect();
        let told: Vec<_> = told.iter().map(|(kind, name)| (&**kind, &**name)).collect();
        let cut = cut("payments-api-bbbb", NAME);
        let expected = [
            ("ReplicaSet · old", "…-5c41 2/2"),
            ("ReplicaSet · new", "…-7d9f 4/6"),
            ("ReplicaSet", "…-aaaa 1/1"),
            ("ReplicaSet", &*cut),
            ("ReplicaSet", "…-cccc 0/1"),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_drawing_ends_however_the_owners_stand() {
        let circle = [
            resource("Pod", "a", Some(key("Pod", "b"))),
            resource("Pod", "b", Some(key("Pod", "a"))),
            resource("Pod", "c", Some(key("Pod", "c"))),
        ];
        assert_eq!(drawn(&circle), (vec![(0, 6)], Vec::new()));
        let mut chain = vec![resource("Pod", "0", None)];
        chain
            .extend((1..20).map(|n| resource("Pod", &n.to_string(), Some(key("Pod", &(n - 1).to_string())))));
        assert_eq!(drawn(&chain).0.len(), DEEPEST + 1);
    }
}
