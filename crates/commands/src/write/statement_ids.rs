//! `stmtId` and `stmtIds`: the ids under which a session stores the results of a command's
//! statements.

use crate::frame::args::Arg;
use quire_document::Value;
use quire_error::{Error, ErrorCode, Result};

/// The ids as given.
#[derive(Clone, Debug, Default)]
pub struct StatementIds {
    /// `stmtIds`: one for each statement.
    each: Option<Vec<i32>>,
}

impl StatementIds {
    /// Reads `stmtIds`. Returns false if the argument is another one. `stmtId` is a generic field.
    pub fn read(&mut self, arg: &Arg<'_>) -> Result<bool> {
        match arg.name() {
            "stmtIds" if arg.is_null() => {}
            "stmtIds" => {
                let ids = arg.array()?.iter().enumerate().map(|(at, value)| match value {
                    Value::Int32(id) => Ok(id),
                    other => Err(arg.wrong_element(at, other, "int")),
                });
                self.each = Some(ids.collect::<Result<_>>()?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks the ids against `first`, the command's `stmtId`, and the number of statements.
    pub fn check(&self, first: Option<i32>, statements: usize) -> Result<()> {
        let Some(each) = &self.each else { return Ok(()) };
        if first.is_some() {
            let text = "May not specify both stmtId and stmtIds in write command";
            return Err(Error::new(ErrorCode::InvalidOptions, text));
        }
        if each.len() != statements {
            let text = format!(
                "Number of statement ids must match the number of batch entries. Got {} statement ids but {statements} operations",
                each.len()
            );
            return Err(Error::new(ErrorCode::InvalidLength, text));
        }
        Ok(())
    }

    /// Returns the ids of the first `statements` statements, in order. Without `stmtIds` they are
    /// numbered from `first`.
    pub fn list(&self, first: Option<i32>, statements: usize) -> Vec<i32> {
        match &self.each {
            Some(each) => each.clone(),
            None => {
                let first = first.unwrap_or(0);
                (0..statements).map(|at| first.wrapping_add(at as i32)).collect()
            }
        }
    }
}
