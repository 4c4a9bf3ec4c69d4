//! The labels of an object, read of its text at most once, however many ask.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The labels of an object, by name.
pub type Labelling = HashMap<String, String>;

/// What the text of one event says of labels. All who share the event share what was read: each route of a pipeline has a
/// clone. An event with another text takes another one.
#[derive(Clone, Default)]
pub struct ObjectLabels {
    read: Arc<OnceLock<Option<Labelling>>>,
}

impl ObjectLabels {
    /// What `read` found when one of all who share this asked first; `None` where that was no object.
    pub fn get_or_read(&self, read: impl FnOnce() -> Option<Labelling>) -> Option<&Labelling> {
        self.read.get_or_init(read).as_ref()
    }
}

/// It says nothing that the text does not say.
impl PartialEq for ObjectLabels {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ObjectLabels {}

/// Without the labels: what is printed may end in a log.
impl fmt::Debug for ObjectLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectLabels").field("read", &self.read.get().is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_once_for_all_who_share_them() {
        let first = ObjectLabels::default();
        let other = first.clone();
        let read = first.get_or_read(|| Some(Labelling::from([("team".to_owned(), "canary".to_owned())])));
        let again = other.get_or_read(|| unreachable!("it was read"));
        assert_eq!((read.map(Labelling::len), again), (Some(1), read));
        assert_eq!(format!("{other:?}"), "ObjectLabels { read: true, .. }");
        assert_eq!(first, ObjectLabels::default(), "two events differ by their texts alone");
    }

    #[test]
    fn what_is_no_object_is_looked_at_once_too() {
        let labels = ObjectLabels::default();
        assert_eq!(labels.get_or_read(|| None), None);
        assert_eq!(labels.get_or_read(|| unreachable!("it was read")), None);
    }
}
