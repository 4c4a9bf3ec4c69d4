//! The end of an operation as a mark keeps it: in one piece, since after a list thousands of marks keep one each.

use std::sync::Arc;

use pipeline_core::{OperationEnd, Uid, Version};

/// One remembered end of an operation.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) uid: Uid,
    pub(super) version: Version,
    /// Start, end, phase, revision and message, one after the other,
    texts: Box<str>,
    /// and where each but the last is over.
    cuts: [usize; 4],
}

impl End {
    pub(super) fn new(uid: Uid, version: Version, end: &OperationEnd) -> Self {
        let OperationEnd { phase, started_at, finished_at, revision, message } = end;
        let parts = [started_at, finished_at, phase, revision, message].map(String::as_str);
        let mut over = 0;
        let cuts = [0, 1, 2, 3].map(|part: usize| {
            over += parts.get(part).map_or(0, |text| text.len());
            over
        });
        Self { uid, version, texts: parts.concat().into(), cuts }
    }

    /// The texts that tell one end from another: start, end and phase.
    fn told_by(&self) -> [&str; 3] {
        let [start, end, phase, ..] = self.parts();
        [start, end, phase]
    }

    fn parts(&self) -> [&str; 5] {
        let [a, b, c, d] = self.cuts;
        [(0, a), (a, b), (b, c), (c, d), (d, self.texts.len())]
            .map(|(from, to)| self.texts.get(from..to).unwrap_or_default())
    }

    /// Whether it is the same end, of whatever life.
    pub(super) fn is(&self, end: &OperationEnd) -> bool {
        self.told_by() == [&end.started_at, &end.finished_at, &end.phase].map(String::as_str)
    }

    /// Whether both are the same end of the same life.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.uid == other.uid && self.told_by() == other.told_by()
    }

    /// Bytes it is charged with: those of its unpacked form.
    pub(super) fn size(&self) -> u64 {
        (size_of::<OperationEnd>() + self.texts.len()) as u64
    }

    pub(super) fn unpacked(&self) -> Arc<OperationEnd> {
        let [started_at, finished_at, phase, revision, message] = self.parts().map(str::to_owned);
        Arc::new(OperationEnd { phase, started_at, finished_at, revision, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(texts: [&str; 5]) -> OperationEnd {
        let [phase, started_at, finished_at, revision, message] = texts.map(str::to_owned);
        OperationEnd { phase, started_at, finished_at, revision, message }
    }

    #[test]
    fn comes_back_as_it_was() {
        let long = "ä".repeat(512);
        for texts in [
            ["Failed", "10:00", "10:01", "abc", "why"],
            ["", "", "é", "", ""],
            ["", "", "", &long, ""],
            [&*long; 5],
        ] {
            let end = end(texts);
            let packed = End::new("life".into(), Version(3), &end);
            assert_eq!((&*packed.unpacked(), packed.size()), (&end, end.size() as u64));
            assert!(packed.is(&end));
        }
    }

    #[test]
    fn start_end_and_phase_tell_one_from_another() {
        let of = |uid: &str, texts| End::new(uid.into(), Version(1), &end(texts));
        let one = of("life", ["Failed", "10:00", "10:01", "abc", "why"]);
        assert!(one.is_same(&of("life", ["Failed", "10:00", "10:01", "def", "how"])));
        for other in [
            of("later", ["Failed", "10:00", "10:01", "abc", "why"]),
            of("life", ["Error", "10:00", "10:01", "abc", "why"]),
            of("life", ["Failed", "10:00", "10:02", "abc", "why"]),
            of("life", ["Failed", "09:59", "10:01", "abc", "why"]),
            of("life", ["Failed", "10:001", "0:01", "abc", "why"]),
        ] {
            assert!(!one.is_same(&other), "{other:?}");
        }
    }
}
