//! The nodes of a Workflow that its status holds compressed: `status.compressedNodes`, gzipped JSON in base64, as Argo
//! Workflows writes it where they would not fit into an object; those that are in a database are known by their version
//! alone, `status.offloadNodeStatusVersion`.
//!
//! What is compressed is packed away from every rule of redaction: it is unpacked, or it is taken away. It never passes as
//! it is.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

/// The member of a status with the compressed nodes.
const COMPRESSED: &str = "compressedNodes";

/// What became of the nodes of a Workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nodes {
    /// They stand in `status.nodes`, where they were not before.
    Decompressed,
    /// They are in the database of Argo Workflows, and not here.
    Offloaded,
    /// They would be larger than the limit.
    TooLarge,
    /// They cannot be unpacked.
    Unreadable,
}

impl Nodes {
    /// Its name in reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Decompressed => "decompressed",
            Self::Offloaded => "offloaded",
            Self::TooLarge => "too-large",
            Self::Unreadable => "unreadable",
        }
    }
}

/// Whether an object's text may hold compressed nodes; a text that quotes the name may be taken for one that does.
pub(crate) fn may_be_packed(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"\"compressedNodes\"").is_some()
}

/// Unpacks the nodes of an object into `status.nodes`, if they take at most `limit` bytes; `None`: the object has no packed nodes.
pub(crate) fn unpack(object: &mut Value, limit: usize) -> Option<Nodes> {
    let status = object.get_mut("status")?.as_object_mut()?;
    let Some(packed) = status.remove(COMPRESSED).filter(|packed| packed != "") else {
        let version = status.get("offloadNodeStatusVersion")?;
        return (version != "").then_some(Nodes::Offloaded);
    };
    let nodes = match read(&packed, limit) {
        Ok(nodes) => nodes,
        Err(why) => return Some(why),
    };
    status.insert("nodes".to_owned(), nodes);
    Some(Nodes::Decompressed)
}

fn read(packed: &Value, limit: usize) -> Result<Value, Nodes> {
    let text = packed.as_str().ok_or(Nodes::Unreadable)?;
    let packed = STANDARD.decode(text).map_err(|_| Nodes::Unreadable)?;
    let mut nodes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX);
    GzDecoder::new(&*packed)
        .take(most.saturating_add(1))
        .read_to_end(&mut nodes)
        .map_err(|_| Nodes::Unreadable)?;
    if nodes.len() > limit {
        return Err(Nodes::TooLarge);
    }
    serde_json::from_slice(&nodes).ok().filter(Value::is_object).ok_or(Nodes::Unreadable)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;

    /// As Argo Workflows packs them.
    pub(crate) fn packed(nodes: &Value) -> String {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(nodes.to_string().as_bytes()).unwrap();
        STANDARD.encode(gzip.finish().unwrap())
    }

    #[test]
    fn compressed_nodes_stand_where_others_do_and_nothing_stays_packed() {
        let nodes = json!({"a": {"phase": "Failed", "displayName": "build"}});
        let mut object = json!({"status": {"phase": "Failed", "compressedNodes": packed(&nodes)}});
        assert_eq!(unpack(&mut object, 1_000), Some(Nodes::Decompressed));
        assert_eq!(object, json!({"status": {"phase": "Failed", "nodes": nodes}}));

        let size = nodes.to_string().len();
        let with = |packed: Value| json!({"status": {"compressedNodes": packed}});
        for (packed, limit, expected) in [
            (packed(&nodes).into(), size, Nodes::Decompressed),
            (packed(&nodes).into(), size - 1, Nodes::TooLarge),
            ("%%%".into(), 1_000, Nodes::Unreadable),
            (STANDARD.encode("no gzip").into(), 1_000, Nodes::Unreadable),
            (packed(&json!([1])).into(), 1_000, Nodes::Unreadable),
            (7.into(), 1_000, Nodes::Unreadable),
        ] {
            let mut object = with(packed);
            assert_eq!(unpack(&mut object, limit), Some(expected));
            assert!(object["status"].get("compressedNodes").is_none());
        }
    }

    #[test]
    fn what_expands_without_end_is_cut_off_at_the_bound() {
        let bomb = json!({"a": "0".repeat(50_000_000)});
        let mut object = json!({"status": {"compressedNodes": packed(&bomb)}});
        assert_eq!(unpack(&mut object, 10_000), Some(Nodes::TooLarge));
    }

    #[test]
    fn offloaded_nodes_are_told_and_anything_else_is_left_alone() {
        let mut offloaded = json!({"status": {"offloadNodeStatusVersion": "fnv:1"}});
        let before = offloaded.clone();
        assert_eq!(unpack(&mut offloaded, 10), Some(Nodes::Offloaded));
        assert_eq!(offloaded, before);
        for mut object in
            [json!({"status": {"nodes": {}}}), json!({}), json!({"status": {"compressedNodes": ""}})]
        {
            assert_eq!(unpack(&mut object, 10), None);
        }
    }
}
