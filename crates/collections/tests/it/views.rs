//! The definitions of views: stored with the commit that publishes them.

use super::*;
use quire_catalog::ViewDefinition;
use quire_collections::ModifyView;
use quire_error::ErrorCode;
use std::sync::Barrier;

fn define(store: &Arc<Store>, name: &str, on: &str) -> quire_error::Result<()> {
    let pipeline = vec![doc! { "$match": { "from": name } }];
    let namespace = Namespace::new("d", name).unwrap();
    let view = ViewDefinition { namespace, on: on.into(), pipeline, collation: None };
    store.create_view(&Arc::new(view), &CommitOptions::synced())
}

fn resolved(store: &Arc<Store>, full: &str) -> Option<(String, usize)> {
    let found = store.catalog().resolve(full).unwrap();
    found.map(|found| (found.namespace, found.pipeline.len()))
}

#[test]
fn definitions_come_back_at_the_next_open() {
    let engine: Arc<dyn quire_storage::Engine> = quire_storage::open_memory().unwrap();
    let store = open(Arc::clone(&engine));
    define(&store, "a", "t").unwrap();
    define(&store, "b", "a").unwrap();
    define(&store, "gone", "b").unwrap();
    let change = ModifyView { on: Some("u".to_owned()), pipeline: None };
    store.modify_view(&ns("d.a"), &change, &CommitOptions::synced()).unwrap();
    assert!(store.drop_view(&ns("d.gone"), &CommitOptions::synced()).unwrap());
    assert!(!store.drop_view(&ns("d.gone"), &CommitOptions::synced()).unwrap());
    let again = open(engine);
    for store in [&store, &again] {
        assert_eq!(resolved(store, "d.a"), Some(("d.u".to_owned(), 1)));
        assert_eq!(resolved(store, "d.b"), Some(("d.u".to_owned(), 2)));
        assert_eq!(resolved(store, "d.gone"), None);
        assert_clean(store);
    }
    again.drop_collection(&ns("d.system.views"), &CommitOptions::synced()).unwrap();
    assert_eq!(resolved(&again, "d.a"), None);
    assert!(again.catalog().database("d").is_none());
}

#[test]
fn a_name_is_a_collections_or_a_views() {
    let store = store();
    define(&store, "v", "t").unwrap();
    insert(&store, "d.t", &doc! { "_id": 1 }).unwrap();
    let code = |error: quire_error::Error| error.code();
    let refused = store.ensure_collection(&ns("d.v")).unwrap_err();
    assert_eq!(code(refused), ErrorCode::CommandNotSupportedOnView);
    assert_eq!(define(&store, "t", "v").map_err(code), Err(ErrorCode::NamespaceExists));
    assert_eq!(define(&store, "v", "t").map_err(code), Err(ErrorCode::NamespaceExists));
    let spec = doc! { "key": { "a": 1 }, "name": "a_1" };
    let refused = index(&store, "d.v", &spec).unwrap_err();
    assert_eq!(code(refused), ErrorCode::CommandNotSupportedOnView);
    assert_clean(&store);
}

/// Two views that would read each other: each is allowed alone.
#[test]
fn views_defined_at_the_same_time_make_no_cycle() {
    for _ in 0..20 {
        let (store, barrier) = (store(), Barrier::new(2));
        let results = std::thread::scope(|scope| {
            let run = |name: &'static str, on: &'static str| {
                let (store, barrier) = (&store, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    define(store, name, on).is_ok()
                })
            };
            let (a, b) = (run("a", "b"), run("b", "a"));
            (a.join().unwrap(), b.join().unwrap())
        });
        assert!(matches!(results, (true, false) | (false, true)), "{results:?}");
    }
}

#[test]
fn an_unreadable_definition_affects_only_the_views_of_its_database() {
    let engine: Arc<dyn quire_storage::Engine> = quire_storage::open_memory().unwrap();
    let store = open(Arc::clone(&engine));
    define(&store, "v", "t").unwrap();
    insert(&store, "d.system.views", &doc! { "_id": "d.bad", "viewOn": 1 }).unwrap();
    insert(&store, "e.t", &doc! { "_id": 1 }).unwrap();
    let again = open(engine);
    let refused = again.catalog().resolve("d.v").unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidViewDefinition);
    assert!(again.catalog().resolve("e.t").unwrap().is_none());
    again.drop_collection(&ns("d.system.views"), &CommitOptions::synced()).unwrap();
    define(&again, "v", "t").unwrap();
    assert_eq!(resolved(&again, "d.v"), Some(("d.t".to_owned(), 1)));
}
