//! The default concerns of the server: what `setDefaultRWConcern` has said, else MongoDB's own.
//! (Manual: "setDefaultRWConcern".)

use crate::frame::concern::{ReadConcern, ReadLevel, WriteConcern};
use crate::frame::service::{Service, now_ms};
use quire_collections::Store;
use quire_document::{DocBuf, DocWriter, Timestamp, Value};
use quire_error::{Error, Result};
use quire_storage::CommitOptions;
use std::sync::{Arc, PoisonError, RwLock};

/// The name of the stored setting.
const SETTING: &str = "rwConcern";

/// What was said, and when.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The level of reads that name none.
    pub read: Option<ReadLevel>,
    /// The concern of writes that bring none.
    pub write: Option<WriteConcern>,
    /// When it was said: cluster time, wall clock.
    pub updated: Option<(Timestamp, i64)>,
}

/// The defaults in memory, as they are stored.
pub struct ConcernDefaults {
    current: RwLock<Defaults>,
    /// When this process last took them over.
    loaded_ms: RwLock<i64>,
}

impl ConcernDefaults {
    /// Reads what is stored.
    pub fn load(store: &Arc<Store>) -> Result<Self> {
        let current = match store.setting(SETTING)? {
            Some(stored) => Defaults::decode(&stored)?,
            None => Defaults::default(),
        };
        Ok(ConcernDefaults { current: RwLock::new(current), loaded_ms: RwLock::new(now_ms()) })
    }

    /// What holds now.
    pub fn get(&self) -> Defaults {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the default write concern, if one was set.
    pub fn write(&self) -> Option<WriteConcern> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).write.clone()
    }

    /// The default level of reads, if one was set.
    pub fn read(&self) -> Option<ReadLevel> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).read
    }

    /// Stores what `change` makes of the defaults.
    pub fn change(
        &self,
        service: &Service,
        options: CommitOptions,
        change: impl FnOnce(&mut Defaults) -> Result<()>,
    ) -> Result<()> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = current.clone();
        change(&mut next)?;
        next.updated = Some((service.tick(), now_ms()));
        service.store.put_setting(SETTING, next.encode().as_doc(), options)?;
        *current = next;
        *self.loaded_ms.write().unwrap_or_else(PoisonError::into_inner) = now_ms();
        Ok(())
    }

    /// Appends them as both commands answer.
    pub fn write_reply(&self, in_memory: bool, reply: &mut DocWriter<'_>) {
        let Defaults { read, write, updated } = self.get();
        let source = |set: bool| if set { "global" } else { "implicit" };
        reply.document("defaultReadConcern").append("level", read.unwrap_or_default().name());
        let shown = write.clone().unwrap_or_else(WriteConcern::majority).to_doc();
        reply.append("defaultWriteConcern", &shown);
        if let Some((time, wall)) = updated {
            reply.append("updateOpTime", time);
            reply.append("updateWallClockTime", Value::Date(wall));
        }
        reply.append("defaultWriteConcernSource", source(write.is_some()));
        reply.append("defaultReadConcernSource", source(read.is_some()));
        if in_memory {
            reply.append("inMemory", true);
        }
        let loaded = *self.loaded_ms.read().unwrap_or_else(PoisonError::into_inner);
        reply.append("localUpdateWallClockTime", Value::Date(loaded));
    }
}

impl Defaults {
    fn encode(&self) -> DocBuf {
        DocBuf::build(|writer| {
            if let Some(level) = self.read {
                writer.document("defaultReadConcern").append("level", level.name());
            }
            if let Some(concern) = &self.write {
                writer.append("defaultWriteConcern", &concern.to_doc());
            }
            if let Some((time, wall)) = self.updated {
                writer.append("updateOpTime", time);
                writer.append("updateWallClockTime", Value::Date(wall));
            }
        })
    }

    fn decode(stored: &DocBuf) -> Result<Self> {
        let mut defaults = Defaults::default();
        for (name, value) in stored.as_doc().fields() {
            match (name, value) {
                ("defaultReadConcern", Value::Document(doc)) => {
                    defaults.read = ReadConcern::parse(doc)?.level;
                }
                ("defaultWriteConcern", Value::Document(doc)) => {
                    defaults.write = Some(WriteConcern::parse(doc)?);
                }
                ("updateOpTime", Value::Timestamp(time)) => {
                    defaults.updated = Some((time, defaults.updated.map_or(0, |(_, wall)| wall)));
                }
                ("updateWallClockTime", Value::Date(wall)) => {
                    defaults.updated = defaults.updated.map(|(time, _)| (time, wall));
                }
                _ => return Err(Error::internal("the stored default concerns are damaged")),
            }
        }
        Ok(defaults)
    }
}
