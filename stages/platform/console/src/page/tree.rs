//! The tree of an application's resources, drawn here so that it stands at once.

use maud::{Markup, html};

use crate::view::resource::{Resource, ResourceKey};
use crate::view::state::Health;

const WIDTH: usize = 172;
const HEIGHT: usize = 40;
const COLUMN: usize = 204;
const ROW: usize = 52;

/// A node with its place: column, and twice its row, so that a parent may stand between two rows.
struct Node<'a> {
    resource: &'a Resource,
    column: usize,
    row: usize,
}

/// The tree below an application. `link` makes the address of a resource.
pub(crate) fn tree(
    name: &str,
    health: Health,
    resources: &[Resource],
    selected: Option<&ResourceKey>,
    link: &dyn Fn(&ResourceKey) -> String,
) -> Markup {
    let known = |key: &ResourceKey| resources.iter().any(|one| one.key == *key);
    let roots: Vec<_> =
        resources.iter().filter(|one| one.parent.as_ref().is_none_or(|parent| !known(parent))).collect();
    let mut nodes = Vec::new();
    let mut next = 0;
    let mut rows = Vec::new();
    for root in roots {
        rows.push(place(root, resources, 1, &mut next, &mut nodes));
    }
    let middle = (rows.first().copied().unwrap_or(0) + rows.last().copied().unwrap_or(0)) / 2;
    let columns = nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let (width, height) = (columns * COLUMN - (COLUMN - WIDTH), next.max(1) * ROW + 8);
    let y = |row: usize| row * ROW / 2 + 6;
    html! {
        svg.tree width=(width) height=(height) viewBox={"0 0 " (width) " " (height)} role="group" aria-label={"Resources of " (name)} {
            @for node in &nodes {
                @let (column, row) = parent_place(node, &nodes).unwrap_or((0, middle));
                (edge(column * COLUMN + WIDTH, y(row) + HEIGHT / 2, node.column * COLUMN, y(node.row) + HEIGHT / 2))
            }
            g.node { title { "Application " (name) } (card(0, y(middle), "Application", name, Some(health))) }
            @for node in &nodes {
                @let resource = node.resource;
                a.node.changed[resource.changed].selected[Some(&resource.key) == selected] href=(link(&resource.key)) {
                    title { (resource.key.kind) " " (resource.key.name) @if resource.changed { ", changed" } }
                    (card(node.column * COLUMN, y(node.row), &resource.key.kind, &resource.key.name, resource.health))
                }
            }
        }
    }
}

/// Places a resource and all below it; gives twice its row. A circle of parents ends at the depth of the list.
fn place<'a>(
    resource: &'a Resource,
    all: &'a [Resource],
    column: usize,
    next: &mut usize,
    nodes: &mut Vec<Node<'a>>,
) -> usize {
    let below: Vec<_> = all.iter().filter(|one| one.parent.as_ref() == Some(&resource.key)).collect();
    let rows: Vec<_> = if column < 8 {
        below.into_iter().map(|one| place(one, all, column + 1, next, nodes)).collect()
    } else {
        Vec::new()
    };
    let row = match (rows.first(), rows.last()) {
        (Some(first), Some(last)) => (first + last) / 2,
        _ => {
            *next += 1;
            (*next - 1) * 2
        }
    };
    nodes.push(Node { resource, column, row });
    row
}

fn parent_place(node: &Node<'_>, nodes: &[Node<'_>]) -> Option<(usize, usize)> {
    let parent = node.resource.parent.as_ref()?;
    let found =
        nodes.iter().find(|other| other.resource.key == *parent && other.column + 1 == node.column)?;
    Some((found.column, found.row))
}

fn edge(from_x: usize, from_y: usize, to_x: usize, to_y: usize) -> Markup {
    let middle = usize::midpoint(from_x, to_x);
    html! { path.edge d={"M" (from_x) " " (from_y) "C" (middle) " " (from_y) " " (middle) " " (to_y) " " (to_x) " " (to_y)} {} }
}

fn card(x: usize, y: usize, kind: &str, name: &str, health: Option<Health>) -> Markup {
    html! {
        rect x=(x + 1) y=(y) width=(WIDTH - 2) height=(HEIGHT) rx="7" {}
        text.kind x=(x + 12) y=(y + 16) { (cut(kind, 24)) }
        text.name x=(x + 12) y=(y + 32) { (cut(name, 19)) }
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
