use bytes::Bytes;
use pipeline_core::{Change, Event, Fact, Key, Timestamp};
use proptest::prelude::*;

use super::super::Payload;
use super::*;

fn prefix() -> Prefix {
    Prefix::new("eu.gitops-runtime").unwrap()
}

const fn once(version: Version, brought: Option<Digest>) -> CompactionKey {
    CompactionKey::Once { version, is_deleted: false, brought }
}

const fn deleted(version: Version, brought: Option<Digest>) -> CompactionKey {
    CompactionKey::Once { version, is_deleted: true, brought }
}

fn subject(uid: &str, compaction: CompactionKey) -> Subject {
    Subject { source: "objects".into(), shard: 3, uid: uid.into(), compaction, about: None }
}

#[test]
fn subjects_say_source_shard_uid_and_place() {
    let text = |subject: &Subject| subject.text(&prefix()).unwrap();
    assert_eq!(text(&subject("u-1", CompactionKey::State)), "eu.gitops-runtime.objects.3.u-1.state");
    assert_eq!(text(&subject("u-1", once(Version(7), None))), "eu.gitops-runtime.objects.3.u-1.once.7");
    assert_eq!(
        text(&subject("a b.*\u{e9}", deleted(Version(7), None))),
        "eu.gitops-runtime.objects.3.a=20b=2E=2A=C3=A9.once.7.deleted"
    );
    assert_eq!(
        text(&subject("u", once(Version(7), Some(Digest(255))))),
        "eu.gitops-runtime.objects.3.u.once.7.facts.00000000000000ff"
    );
    assert_eq!(
        text(&subject("u", deleted(Version(7), Some(Digest(1))))),
        "eu.gitops-runtime.objects.3.u.once.7.deleted.facts.0000000000000001"
    );
    let of_resource = Subject { about: Some(EntityId(255)), ..subject("", CompactionKey::State) };
    assert_eq!(text(&of_resource), "eu.gitops-runtime.objects.3.=.state.00000000000000ff");
    let of_object = Subject { about: Some(EntityId::OBJECT), ..subject("u", deleted(Version(7), None)) };
    assert_eq!(text(&of_object), "eu.gitops-runtime.objects.3.u.once.7.deleted.0000000000000000");
}

#[test]
fn filters_name_a_source_or_a_shard_of_it() {
    assert_eq!(prefix().filter("objects", None).unwrap(), "eu.gitops-runtime.objects.>");
    assert_eq!(prefix().filter("objects", Some(3)).unwrap(), "eu.gitops-runtime.objects.3.>");
    assert_eq!(
        (prefix().all(), prefix().stream()),
        ("eu.gitops-runtime.>".into(), "eu_gitops-runtime".into())
    );
    assert_eq!(prefix().stream_of("objects"), "eu_gitops-runtime_objects");
    assert_eq!(prefix().stream_of("reports"), "eu_gitops-runtime_reports");
}

#[test]
fn what_is_no_prefix_or_too_long_is_refused() {
    for text in ["", ".", "a.", "a..b", "a.*", "a.>", "a b", "$JS", &"x".repeat(MAX_PREFIX + 1)] {
        assert_eq!(
            Prefix::new(text).unwrap_err().to_string(),
            "a prefix of the bus is 1 to 128 letters, digits, `-` and `_`, in parts between dots"
        );
    }
    let long = subject(&".".repeat(MAX_TOKEN / 3 + 1), CompactionKey::State).text(&prefix());
    assert_eq!(long.unwrap_err().to_string(), "a part of a subject of the bus is longer than 512 bytes");
}

