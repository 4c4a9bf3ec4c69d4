//! A key that was refused for good.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Digest, EntityId, Reason, Timestamp, Uid, Version};

/// Entities and contents that the sink refused for good, and why.
pub type Refused = Arc<[(EntityId, Digest, Reason)]>;

/// One key that was refused for good. No body is kept: replaying it reads the object again.
///
/// It is not tried again by itself. While it is parked, the same state (or an older one of the same life) that a
/// watch or a list shows again is filtered as `parked`; a fact of an older state that a watch shows again, a newer state,
/// another life, a deletion, a replay and what is incomplete go on as usual. The entry goes with the first of them that is acknowledged or brings no report.
///
/// Discarding forgets the refusal and sends nothing. Nothing else remembers it, so the
/// key's next change is reported as usual; and should the object not have changed when everything is listed
/// again, after a restart, then that very state is tried once more, and parked anew if it is refused again.
/// To keep it from being sent, leave it parked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Why.
    pub reason: Reason,
    /// When.
    pub at: Timestamp,
    /// Which state was refused; 0 when it could not even be read.
    pub version: Version,
    /// Which life.
    pub uid: Option<Uid>,
    /// Whose reports were refused, with the digest of what was sent; none when it did not come to that.
    pub refused: Refused,
}
