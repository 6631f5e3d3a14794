//! `$project`, `$addFields`, `$set`, `$unset`: stages that are projections.

use super::facts::Facts;
use super::registry::StageRow;
use super::{Stage, Transform};
use crate::context::ParseContext;
use crate::projection::Projection;
use quire_document::Value;
use quire_error::Result;
use std::sync::Arc;

pub(super) const PROJECT: StageRow = StageRow {
    name: "$project",
    since: "2.2",
    doc: "Keeps, drops or computes fields.",
    facts: Facts { reshapes: true, ..Facts::TRANSFORM },
    parse,
};

pub(super) const ADD_FIELDS: StageRow = StageRow {
    name: "$addFields",
    since: "3.4",
    doc: "Adds computed fields.",
    facts: Facts::TRANSFORM,
    parse,
};

pub(super) const SET: StageRow = StageRow {
    name: "$set",
    since: "4.2",
    doc: "Adds computed fields.",
    facts: Facts::TRANSFORM,
    parse,
};

pub(super) const UNSET: StageRow = StageRow {
    name: "$unset",
    since: "4.2",
    doc: "Removes fields.",
    facts: Facts::TRANSFORM,
    parse,
};

fn parse(name: &'static str, value: Value<'_>, cx: &ParseContext) -> Result<Vec<Stage>> {
    let projection = match name {
        "$project" => Projection::parse_project(value, cx)?,
        "$unset" => Projection::parse_unset(value, cx)?,
        _ => Projection::parse_add_fields(name, value, cx)?,
    };
    Ok(vec![Stage::Transform(Transform::Projection(name, Arc::new(projection)))])
}
