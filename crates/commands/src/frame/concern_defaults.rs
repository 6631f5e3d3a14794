//! The default concerns of the server: those of `setDefaultRWConcern`, else MongoDB's. (Manual:
//! "setDefaultRWConcern".)

use crate::frame::concern::{ReadConcern, ReadLevel, WriteConcern};
use crate::frame::service::{Service, now_ms};
use quire_collections::Store;
use quire_document::{DocBuf, DocWriter, Timestamp, Value};
use quire_error::{Error, Result};
use quire_storage::CommitOptions;
use std::sync::{Arc, PoisonError, RwLock};

/// The name of the stored setting.
const SETTING: &str = "rwConcern";

/// The stored defaults, and the time of their last change.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// The level of reads without a read concern.
    pub read: Option<ReadLevel>,
    /// The concern of writes without a write concern.
    pub write: Option<WriteConcern>,
    /// The time of the last change: cluster time, wall clock.
    pub updated: Option<(Timestamp, i64)>,
}

/// The defaults in memory, as they are stored.
pub struct ConcernDefaults {
    current: RwLock<Defaults>,
    /// The time at which this process loaded them last.
    loaded_ms: RwLock<i64>,
}

impl ConcernDefaults {
    /// Reads the stored defaults.
    pub fn load(store: &Arc<Store>) -> Result<Self> {
        let current = match store.setting(SETTING)? {
            Some(stored) => Defaults::decode(&stored)?,
            None => Defaults::default(),
        };
        Ok(ConcernDefaults { current: RwLock::new(current), loaded_ms: RwLock::new(now_ms()) })
    }

    /// Returns the current defaults.
    pub fn get(&self) -> Defaults {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the default write concern, if one was set.
    pub fn write(&self) -> Option<WriteConcern> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).write.clone()
    }

    /// Returns the default level of reads, if one was set.
    pub fn read(&self) -> Option<ReadLevel> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).read
    }

    /// Stores the result of `change`.
    pub fn change(
        &self,
        service: &Service,
        options: CommitOptions,
        change: impl FnOnce(&mut Defaults) -> Result<()>,
    ) -> Result<()> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = current.clone();
        change(&mut next)?;
        next.updated = Some((service.clock.tick(), now_ms()));
        service.store.put_setting(SETTING, next.encode().as_doc(), options)?;
        *current = next;
        *self.loaded_ms.write().unwrap_or_else(PoisonError::into_inner) = now_ms();
        Ok(())
    }

    /// Appends the defaults as both commands reply them.
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