#[test]
fn what_nobody_of_us_wrote_is_foreign() {
    for tail in [
        "",
        "objects",
        "objects.3.u",
        "objects.x.u.state",
        "objects.+3.u.state",
        "objects.03.u.state",
        "objects.3.u.other",
        "objects.3.u.once",
        "objects.3.u.once.x",
        "objects.3.u.once.7.deleted.0.0",
        "objects.3.u.once.7.facts",
        "objects.3.u.once.7.facts.ff",
        "objects.3.u.state.facts.00000000000000ff",
        "objects.3.u.state.ff",
        "objects.3.u.state.00000000000000FF",
        "objects.3.u=2.state",
        "objects.3.u=2d.state",
        "objects.3.u=2D.state",
        "objects.3.=FF.state",
        "objects.3..state",
    ] {
        let text = format!("eu.gitops-runtime.{tail}");
        assert_eq!(Subject::parse(&prefix(), &text), Err(SubjectError::Foreign), "{text}");
    }
    let other = Subject::parse(&prefix(), "eu.gitops-runtimes.objects.3.u.state");
    assert_eq!(other.unwrap_err().to_string(), "a subject is not one of the bus");
}

#[test]
fn deletions_and_ends_that_were_not_told_are_kept() {
    let end = |phase: &str| Fact { id: Digest::of(phase.as_bytes()), body: Bytes::new() };
    let (key, change) = (Key::new("ns", "shop").unwrap(), Change::Applied { body: Bytes::new() });
    let event = Event::watched(key, "u".into(), Version(7), change, Timestamp::UNIX_EPOCH);
    let state = Message::of(event);
    assert_eq!(Keep::of(&state, None), Keep::Newest);
    let ended = Message { fact: Some(end("Succeeded")), ..state.clone() };
    assert_eq!(Keep::of(&ended, None), Keep::Each);
    assert_eq!(Keep::of(&ended, Some(end("Succeeded").id)), Keep::Newest);
    assert_eq!(Keep::of(&ended, Some(end("Failed").id)), Keep::Each);
    let folded = Message { coalesced: vec![end("Failed")], ..state.clone() };
    assert_eq!(Keep::of(&folded, None), Keep::Each);
    let gone = Message { payload: Payload::Deleted { body: None }, ..state.clone() };
    assert_eq!(Keep::of(&gone, None), Keep::Each);
    let at = |message: &Message| Subject::of("objects", 0, message, Keep::of(message, None)).compaction;
    assert_eq!(at(&state), CompactionKey::State);
    assert_eq!(at(&ended), once(Version(7), None));
    let both = once(Version(7), Some(end("Failed").id));
    assert_eq!(at(&folded), both, "beside the same state of a watcher that did not see the failure");
    assert_eq!(at(&gone), deleted(Version(7), None), "noticed at the version that was seen last");
}

prop_compose! {
    fn subjects()(
        source in "\\PC{0,40}", shard in any::<u32>(), uid in "\\PC{0,40}", version in any::<u64>(), which in 0..3,
        brought in proptest::option::of(any::<u64>()),
        about in proptest::option::of(proptest::option::of(any::<u64>())),
    ) -> Subject {
        let compaction = match which {
            0 => CompactionKey::State,
            1 => once(Version(version), brought.map(Digest)),
            _ => deleted(Version(version), brought.map(Digest)),
        };
        let about = about.map(|id| id.map_or(EntityId::OBJECT, EntityId));
        Subject { source, shard, uid: uid.into(), compaction, about }
    }
}

proptest! {
    #[test]
    fn a_subject_is_read_as_it_was_written(subject in subjects()) {
        let text = subject.text(&prefix()).unwrap();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.".contains(c);
        prop_assert!(text.chars().all(plain) && text.split('.').all(|part| !part.is_empty()), "{}", text);
        prop_assert_eq!(Subject::parse(&prefix(), &text), Ok(subject));
    }

    #[test]
    fn any_text_is_a_subject_or_foreign(text in "eu\\.gitops-runtime\\.[a=2.0-9oncestadlf*>]{0,60}") {
        if let Ok(subject) = Subject::parse(&prefix(), &text) {
            prop_assert_eq!(subject.text(&prefix()), Ok(text));
        }
    }
}
