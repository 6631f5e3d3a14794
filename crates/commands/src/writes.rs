//! The commits of a command with many statements: each is buffered, and the command waits once,
//! at its end, until the last one is as durable as its write concern asks.

use crate::dispatch::Context;
use crate::reply::from_storage;
use quire_error::Result;
use quire_executor::modify::WriteTarget;
use quire_storage::{CommitOptions, Committed, Durability, Version};
use std::sync::Arc;

/// How a command's statements commit, and how far they have come.
pub struct Writes {
    each: Durability,
    wanted: Durability,
    last: Option<Version>,
}

impl Context<'_> {
    /// The commits of so many statements.
    pub fn writes(&self, statements: usize) -> Writes {
        let wanted = self.write_concern().durability();
        let each = if statements == 1 { wanted } else { Durability::Buffered };
        Writes { each, wanted, last: None }
    }
}

impl Writes {
    /// Where the next statement writes.
    pub fn target<'c>(&self, cx: &'c Context<'_>) -> WriteTarget<'c> {
        let interrupt = Some(Arc::clone(&cx.interrupt));
        let commit = CommitOptions { durability: self.each, interrupt };
        WriteTarget::Store { store: &cx.service.store, commit }
    }

    /// Notes a statement's last commit.
    pub fn note(&mut self, committed: Option<&Committed>) {
        self.last = committed.map(|committed| committed.version).or(self.last);
    }

    /// Waits until everything is as durable as the command asked.
    pub fn finish(self, cx: &Context<'_>) -> Result<()> {
        match self.last {
            Some(version) if self.each != self.wanted => {
                cx.service.engine.barrier(version).map_err(from_storage)
            }
            _ => Ok(()),
        }
    }
}
