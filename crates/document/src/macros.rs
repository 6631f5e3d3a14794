//! `doc!` and `array!`: documents and arrays in Rust source.

/// Builds a [`crate::DocBuf`]: `doc! { "ok": 1.0, "cursor": &inner_doc_buf }`. A value is anything
/// that converts to a [`crate::Value`], or a nested `{ }` or `[ ]`.
#[macro_export]
macro_rules! doc {
    ($($body:tt)*) => {
        $crate::DocBuf::build(|writer| { let _ = &writer; $crate::fill_doc!(writer, $($body)*); })
    };
}

/// Builds an [`crate::ArrayBuf`]: `array![1, "two", { "three": 3 }]`.
#[macro_export]
macro_rules! array {
    ($($body:tt)*) => {
        $crate::ArrayBuf::build(|writer| { let _ = &writer; $crate::fill_array!(writer, $($body)*); })
    };
}

/// Appends the fields of `doc!` to a writer.
#[doc(hidden)]
#[macro_export]
macro_rules! fill_doc {
    ($w:expr $(,)?) => {};
    ($w:expr, $key:tt : { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        { let mut nested = $w.document($key); let _ = &mut nested; $crate::fill_doc!(nested, $($inner)*); }
        $($crate::fill_doc!($w, $($rest)*);)?
    };
    ($w:expr, $key:tt : [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        { let mut nested = $w.array($key); let _ = &mut nested; $crate::fill_array!(nested, $($inner)*); }
        $($crate::fill_doc!($w, $($rest)*);)?
    };
    ($w:expr, $key:tt : $value:expr $(, $($rest:tt)*)?) => {
        $w.append($key, $value);
        $($crate::fill_doc!($w, $($rest)*);)?
    };
}

/// Appends the elements of `array!` to a writer.
#[doc(hidden)]
#[macro_export]
macro_rules! fill_array {
    ($w:expr $(,)?) => {};
    ($w:expr, { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        { let mut nested = $w.document(); let _ = &mut nested; $crate::fill_doc!(nested, $($inner)*); }
        $($crate::fill_array!($w, $($rest)*);)?
    };
    ($w:expr, [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        { let mut nested = $w.array(); let _ = &mut nested; $crate::fill_array!(nested, $($inner)*); }
        $($crate::fill_array!($w, $($rest)*);)?
    };
    ($w:expr, $value:expr $(, $($rest:tt)*)?) => {
        $w.push($value);
        $($crate::fill_array!($w, $($rest)*);)?
    };
}

#[cfg(test)]
mod tests {
    use crate::Value;

    #[test]
    fn macros_nest() {
        let doc = doc! { "a": 1, "b": { "c": [1, "x", { "d": true }], "e": {} }, "f": Value::Null };
        let b = doc.get("b").unwrap().as_document().unwrap();
        assert_eq!(b.get("c").unwrap().as_array().unwrap().count(), 3);
        assert_eq!(doc.as_doc().count(), 3);
        assert!(array![].as_array().is_empty());
        assert!(doc! {}.as_doc().is_empty());
    }
}
