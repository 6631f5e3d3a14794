//! The query settings of the server, in memory and stored. They are one document of
//! `config.clusterParameters`, as in MongoDB, so that dumps contain them and restores bring them
//! back.

use crate::frame::command_shape::command_shape;
use crate::frame::context::Context;
use crate::frame::fingerprint::Fingerprint;
use quire_catalog::{Namespace, QuerySettings};
use quire_collections::Store;
use quire_document::limits::USER_DOCUMENT_BYTES_MAX;
use quire_document::{Doc, DocBuf, DocWriter, Value};
use quire_error::{Error, ErrorCode, Result};
use quire_planner::{ReadRequest, RequestShape, ShapeHash};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The `_id` of the document.
const ID: &str = "querySettings";

/// The settings of one shape.
#[derive(Clone)]
pub struct ShapeSetting {
    /// What they say.
    pub settings: Arc<QuerySettings>,
    /// A request of the shape; `None` if they were set by the hash alone.
    pub representative: Option<DocBuf>,
}

/// All query settings, by the hash of their shape.
pub type Settings = BTreeMap<ShapeHash, ShapeSetting>;

/// The query settings of a server.
#[derive(Default)]
pub struct QuerySettingsOfServer {
    /// True if there are any. Without them a request computes no shape.
    any: AtomicBool,
    current: RwLock<Arc<Settings>>,
    /// Held while the settings are changed.
    changing: Mutex<()>,
}

impl QuerySettingsOfServer {
    /// Reads the stored settings.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn load(store: &Arc<Store>) -> Result<Self> {
        let loaded = QuerySettingsOfServer::default();
        loaded.reload(store)?;
        Ok(loaded)
    }

    /// Reads the stored settings again, after a client may have written them itself.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn reload(&self, store: &Arc<Store>) -> Result<()> {
        let view = store.read_view()?;
        let view = view.view();
        let stored = match view.catalog().find(namespace()?.as_str()) {
            Some(collection) => view.get_by_id(collection, Value::String(ID))?,
            None => None,
        };
        self.publish(stored.map(|stored| decode(stored.doc.as_doc())).unwrap_or_default());
        Ok(())
    }

    /// Returns all settings.
    pub fn all(&self) -> Arc<Settings> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the settings for a request, if there are any.
    pub fn of(&self, request: &ReadRequest<'_>) -> Option<Arc<QuerySettings>> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let shape = RequestShape::of(request)?.hash();
        Some(Arc::clone(&self.all().get(&shape)?.settings))
    }

    fn publish(&self, settings: Settings) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        self.any.store(!settings.is_empty(), Ordering::Relaxed);
        *current = Arc::new(settings);
    }
}

impl Context<'_> {
    /// Applies the query settings of a request to what this command plans.
    ///
    /// # Errors
    /// 411 QueryRejectedBySettings if they refuse the request, unless it is only explained.
    pub fn apply_query_settings(
        &mut self,
        request: ReadRequest<'_>,
        is_explained: bool,
    ) -> Result<()> {
        if !is_explained {
            self.note_request(&request);
        }
        self.query_settings = self.service.query_settings.of(&request);
        match &self.query_settings {
            Some(settings) if settings.rejects && !is_explained => {
                let text = "Query rejected by admin query settings";
                Err(Error::new(ErrorCode::QueryRejectedBySettings, text))
            }
            _ => Ok(()),
        }
    }

    /// Returns the fingerprint of an insert into a collection, for the recorder.
    pub fn insert_print(&self, namespace: &Namespace) -> Option<Fingerprint> {
        self.service.recorder.is_on().then(|| Fingerprint::of_insert(namespace.as_str()))
    }

    /// Returns the fingerprint of a statement that writes, for the recorder.
    pub fn write_print(
        &self,
        tag: u64,
        namespace: &Namespace,
        statement: Doc<'_>,
    ) -> Option<Fingerprint> {
        let print = || Fingerprint::of_write(tag, namespace.as_str(), statement);
        self.service.recorder.is_on().then(print)
    }

    /// Makes the fingerprint of a request that this command plans, for the recorder.
    pub fn note_request(&mut self, request: &ReadRequest<'_>) {
        if self.service.recorder.is_on() {
            self.tally.fingerprint = Fingerprint::of_read(request);
        }
    }

    /// Stores changed query settings.
    ///
    /// # Errors
    /// Those of `change`; 10334 BSONObjectTooLarge if all settings together are larger than a
    /// document; the errors of a write.
    pub fn change_query_settings<T>(
        &self,
        change: impl FnOnce(&mut Settings) -> Result<T>,
    ) -> Result<T> {
        let own = &self.service.query_settings;
        let _changing = own.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Settings::clone(&own.all());
        let changed = change(&mut next)?;
        let stored = DocBuf::build(|out| {
            out.append("_id", ID).append("clusterParameterTime", self.service.clock.tick());
            encode(&next, out);
        });
        if stored.as_bytes().len() > USER_DOCUMENT_BYTES_MAX {
            let text =
                format!("all query settings together have at most {USER_DOCUMENT_BYTES_MAX} bytes");
            return Err(Error::new(ErrorCode::BSONObjectTooLarge, text));
        }
        let mut unit = self.server_unit()?;
        let collection = unit.own_collection(&namespace()?, &self.interrupt)?;
        unit.write_durably(&self.interrupt, |writer| {
            match writer.view().get_by_id(&collection, Value::String(ID))? {
                Some(old) => writer.replace(&collection, old.id, old.doc.as_doc(), stored.as_doc()),
                None => writer.insert(&collection, stored.as_doc()).map(drop),
            }
        })?;
        own.publish(next);
        Ok(changed)
    }
}

/// The collection that holds the settings.
fn namespace() -> Result<Namespace> {
    Namespace::new("config", "clusterParameters")
}

fn encode(settings: &Settings, out: &mut DocWriter<'_>) {
    let mut list = out.array("settingsArray");
    for (hash, setting) in settings {
        let mut one = list.document();
        one.append("queryShapeHash", hash.to_string().as_str());
        one.append("settings", &setting.settings.shown);
        if let Some(query) = &setting.representative {
            one.append("representativeQuery", query);
        }
    }
}

/// Returns the settings of a stored document. The hash is that of the representative query, because
/// a document that MongoDB wrote has another one. Elements that are no settings are left out: a client
/// can write anything there.
fn decode(stored: Doc<'_>) -> Settings {
    let setting = |stored: Value<'_>| {
        let stored = stored.as_document()?;
        let settings = stored.get("settings")?.as_document()?.to_owned();
        let query = stored.get("representativeQuery").and_then(|query| query.as_document());
        let shape = query.and_then(|query| command_shape(query.get("$db")?.as_str()?, query));
        let hash = match shape {
            Some(shape) => shape.hash(),
            None => ShapeHash::parse(stored.get("queryShapeHash")?.as_str()?)?,
        };
        let settings = Arc::new(QuerySettings::new(settings));
        Some((hash, ShapeSetting { settings, representative: query.map(Doc::to_owned) }))
    };
    let list = stored.get("settingsArray").and_then(|list| list.as_array());
    list.into_iter().flat_map(|list| list.iter()).filter_map(setting).collect()
}
