//! A resource's live state beside its desired one, without what Git leaves to the cluster.

use maud::{Markup, html};

use super::diff;
use super::parts::Parts;
use super::pieces::counted;
use crate::view::resource::ResourceKey;

/// What runs beside what Git says; what that leaves to the cluster stands below, and is no change. Of a resource that is out of sync
/// it may be one: what was taken out of Git stands among it where nothing tells what was applied.
pub(super) fn against((desired, live): (&str, &str), key: &ResourceKey, is_out_of_sync: bool) -> Markup {
    let same = |is_more_below: bool| match (is_out_of_sync, is_more_below) {
        (false, _) => "What runs is what Git says.",
        (true, false) => "Nothing that Git names differs.",
        (true, true) => "Nothing that Git names differs. What it does not name stands below.",
    };
    let Some(parts) = Parts::of(desired, live, is_out_of_sync) else {
        return diff::diff(desired, live, same(false));
    };
    html! {
        (diff::diff(&parts.desired, &parts.named, same(parts.fields > 0)))
        @if parts.fields > 0 {
            details.pad data-fold={"unnamed/" (key)} {
                summary.mute { (counted(parts.fields, "field")) " that Git does not name: defaults, and what the cluster keeps"
                    @if is_out_of_sync { ", or what was taken out of Git" } @else { ". No change" } }
                (whole(&parts.unnamed))
            }
        }
    }
}

/// A manifest by itself.
pub(super) fn whole(manifest: &str) -> Markup {
    html! { pre.manifest { code { (diff::replaced(&diff::yaml(manifest))) } } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_out_of_sync_no_field_that_git_does_not_name_is_told_to_be_no_change() {
        let key: ResourceKey = "/ConfigMap/shop/web".parse().unwrap();
        let (desired, live) = (r#"{"data":{"a":"one"}}"#, r#"{"data":{"a":"one","b":"two"}}"#);
        let told = |live: &str, is_out_of_sync| against((desired, live), &key, is_out_of_sync).into_string();
        let synced = told(live, false);
        for part in ["What runs is what Git says.", "1 field that Git does not name", "No change"] {
            assert!(synced.contains(part), "{part}: {synced}");
        }
        let out_of_sync = told(live, true);
        for part in [
            "Nothing that Git names differs. What it does not name stands below.",
            "or what was taken out of Git",
            "b: two",
        ] {
            assert!(out_of_sync.contains(part), "{part}: {out_of_sync}");
        }
        for untrue in ["What runs is what Git says", "No change"] {
            assert!(!out_of_sync.contains(untrue), "{untrue}: {out_of_sync}");
        }
        let all = told(desired, true);
        assert!(all.contains("Nothing that Git names differs.") && !all.contains("below"), "{all}");
    }
}
