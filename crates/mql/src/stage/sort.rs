//! `$sort`.

use super::Stage;
use super::registry::StageRow;
use crate::sort::SortPattern;

pub(super) const SORT: StageRow = StageRow {
    name: "$sort",
    since: "2.2",
    doc: "Orders the documents.",
    parse: |_, value, cx| Ok(vec![Stage::Sort(SortPattern::parse_stage(value, cx)?)]),
};
