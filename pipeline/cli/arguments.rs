//! What the larger commands take.

pub(super) mod app_proxy;
pub(super) mod ask;
pub(super) mod bus;
pub(super) mod git;
pub(super) mod platform;
pub(super) mod router;
pub(super) mod secrets;
pub(super) mod source_server;
pub(super) mod tunnel;
pub(super) mod values;

use std::path::PathBuf;

use crate::config::Given;

/// What flags say: `weak` first, which others stand above.
fn given(
    file: &Option<PathBuf>,
    weak: &[(&str, &str)],
    set: &[(String, String)],
    own: &[(&str, &str, &Option<String>)],
) -> Given {
    let weak = weak.iter().filter(|(path, _)| own.iter().all(|(own, _, text)| own != path || text.is_none()));
    let weak = weak.map(|(path, text)| ((*path).to_owned(), "--set".to_owned(), (*text).to_owned()));
    let set = set.iter().map(|(path, text)| (path.clone(), "--set".to_owned(), text.clone()));
    let own = own.iter().filter_map(|(path, flag, text)| {
        text.as_ref().map(|text| ((*path).to_owned(), (*flag).to_owned(), text.clone()))
    });
    Given { file: file.clone(), flags: weak.chain(set).chain(own).collect() }
}
